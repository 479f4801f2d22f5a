"""Samples of queries: how many of each stratum, which ones, and what each of them stands for.

The same seed, queries and strata draw the same sample, whatever is done with it. Within a stratum
the queries stand in the order of a digest of seed and id, and the first ones are drawn; places go
to the strata one after the other. So a sample of 50 lies within the sample of 100 from the same
strata, and new queries move few of those drawn.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from heapq import heapify, heapreplace
from math import fsum
from typing import Final

from ragforge.deferred import dataclass, hashlib
from ragforge.errors import UsageError

LEAST_OF_STRATUM: Final = 2
"""Queries drawn of a stratum, at least, as far as it has them: one alone shows no spread."""
_HALF: Final = 0.5 - 1e-9
"""Of the weight; sums of weights are off by their rounding."""
OTHERS: Final = "(others)"
"""The stratum of those that are too small for a sample."""


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return how many queries of each stratum are drawn: in proportion, and two at least.

    After the first two of each, every further place goes to the stratum with the most queries for
    each place it would have (as seats go to parties by Sainte-Laguë). So a larger sample never
    takes fewer of any stratum.

    Args:
        sizes: Queries by stratum, each at least 1.
        n: Queries to draw: as many as the first two of each stratum, or more.

    Raises:
        UsageError: `n` is too small.

    Source: proportional allocation: Cochran 1977, Sampling Techniques, section 5.5; divisors:
    Balinski and Young 1982, Fair Representation.
    """
    least = LEAST_OF_STRATUM if len(sizes) > 1 else 1
    drawn = {name: min(size, least) for name, size in sizes.items()}
    left = min(n, sum(sizes.values())) - sum(drawn.values())
    if left < 0:
        raise UsageError(
            f"a sample of {n}: expected at least {sum(drawn.values())} for {len(sizes)} strata"
        )

    from fractions import Fraction

    def priority(name: str) -> tuple[Fraction, str]:
        is_full = drawn[name] == sizes[name]
        return (Fraction(1) if is_full else -Fraction(sizes[name], 2 * drawn[name] + 1), name)

    waiting = [priority(name) for name in sizes]
    heapify(waiting)
    for _ in range(left):
        name = waiting[0][1]
        drawn[name] += 1
        heapreplace(waiting, priority(name))
    return drawn


def merged_strata(sizes: Mapping[str, int], n: int) -> set[str]:
    """Return the strata to be merged, the smallest ones, so that a sample has two of each.

    Args:
        sizes: Queries by stratum.
        n: Queries to draw.
    """
    names = sorted(sizes, key=lambda name: (sizes[name], name))
    merged: list[str] = []
    while sum(min(size, LEAST_OF_STRATUM) for size in _merged(sizes, merged)) > n and names:
        merged.append(names.pop(0))
    if len(merged) == 1 and names:
        merged.append(names.pop(0))
    return set(merged)


def _merged(sizes: Mapping[str, int], merged: Collection[str]) -> list[int]:
    kept = [size for name, size in sizes.items() if name not in merged]
    return [*kept, sum(sizes[name] for name in merged)] if merged else kept


def draw(stratum_of: Mapping[str, str], n: int, seed: int) -> frozenset[str]:
    """Return the ids of the queries drawn; all where there are no more than `n`.

    Args:
        stratum_of: Stratum by query id.
        n: Queries to draw, at least 1.
        seed: Other seeds draw other queries.

    Raises:
        UsageError: `n` is too small for the strata.
    """
    if n >= len(stratum_of):
        return frozenset(stratum_of)
    members: dict[str, list[str]] = {}
    for query_id, stratum in stratum_of.items():
        members.setdefault(stratum, []).append(query_id)
    wanted = allocate({name: len(ids) for name, ids in members.items()}, n)
    return frozenset(
        query_id
        for name, ids in members.items()
        for query_id in sorted(ids, key=lambda item: (_place(seed, item), item))[: wanted[name]]
    )


def _place(seed: int, query_id: str) -> str:
    return hashlib.sha256(f"{seed}\0{query_id}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Stratified:
    """Values of a sample as arithmetic takes them: which stratum each is of, and how large that is.

    Args:
        strata: Of each value, shape (n,).
        sizes: Queries of the whole set by stratum; all strata have a value.
    """

    strata: tuple[str, ...]
    sizes: Mapping[str, int]

    @property
    def weights(self) -> list[float]:
        """What each value stands for, shape (n,): shares of the set, which sum to 1."""
        drawn, total = Counter(self.strata), sum(self.sizes.values())
        return [self.sizes[name] / drawn[name] / total for name in self.strata]


@dataclass(frozen=True)
class Design:
    """What a sample was drawn from: the stratum of each query of the set.

    Args:
        stratum_of: Of every query that could have been drawn and would count, drawn or not.
    """

    stratum_of: Mapping[str, str]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Queries by stratum."""
        return dict(sorted(Counter(self.stratum_of.values()).items()))

    def within(self, query_ids: Iterable[str]) -> "Design":
        """Return the design for a part of the set: those of the queries that count."""
        kept = set(query_ids)
        return Design({key: of for key, of in self.stratum_of.items() if key in kept})

    def stratified(self, query_ids: Collection[str]) -> Stratified:
        """Return the strata of those queries that have a value, in their order.

        A stratum without any is left out: nothing is known of it.

        Args:
            query_ids: All are of the design.
        """
        strata = tuple(self.stratum_of[query_id] for query_id in query_ids)
        seen = set(strata)
        return Stratified(strata, {key: n for key, n in self.sizes.items() if key in seen})

    def mean(self, values: Mapping[str, float]) -> float | None:
        """Return the mean over the whole set as the sample estimates it; None without values.

        Args:
            values: By query id; they may be of a part of the set, such as a slice.
        """
        if not values:
            return None
        weights = self.stratified(values).weights
        return weighted_mean(list(values.values()), weights)

    def unseen(self, query_ids: Iterable[str]) -> list[str]:
        """Return the strata of which none of these queries is."""
        seen = {self.stratum_of[query_id] for query_id in query_ids}
        return [name for name in self.sizes if name not in seen]


def mean_over_queries(design: Design | None, values: Mapping[str, float]) -> float | None:
    """Return the mean of values by query, over what the queries stand for; None without values.

    Args:
        design: Of the sample that the queries are; None where they are all that there are.
        values: By query id.
    """
    if design is not None:
        return design.mean(values)
    return fsum(values.values()) / len(values) if values else None


def weighted_median(values: Collection[float], weights: Collection[float]) -> float:
    """Return the least value at or below which half of the weight is.

    Args:
        values: At least one, shape (n,).
        weights: Aligned; they sum to 1.
    """
    ordered = sorted(zip(values, weights, strict=True))
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        if reached >= _HALF:
            return value
    return ordered[-1][0]


def weighted_mean(values: Collection[float], weights: Collection[float]) -> float:
    """Return the mean of at least one value, never beyond the values.

    Args:
        values: Shape (n,).
        weights: Aligned; they sum to 1.
    """
    found = fsum(value * weight for value, weight in zip(values, weights, strict=True))
    return min(max(found, min(values)), max(values))
