"""What chance does to the differences of several runs, where one of them is picked by its mean.

Of runs that are equally good, the one that comes out first owes that to these queries, and all
others look worse beside it. So many comparisons with it are not corrected by their number alone:
whichever two of the runs are looked at, all K (K - 1) / 2 differences have to be allowed for at
once. The largest of these, each in its own standard errors, is drawn as the values of the runs
depend on each other.

Source: Tukey 1953, for all differences at once; Hothorn, Bretz and Westfall 2008, Biometrical
Journal 50(3), for any that depend on each other; Chernozhukov, Chetverikov and Kato 2013, Annals of
Statistics 41(6), for maxima drawn by the covariance that was found.
"""

from collections.abc import Mapping, Sequence
from math import comb
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.measures.checked_samples import Floats
from ragforge.measures.distributions import normal_quantile, normal_sf
from ragforge.measures.strata import Design
from ragforge.measures.stratified import scaled

_DRAWS: Final = 20_000
_SEED: Final = 0
_LEAST_QUERIES: Final = 10
"""With fewer, how values depend on each other is not known, and each difference counts alone."""
_NOTHING: Final = 1e-12
"""Of the greatest variance: what differs by no more does not differ."""


@dataclass(frozen=True, slots=True)
class LargestDifference:
    """The largest of all differences between two of several runs that are equally good."""

    draws: Floats
    """In standard errors, ascending; none where each difference counts alone."""
    n_pairs: int

    def corrected(self, p: float) -> float:
        """Return the chance that any two runs differ as much as two with this p value do."""
        most = min(1.0, p * self.n_pairs)
        if not len(self.draws) or self.n_pairs == 1 or p <= 0:
            return most
        reached = normal_quantile(1 - p / 2) if p < 1 else 0.0
        n_beyond = len(self.draws) - int(np.searchsorted(self.draws, reached))
        return max(p, min(most, (n_beyond + 1) / (len(self.draws) + 1)))

    def level(self, alpha: float) -> float:
        """Return the p value at which a difference is one of alpha among all."""
        least = alpha / max(self.n_pairs, 1)
        if not len(self.draws) or self.n_pairs == 1:
            return least
        reached = float(np.quantile(self.draws, 1 - alpha, method="higher"))
        return min(alpha, max(least, 2 * normal_sf(reached)))


def largest_of(
    values: Sequence[Mapping[str, float]], design: Design | None = None
) -> LargestDifference:
    """Return what the largest difference of several runs is by chance.

    Args:
        values: By run, by query; those count that all runs have a value of.
        design: What the queries are a sample of; None where they are all there is.
    """
    shared = sorted(set(values[0]).intersection(*values[1:])) if values else []
    listed = [[of[key] for key in shared] for of in values]
    if design is None or not shared:
        return largest_difference(listed)
    drawn = design.stratified(shared)
    return largest_difference([scaled(of, drawn).tolist() for of in listed])


def largest_difference(values: Sequence[Sequence[float]]) -> LargestDifference:
    """Return what the largest difference of several runs is by chance.

    Args:
        values: By run, over the queries that all have a value for, aligned; of a sample each times
            what its query stands for.
    """
    table = np.asarray(values, dtype=np.float64)
    n_runs, n = len(values), table.shape[-1] if len(values) else 0
    n_pairs = comb(n_runs, 2)
    if n < _LEAST_QUERIES or n_pairs < 2:
        return LargestDifference(np.zeros(0), n_pairs)
    centred = table - table.mean(axis=1, keepdims=True)
    covariance = centred @ centred.T
    variances, axes = np.linalg.eigh(covariance)
    # The symmetric root is the only one: axes are known up to their sign.
    root = (axes * np.sqrt(np.maximum(variances, 0.0))) @ axes.T
    errors = np.random.default_rng(_SEED).standard_normal((_DRAWS, n_runs)) @ root
    own = np.diag(covariance)
    largest = np.zeros(_DRAWS)
    for run in range(n_runs - 1):
        spread = own[run] + own[run + 1 :] - 2 * covariance[run, run + 1 :]
        differs = spread > _NOTHING * max(float(own.max()), _NOTHING)
        apart = np.abs(errors[:, [run]] - errors[:, run + 1 :][:, differs])
        largest = np.maximum(largest, (apart / np.sqrt(spread[differs])).max(axis=1, initial=0.0))
    return LargestDifference(np.sort(largest), n_pairs)
