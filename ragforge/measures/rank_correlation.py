"""How alike two orders are: of runs by two judges or measures, or of two rankings."""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from math import fsum, isnan, sqrt
from typing import TypeAlias

from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.measures.checked_numbers import check_share
from ragforge.measures.checked_samples import Values, sample

Order: TypeAlias = Sequence[str] | Mapping[str, float]
"""Ids best first, or ids to scores, of which higher is better and equal ones are tied."""


def kendall_tau(a: Values, b: Values) -> float | None:
    """Return Kendall's tau-b between two scorings of the same things.

    Args:
        a: Scores of n things, shape (n,); equal scores are tied.
        b: Scores of the same things in the same order.

    Returns:
        A value in [-1, 1]: 1 for the same order with the same ties, -1 for the reverse. None where
        a side ties everything, or n is below 2: then there is no order.

    Raises:
        UsageError: The lengths differ.
        DataError: As `checked_samples.sample`.

    Source: Kendall 1945, Biometrika 33(3); counted as Knight 1966, JASA 61(314).
    """
    left, right = sample(a, "a").tolist(), sample(b, "b").tolist()
    if len(left) != len(right):
        raise UsageError(f"expected scores of the same things, got {len(left)} and {len(right)}")
    pairs = sorted(zip(left, right, strict=True))
    n_pairs = len(pairs) * (len(pairs) - 1) // 2
    untied_left, untied_right = n_pairs - _n_tied(left), n_pairs - _n_tied(right)
    if not untied_left or not untied_right:
        return None
    discordant = 0
    seen: list[float] = []
    for _, score in pairs:
        discordant += len(seen) - bisect_right(seen, score)
        insort(seen, score)
    untied = untied_left + untied_right - n_pairs + _n_tied(pairs)
    tau = (untied - 2 * discordant) / sqrt(untied_left * untied_right)
    return min(1.0, max(-1.0, tau))


def rank_biased_overlap(a: Order, b: Order, p: float = 0.9) -> float | None:
    """Return the extrapolated rank-biased overlap of two rankings, which may differ in length.

    The expected share that the two have in common down to a depth which a reader reaches who goes
    on with probability p. Beyond the ends it is taken to go on as it was. Tied ids may stand in
    any order: the value is the mean over all ways to break the ties of both, independently.

    Args:
        a: A ranking.
        b: Another; they need not hold the same ids.
        p: Persistence, between 0 and 1; with 0.9 the first ten ranks carry 86 % of the weight.

    Returns:
        A value in [0, 1]; 0 where one ranking is empty, None where both are.

    Raises:
        UsageError: `p` is out of range.
        DataError: An id is listed twice, or a score is NaN.

    Source: Webber, Moffat and Zobel 2010, ACM TOIS 28(4), equation 32; ties as the variant "a" of
    Corsi and Urbano 2024, SIGIR, save that the tie group which the shorter ranking's length cuts
    through is averaged over as well.
    """
    check_share(p, "p")
    short, long = sorted([_places(a, "a"), _places(b, "b")], key=len)
    if not short:
        return 0.0 if long else None
    n_short, n_long = len(short), len(long)
    common = _common(short, long, n_long)
    at_short = common[n_short - 1] / n_short
    terms = [
        p**depth * (overlap + at_short * max(0, depth - n_short)) / depth
        for depth, overlap in enumerate(common, start=1)
    ]
    beyond = (common[-1] - common[n_short - 1]) / n_long + at_short
    return min(1.0, (1 - p) / p * fsum(terms) + p**n_long * beyond)


@dataclass(frozen=True, slots=True)
class _Place:
    """The ranks that an id can take, from 1."""

    first: int
    last: int

    def share(self, depth: int) -> float:
        """Return the probability of a rank of at most `depth`."""
        return min(1.0, max(0.0, (depth - self.first + 1) / (self.last - self.first + 1)))


def _places(order: Order, name: str) -> dict[str, _Place]:
    if not isinstance(order, Mapping):
        places = {item: _Place(rank, rank) for rank, item in enumerate(order, start=1)}
        if len(places) != len(order):
            twice = next(item for item, count in Counter(order).items() if count > 1)
            raise DataError(f"{name}: {twice!r} is listed more than once")
        return places
    for item, score in order.items():
        if isnan(score):
            raise DataError(f"{name}: {item!r}: score: expected a number, got {score}")
    best_first = sorted(order.items(), key=lambda pair: -pair[1])
    places = {}
    for _, group in groupby(best_first, key=lambda pair: pair[1]):
        tied = [item for item, _ in group]
        place = _Place(len(places) + 1, len(places) + len(tied))
        places.update(dict.fromkeys(tied, place))
    return places


def _common(short: Mapping[str, _Place], long: Mapping[str, _Place], n: int) -> list[float]:
    """Return how many ids the rankings are expected to share down to depths 1 to n."""
    changes = [0.0] * (n + 1)
    for item, place in short.items():
        other = long.get(item)
        if other is None:
            continue
        before = 0.0
        for depth in range(max(place.first, other.first), max(place.last, other.last) + 1):
            share = place.share(depth) * other.share(depth)
            changes[depth] += share - before
            before = share
    total = 0.0
    return [total := total + change for change in changes[1:]]


def _n_tied(values: Iterable[Hashable]) -> int:
    return sum(count * (count - 1) // 2 for count in Counter(values).values())
