"""Tests of two runs over the same queries: is the one better, or was it the choice of queries?

All tests are two-sided and paired. They look at the differences per query, candidate minus
baseline; queries in which both are equal (but for float noise) are ties.
"""

from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragforge.errors import UsageError
from ragforge.measures.distributions import normal_sf, student_sf
from ragforge.measures.samples import Floats, Values, differences, is_constant, lattice_cells, mean
from ragforge.measures.sign_flips import (
    LARGEST_ENUMERATION,
    enumerated_p,
    lattice_cost,
    lattice_p,
    sampled_p,
)

Zeros: TypeAlias = Literal["wilcox", "pratt"]

LARGEST_EXACT: Final = 100
"""Differences other than 0 up to which the signed-rank test is exact."""
_LATTICE_COST: Final = 20_000_000
"""Additions that an exact test may cost; about 20 ms."""
_SAME_RANK: Final = 1e-10
"""Sizes this close, relative to the largest, share a rank: they differ by float noise."""


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


def t_test(baseline: Values, candidate: Values) -> PairedTest:
    """Test whether the mean difference is 0, by Student's paired t.

    Args:
        baseline: Values of n queries.
        candidate: Values of the same queries in the same order.

    Returns:
        The statistic is t with n - 1 degrees of freedom. It is None with fewer than two queries or
        where all differences are the same; then p is 1, or 0 where two or more differences are the
        same and not 0, as in the limit.

    Raises:
        UsageError: The lengths differ.
        DataError: As `samples.sample`.

    Source: Student 1908; Smucker, Allan and Carterette 2007, CIKM, on its use here.
    """
    found = differences(baseline, candidate)
    n = len(found)
    if n < 2 or is_constant(found):
        return _outcome("paired t", None, float(n < 2 or not found.any()), found)
    scale = float(np.abs(found).max())
    scaled = found / scale
    centre = mean(scaled)
    variance = fsum(((scaled - centre) ** 2).tolist()) / (n - 1)
    t = centre / sqrt(variance / n)
    return _outcome("paired t", t, min(1.0, 2 * student_sf(abs(t), n - 1)), found)


def signed_rank_test(baseline: Values, candidate: Values, zeros: Zeros = "wilcox") -> PairedTest:
    """Test whether differences lie symmetrically about 0, by Wilcoxon's signed ranks.

    Up to 100 differences other than 0 the p value is exact, given which sizes are tied. Beyond,
    it is that of the normal distribution, with the variance corrected for ties and zeros and no
    correction for continuity.

    Args:
        baseline: Values of n queries.
        candidate: Values of the same queries in the same order.
        zeros: "wilcox" leaves queries without a difference out before ranking, "pratt" after it.

    Returns:
        The statistic is the lesser of the two rank sums; 0 with a p of 1 where all are ties.

    Raises:
        UsageError: The lengths differ, or `zeros` is neither word.
        DataError: As `samples.sample`.

    Source: Wilcoxon 1945, Biometrics Bulletin 1(6); Pratt 1959, JASA 54(287).
    """
    if zeros not in {"wilcox", "pratt"}:
        raise UsageError(f"no treatment {zeros!r} of zeros; there are: wilcox, pratt")
    found = differences(baseline, candidate)
    signed = signed_ranks(found, zeros)
    lesser = min(signed.positive, signed.negative)
    name = f"Wilcoxon signed-rank, zeros as {zeros.capitalize()}"
    if len(signed.ranks) <= LARGEST_EXACT:
        # Means of ranks are whole or end in a half.
        cells = np.rint(2 * signed.ranks).astype(np.int64)
        p = lattice_p(cells, round(2 * (signed.positive - signed.negative)))
        return _outcome(f"{name}, exact", lesser, p, found)
    # Each rank adds its square / 4: what textbooks write as n (n + 1) (2 n + 1) / 24 less the ties.
    error = sqrt(float((signed.ranks**2).sum())) / 2
    z = abs(signed.positive - signed.negative) / 2 / error
    return _outcome(f"{name}, normal approximation", lesser, 2 * normal_sf(z), found)


def randomisation_test(
    baseline: Values,
    candidate: Values,
    *,
    seed: int,
    n_permutations: int = 10_000,
) -> PairedTest:
    """Test whether runs are interchangeable per query, by flipping the signs of differences.

    Exact where that is cheap: all patterns with up to 20 differences other than 0, and counting on
    the lattice of measures such as P@5 or Success@5 for any number of queries. Otherwise random
    patterns, the same for the same seed and differences in any order.

    Args:
        baseline: Values of n queries.
        candidate: Values of the same queries in the same order.
        seed: At least 0, for PCG64; unused by exact tests.
        n_permutations: Random patterns, at least 1; p cannot be below 1 / (n_permutations + 1).

    Returns:
        The statistic is the mean difference; 0 with a p of 1 where all are ties, and None without
        queries.

    Raises:
        UsageError: The lengths differ, `n_permutations` is below 1 or the seed below 0.
        DataError: As `samples.sample`.

    Source: Fisher 1935, The Design of Experiments, section 21; Smucker et al. 2007, CIKM.
    """
    found = differences(baseline, candidate)
    sizes = np.sort(np.abs(found[found != 0]))
    total = fsum(found.tolist())
    statistic = mean(found) if len(found) else None
    if len(sizes) <= LARGEST_ENUMERATION:
        p = enumerated_p(sizes, total)
        return _outcome("randomisation, exact", statistic, p, found)
    exact = _exact_p(found)
    if exact is not None:
        return _outcome("randomisation, exact", statistic, exact, found)
    p = sampled_p(sizes, total, n_permutations, seed)
    return _outcome(f"randomisation, {n_permutations} sign flips", statistic, p, found)


def signed_ranks(found: Floats, zeros: Zeros = "wilcox") -> SignedRanks:
    """Rank the sizes of differences, and sum the ranks by sign.

    Args:
        found: Differences, shape (n,), of which 0 stands for a tie.
        zeros: "wilcox" does not rank zeros, "pratt" ranks them and leaves them out then.
    """
    ranked = found[found != 0] if zeros == "wilcox" else found
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


def _exact_p(found: Floats) -> float | None:
    """Return the p value by counting; None off the lattice or where it costs too much."""
    sizes = np.abs(found)
    n_cells = lattice_cells(sizes)
    if n_cells is None:
        return None
    cells: NDArray[np.int64] = np.rint(found / sizes.max() * n_cells).astype(np.int64)
    observed = int(cells.sum())
    cells = np.abs(cells[cells != 0])
    return lattice_p(cells, observed) if lattice_cost(cells, observed) <= _LATTICE_COST else None


def _outcome(method: str, statistic: float | None, p: float, found: Floats) -> PairedTest:
    n = len(found)
    wins, losses = int(np.count_nonzero(found > 0)), int(np.count_nonzero(found < 0))
    difference = mean(found) if n else None
    return PairedTest(method, statistic, p, difference, n, wins, n - wins - losses, losses)
