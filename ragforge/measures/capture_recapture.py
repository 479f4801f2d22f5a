"""How many relevant chunks no probe has found, from how often the found ones were found.

A probe is an occasion to be caught, a relevant chunk what is caught. Chunks that one probe alone
found are many where chunks that none found are many too.

Probes share words with each other, so a chunk that one finds is likelier to be found by the next,
and a chunk far down in all rankings is found by none. Both make the number of missing chunks too
low: what comes out is the least that is missing, and the completeness is an upper estimate. Of
several such estimates the lowest says most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.checked_numbers import checked_seed
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import LEAST_VALUES, LEVEL, least_share

if TYPE_CHECKING:
    import numpy.typing as npt

_Totals: TypeAlias = "npt.NDArray[np.float64]"
"""Sums over queries, shape (…, 3)."""

_RESAMPLES: Final = 2_000
_BATCH: Final = 2**20
"""Queries drawn at once."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """Which share of the relevant chunks was found, at most."""

    share: float | None
    """Found of found and missing, in (0, 1]; None where it cannot be told."""
    interval: Ends | None
    """At 95 %, over queries; None where `share` is, where fewer than five queries had any found, or
    where all queries are alike though something is missing."""
    n_found: int
    """Relevant chunks that were found, each once a query."""
    n_missing: float | None
    """Those that were not, at least; None where `share` is."""


@dataclass(frozen=True, slots=True)
class TwoSamples:
    """What two probes found of a query's relevant chunks."""

    n_first: int
    n_second: int
    n_both: int


def completeness(found_by: Sequence[Sequence[int]], n_probes: int, seed: int = 0) -> Completeness:
    """Return Chao's estimate from all probes, in its bias-corrected form.

    With m probes, Q1 chunks found by one and Q2 by two, (m-1)/m Q1 (Q1-1) / (2 (Q2+1)) are missing.
    Chunks are pooled over queries. The interval is of the percentile bootstrap over queries; where
    nothing is missing it shows no spread, and reaches down to the share of queries of which as many
    as there are would be seen without exception with a probability of 2.5 %.

    Args:
        found_by: For each query, by how many probes each of its relevant chunks was found, from 1;
            empty for a query without any. Chunks that were known beforehand do not belong here.
        n_probes: How many looked; one alone tells nothing of what it missed.
        seed: At least 0, of the resamples.

    Raises:
        UsageError: A chunk was found by no probe, or by more than there are; the seed is below 0.

    Source: Chao 1987, Biometrics 43(4); bias-corrected form for incidences: Gotelli and Colwell
    2011, in Biological Diversity, chapter 4.
    """
    rows = [_found_once_twice(each, n_probes) for each in found_by]

    def missing(totals: _Totals) -> _Totals:
        once, twice = totals[..., 1], totals[..., 2]
        estimated: _Totals = (n_probes - 1) / n_probes * once * (once - 1) / (2 * (twice + 1))
        return estimated

    return _completeness(rows, missing, is_known=n_probes > 1, seed=seed)


def completeness_by_two(samples: Sequence[TwoSamples], seed: int = 0) -> Completeness:
    """Return Chapman's estimate from two probes: how much of what one found the other found too.

    Chunks are pooled over queries; `n_found` counts those of either probe. The interval is that of
    `completeness`. It cannot be told where a probe found nothing.

    Args:
        samples: One a query.
        seed: At least 0, of the resamples.

    Raises:
        UsageError: More are in both than in one of them, or a number is below 0.

    Source: Chapman 1951, University of California Publications in Statistics 1(7).
    """
    rows = [_either_first_second(each) for each in samples]

    def missing(totals: _Totals) -> _Totals:
        found, first, second = totals[..., 0], totals[..., 1], totals[..., 2]
        estimated: _Totals = (first + 1) * (second + 1) / (first + second - found + 1) - 1 - found
        return np.maximum(estimated, 0.0)

    firsts, seconds = sum(one.n_first for one in samples), sum(one.n_second for one in samples)
    return _completeness(rows, missing, is_known=firsts > 0 < seconds, seed=seed)


def _found_once_twice(found_by: Sequence[int], n_probes: int) -> tuple[int, int, int]:
    wrong = [count for count in found_by if not 1 <= count <= n_probes]
    if wrong:
        raise UsageError(f"found by {wrong[0]} probes; expected 1 to {n_probes}")
    return len(found_by), list(found_by).count(1), list(found_by).count(2)


def _either_first_second(sample: TwoSamples) -> tuple[int, int, int]:
    least = min(sample.n_first, sample.n_second)
    if not 0 <= sample.n_both <= least:
        raise UsageError(f"expected 0 to {least} chunks in both samples, got {sample.n_both}")
    return sample.n_first + sample.n_second - sample.n_both, sample.n_first, sample.n_second


def _completeness(
    rows: Sequence[tuple[int, int, int]],
    missing: Callable[[_Totals], _Totals],
    *,
    is_known: bool,
    seed: int,
) -> Completeness:
    """Return the share of what was found.

    Args:
        rows: One a query, what was found first.
        missing: Estimates from sums over queries what was not.
        is_known: Whether it can be told at all.
        seed: Of the resamples.
    """
    counts = np.array(rows, dtype=np.float64).reshape(-1, 3)
    totals = counts.sum(axis=0)
    n_found = int(totals[0])
    if not n_found or not is_known:
        return Completeness(None, None, n_found, None)
    n_missing = float(missing(totals))
    interval = _interval(counts, missing, checked_seed(seed))
    return Completeness(n_found / (n_found + n_missing), interval, n_found, n_missing)


def _interval(counts: _Totals, missing: Callable[[_Totals], _Totals], seed: int) -> Ends | None:
    n = int(np.count_nonzero(counts[:, 0]))
    if n < LEAST_VALUES:
        return None
    generator = np.random.default_rng(seed)
    batch = max(1, _BATCH // len(counts))
    shares = []
    for start in range(0, _RESAMPLES, batch):
        size = (min(batch, _RESAMPLES - start), len(counts))
        totals = counts[generator.integers(0, len(counts), size)].sum(axis=1)
        totals = totals[totals[:, 0] > 0]
        shares.append(totals[:, 0] / (totals[:, 0] + missing(totals)))
    every = np.concatenate(shares)
    if every.min() == 1.0:
        return Ends(least_share(n), 1.0)
    if every.min() == every.max():
        return None
    ends = np.quantile(every, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Ends(float(ends[0]), float(ends[1]))
