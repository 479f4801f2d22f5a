"""Intervals by resampling queries: pairs of one query are judged alike, and are no sample of n.

A statistic takes how often each query is drawn and returns a value for each draw, so that all
resamples are one product of arrays.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats, check_share, checked_seed

Statistic: TypeAlias = Callable[[Floats], Floats]
"""From times, shape (b, m), to values, shape (b,): times[i, j] is how often query j is drawn."""

N_RESAMPLES: Final = 2000
MOST_UNDEFINED: Final = 0.05
"""Share of resamples without a value from which on there is no interval."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which pairs belong to one query."""

    query_ids: tuple[str, ...]
    """In order of their first pair."""
    of_pair: NDArray[np.intp]
    """Place of each pair's query in `query_ids`, shape (n,)."""


@dataclass(frozen=True, slots=True)
class ClusteredInterval:
    """A statistic of all queries, and the range in which another sample of queries may put it."""

    value: float | None
    """None where it is not defined."""
    low: float | None
    """None where the value is, with fewer than two queries, or too many undefined resamples."""
    high: float | None
    """None where `low` is."""
    n_undefined: int = 0
    """Resamples in which the statistic is not defined; the interval is of the others."""


def clusters(query_ids: Sequence[str]) -> Clusters:
    """Group pairs by query.

    Args:
        query_ids: Of each pair, shape (n,).
    """
    places: dict[Hashable, int] = {}
    of_pair = [places.setdefault(query_id, len(places)) for query_id in query_ids]
    return Clusters(tuple(dict.fromkeys(query_ids)), np.array(of_pair, dtype=np.intp))


def resampled_times(n_queries: int, seed: int, n_resamples: int = N_RESAMPLES) -> Floats:
    """Return how often each query is drawn: once each in row 0, with replacement in the others.

    Args:
        n_queries: m; may be 0.
        seed: At least 0, for numpy's `default_rng`.
        n_resamples: b, at least 1.

    Returns:
        Shape (b + 1, m); each row sums to m.

    Raises:
        UsageError: The seed or the number of resamples cannot be taken.
    """
    if n_resamples < 1:
        raise UsageError(f"expected at least 1 resample, got {n_resamples}")
    generator = np.random.default_rng(checked_seed(seed))
    times = np.ones((n_resamples + 1, n_queries))
    if n_queries:
        shares = np.full(n_queries, 1 / n_queries)
        times[1:] = generator.multinomial(n_queries, shares, n_resamples)
    return times


def percentile_interval(values: Floats, n_queries: int, level: float = 0.95) -> ClusteredInterval:
    """Return the interval of a statistic from its values on resamples.

    Args:
        values: Shape (b + 1,), that of all queries first; NaN where it is not defined.
        n_queries: How many were drawn from.
        level: From above 0 to below 1.

    Raises:
        UsageError: The level cannot be taken.

    Source: Efron 1979, Annals of Statistics 7(1); of clusters: Field & Welsh 2007, JRSS B 69(3).
    """
    check_share(level, "level")
    value, resampled = float(values[0]), values[1:]
    defined = resampled[~np.isnan(resampled)]
    n_undefined = len(resampled) - len(defined)
    if np.isnan(value):
        return ClusteredInterval(None, None, None, n_undefined)
    if n_queries < 2 or n_undefined > MOST_UNDEFINED * len(resampled):
        return ClusteredInterval(value, None, None, n_undefined)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return ClusteredInterval(value, float(low), float(high), n_undefined)


def clustered_interval(
    statistic: Statistic,
    n_queries: int,
    *,
    seed: int,
    n_resamples: int = N_RESAMPLES,
    level: float = 0.95,
) -> ClusteredInterval:
    """Return a statistic with its interval from resampled queries.

    Args:
        statistic: Of how often each query is drawn, in the order of `Clusters.query_ids`.
        n_queries: m.
        seed: As for `resampled_times`; the same one draws the same queries for every statistic, so
            that differences can be taken within a draw.
        n_resamples: As for `resampled_times`.
        level: As for `percentile_interval`.

    Raises:
        UsageError: The seed, the number of resamples or the level cannot be taken.
    """
    times = resampled_times(n_queries, seed, n_resamples)
    return percentile_interval(statistic(times), n_queries, level)
