"""Tests of two runs over the same queries: is the one better, or was it the choice of queries?

All tests are two-sided and paired. They look at the differences per query, candidate minus
baseline; queries in which both are equal (but for float noise) are ties.
"""

from __future__ import annotations

from math import fsum, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_numbers import checked_seed
from ragforge.measures.checked_samples import (
    Floats,
    PairedValues,
    differences,
    is_constant,
    lattice_cells,
    mean,
)
from ragforge.measures.distributions import normal_sf, student_sf

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_ENUMERATION: Final = 20
"""Terms of which all patterns are tried; half a million sums, as mirrored ones are alike."""
_GROUP: Final = 8
"""Terms whose signs one random byte gives."""
_TIE: Final = 1e-11
"""Sums this close, relative to the sum of all sizes, are equal but for float noise."""

Zeros: TypeAlias = Literal["wilcox", "pratt"]
LARGEST_EXACT: Final = 100
"""Differences other than 0 up to which the signed-rank test is exact."""
_LATTICE_COST: Final = 20_000_000
"""Additions that an exact test may cost; about 20 ms."""
_SAME_RANK: Final = 1e-10
"""Sizes this close, relative to the largest, share a rank: they differ by float noise."""


def enumerated_p(sizes: Floats, observed: float) -> float:
    """Return the exact p value by trying every pattern.

    Args:
        sizes: Sizes of the terms, shape (n,), n at most 20; none is negative.
        observed: The sum that was found.
    """
    if not len(sizes):
        return 1.0
    sums = sizes[:1].copy()
    for size in sizes[1:]:
        sums = np.concatenate([sums - size, sums + size])
    return float(np.mean(np.abs(sums) >= _least(sizes, observed)))


def lattice_p(cells: NDArray[np.int64], observed: int) -> float:
    """Return the exact p value for whole numbers, by counting subsets of each sum.

    The sum is that of the terms with a plus, less the others: as far out as `observed` are the
    patterns whose lesser side weighs at most what it weighs there.

    Args:
        cells: Sizes of the terms, shape (n,); none is negative.
        observed: The sum that was found.

    Source: Pagano and Tritchler 1983, JASA 78(382), by recursion where they transform.
    """
    lesser = (int(cells.sum()) - abs(observed)) // 2
    share = np.zeros(lesser + 1)
    share[0] = 1.0
    # The large ones first: what falls off the end need not be carried along.
    for cell in np.sort(cells)[::-1].tolist():
        share *= 0.5
        if 0 < cell <= lesser:
            share[cell:] += share[:-cell].copy()
        elif not cell:
            share *= 2
    return min(1.0, 2 * float(share.sum()))


def lattice_cost(cells: NDArray[np.int64], observed: int) -> int:
    """Return how many additions `lattice_p` needs."""
    return len(cells) * ((int(cells.sum()) - abs(observed)) // 2 + 1)


def sampled_p(sizes: Floats, observed: float, n_permutations: int, seed: int) -> float:
    """Return the p value from random patterns, the observed one added: (hits + 1) / (B + 1).

    Each eight terms have a table of their 256 signed sums, which a random byte indexes: a pattern
    of 1,000 terms costs 125 additions.

    Args:
        sizes: Sizes of the terms, shape (n,); none is negative.
        observed: The sum that was found.
        n_permutations: B, at least 1.
        seed: For PCG64, whose stream numpy keeps the same over its versions.

    Raises:
        UsageError: B is below 1, or the seed below 0.

    Source: Phipson and Smyth 2010, Statistical Applications in Genetics 9(1), 39.
    """
    if n_permutations < 1:
        raise UsageError(f"expected at least 1 permutation, got {n_permutations}")
    bits = np.random.PCG64(checked_seed(seed))
    sums = np.zeros(n_permutations)
    n_words = -(-n_permutations // _GROUP)
    for table in _signed_sums(sizes):
        sums += table.take(bits.random_raw(n_words).view(np.uint8)[:n_permutations])
    hits = int(np.count_nonzero(np.abs(sums) >= _least(sizes, observed)))
    return (hits + 1) / (n_permutations + 1)


def _signed_sums(sizes: Floats) -> Floats:
    """Return the sums of eight terms at a time under every pattern, shape (ceil(n / 8), 256)."""
    terms = np.zeros((-(-len(sizes) // _GROUP), _GROUP))
    terms.flat[: len(sizes)] = sizes
    sums = np.zeros((len(terms), 1))
    for column in range(_GROUP):
        term = terms[:, column : column + 1]
        sums = np.concatenate([sums - term, sums + term], axis=1)
    return sums


def _least(sizes: Floats, observed: float) -> float:
    return abs(observed) - _TIE * float(sizes.sum())


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What a paired test found."""

    method: str
    """In words, such as "randomisation, 10000 sign flips"."""
    statistic: float | None
    """As the test's function says; None where it is undefined."""
    p: float
    """Two-sided p value in [0, 1]: 1 where there is no difference at all."""
    mean_difference: float | None
    """Candidate minus baseline; None without queries."""
    n: int
    """Queries."""
    wins: int
    """Queries in which the candidate is better."""
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class SignedRanks:
    """Sums of the ranks of the sizes of differences."""

    positive: float
    """Of the differences above 0."""
    negative: float
    """Of those below, as a positive number."""
    ranks: Floats
    """The ranks of both, ascending; where sizes are tied, the mean of the ranks they share."""


def t_test(baseline: PairedValues, candidate: PairedValues) -> PairedTest:
    """Test whether the mean difference is 0, by Student's paired t.

    Args:
        baseline: Values of n queries; or by query, of which those count that both have.
        candidate: Values of the same queries in the same order; or by query, too.

    Returns:
        The statistic is t with n - 1 degrees of freedom. It is None with fewer than two queries or
        where all differences are the same; then p is 1, or 0 where two or more differences are the
        same and not 0, as in the limit.

    Raises:
        UsageError: The lengths differ, or one is by query alone.
        DataError: As `checked_samples.sample`.

    Source: Student 1908; Smucker, Allan and Carterette 2007, CIKM, on its use here.
    """
    diffs = differences(baseline, candidate)
    n = len(diffs)
    if n < 2 or is_constant(diffs):
        return _outcome("paired t", None, float(n < 2 or not diffs.any()), diffs)
    scale = float(np.abs(diffs).max())
    scaled = diffs / scale
    centre = mean(scaled)
    variance = fsum(((scaled - centre) ** 2).tolist()) / (n - 1)
    t = centre / sqrt(variance / n)
    return _outcome("paired t", t, min(1.0, 2 * student_sf(abs(t), n - 1)), diffs)


def signed_rank_test(
    baseline: PairedValues, candidate: PairedValues, zeros: Zeros = "wilcox"
) -> PairedTest:
    """Test whether differences lie symmetrically about 0, by Wilcoxon's signed ranks.

    Up to 100 differences other than 0 the p value is exact, given which sizes are tied. Beyond,
    it is that of the normal distribution, with the variance corrected for ties and zeros and no
    correction for continuity.

    Args:
        baseline: Values of n queries; or by query, of which those count that both have.
        candidate: Values of the same queries in the same order; or by query, too.
        zeros: "wilcox" leaves queries without a difference out before ranking, "pratt" after it.

    Returns:
        The statistic is the lesser of the two rank sums; 0 with a p of 1 where all are ties.

    Raises:
        UsageError: The lengths differ, or one is by query alone, or `zeros` is neither word.
        DataError: As `checked_samples.sample`.

    Source: Wilcoxon 1945, Biometrics Bulletin 1(6); Pratt 1959, JASA 54(287).
    """
    if zeros not in {"wilcox", "pratt"}:
        raise UsageError(f"no treatment {zeros!r} of zeros; there are: wilcox, pratt")
    diffs = differences(baseline, candidate)
    signed = signed_ranks(diffs, zeros)
    lesser = min(signed.positive, signed.negative)
    name = f"Wilcoxon signed-rank, zeros as {zeros.capitalize()}"
    if len(signed.ranks) <= LARGEST_EXACT:
        # Means of ranks are whole or end in a half.
        cells = np.rint(2 * signed.ranks).astype(np.int64)
        p = lattice_p(cells, round(2 * (signed.positive - signed.negative)))
        return _outcome(f"{name}, exact", lesser, p, diffs)
    # Each rank adds its square / 4: what textbooks write as n (n + 1) (2 n + 1) / 24 less the ties.
    error = sqrt(float((signed.ranks**2).sum())) / 2
    z = abs(signed.positive - signed.negative) / 2 / error
    return _outcome(f"{name}, normal approximation", lesser, 2 * normal_sf(z), diffs)


def randomisation_test(
    baseline: PairedValues,
    candidate: PairedValues,
    *,
    seed: int,
    n_permutations: int = 10_000,
) -> PairedTest:
    """Test whether runs are interchangeable per query, by flipping the signs of differences.

    Exact where that is cheap: all patterns with up to 20 differences other than 0, and counting on
    the lattice of measures such as P@5 or Success@5 for any number of queries. Otherwise random
    patterns, the same for the same seed and differences in any order.

    Args:
        baseline: Values of n queries; or by query, of which those count that both have.
        candidate: Values of the same queries in the same order; or by query, too.
        seed: At least 0, for PCG64; unused by exact tests.
        n_permutations: Random patterns, at least 1; p cannot be below 1 / (n_permutations + 1).

    Returns:
        The statistic is the mean difference; 0 with a p of 1 where all are ties, and None without
        queries.

    Raises:
        UsageError: The lengths differ, or one is by query alone, or `n_permutations` is below 1 or
            the seed below 0.
        DataError: As `checked_samples.sample`.

    Source: Fisher 1935, The Design of Experiments, section 21; Smucker et al. 2007, CIKM.
    """
    diffs = differences(baseline, candidate)
    sizes = np.sort(np.abs(diffs[diffs != 0]))
    total = fsum(diffs.tolist())
    statistic = mean(diffs) if len(diffs) else None
    if len(sizes) <= LARGEST_ENUMERATION:
        p = enumerated_p(sizes, total)
        return _outcome("randomisation, exact", statistic, p, diffs)
    exact = _exact_p(diffs)
    if exact is not None:
        return _outcome("randomisation, exact", statistic, exact, diffs)
    p = sampled_p(sizes, total, n_permutations, seed)
    return _outcome(f"randomisation, {n_permutations} sign flips", statistic, p, diffs)


def signed_ranks(diffs: Floats, zeros: Zeros = "wilcox") -> SignedRanks:
    """Rank the sizes of differences, and sum the ranks by sign.

    Args:
        diffs: Differences, shape (n,), of which 0 stands for a tie.
        zeros: "wilcox" does not rank zeros, "pratt" ranks them and leaves them out then.
    """
    ranked = diffs[diffs != 0] if zeros == "wilcox" else diffs
    order = np.argsort(np.abs(ranked), kind="stable")
    ordered = ranked[order]
    sizes = np.abs(ordered)
    apart = np.diff(sizes) > _SAME_RANK * sizes[-1:]
    group = np.concatenate([np.zeros(min(1, len(sizes)), dtype=np.int64), np.cumsum(apart)])
    last = np.cumsum(np.bincount(group))
    ranks = ((last - np.bincount(group) + 1 + last) / 2)[group]
    kept = ordered != 0
    return SignedRanks(
        float(ranks[ordered > 0].sum()), float(ranks[ordered < 0].sum()), ranks[kept]
    )


def _exact_p(diffs: Floats) -> float | None:
    """Return the p value by counting; None off the lattice or where it costs too much."""
    sizes = np.abs(diffs)
    n_cells = lattice_cells(sizes)
    if n_cells is None:
        return None
    cells: NDArray[np.int64] = np.rint(diffs / sizes.max() * n_cells).astype(np.int64)
    observed = int(cells.sum())
    cells = np.abs(cells[cells != 0])
    return lattice_p(cells, observed) if lattice_cost(cells, observed) <= _LATTICE_COST else None


def _outcome(method: str, statistic: float | None, p: float, diffs: Floats) -> PairedTest:
    n = len(diffs)
    wins, losses = int(np.count_nonzero(diffs > 0)), int(np.count_nonzero(diffs < 0))
    difference = mean(diffs) if n else None
    return PairedTest(method, statistic, p, difference, n, wins, n - wins - losses, losses)
