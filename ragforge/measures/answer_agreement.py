"""How far a judge of answers agrees with people: verdicts, scores and preferences.

Answers to one query are judged alike, so intervals resample queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.measures.agreement import confusions, kappa
from ragforge.measures.checked_samples import Floats, Values, sample
from ragforge.measures.intervals import (
    N_RESAMPLES,
    ClusteredInterval,
    Ends,
    clusters,
    percentile_interval,
    resampled_times,
)

_COEFFICIENT: Final = Ends(-1.0, 1.0)
_SHARE: Final = Ends(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Verdicts of a judge beside people's, on the same answers."""

    counts: tuple[tuple[int, ...], ...]
    """Answers by the people's verdict (outer) and the judge's (inner)."""
    kappa: ClusteredInterval
    same: ClusteredInterval
    """Share of answers with the same verdict."""
    recall: tuple[ClusteredInterval, ...]
    """Of each verdict of people, the share to which the judge gave the same."""


@dataclass(frozen=True, slots=True)
class ScoreAgreement:
    """Numbers that a judge gave beside people's, on the same answers or comparisons."""

    n: int
    pearson: ClusteredInterval
    spearman: ClusteredInterval
    """Of ranks over all, ties in the middle."""
    bias: ClusteredInterval
    """Mean of the judge's minus the people's."""


@dataclass(frozen=True, slots=True)
class PreferenceAgreement:
    """Which of two answers a judge scores higher beside which one people prefer."""

    scores: ScoreAgreement
    same_sign: ClusteredInterval
    """Of comparisons that people decided, the share that the judge decides alike; its ties count
    as half."""
    n_ties: int
    """Comparisons that people left open."""
    n_judge_ties: int


def verdict_agreement(
    query_ids: Sequence[str],
    human: Sequence[int],
    judge: Sequence[int],
    n_verdicts: int,
    seed: int = 0,
) -> VerdictAgreement:
    """Return how two graders' verdicts agree; verdicts have no order.

    Args:
        query_ids: Of each answer, shape (n,), n at least 1.
        human: Verdicts from 0 to n_verdicts - 1, aligned.
        judge: Likewise.
        n_verdicts: How many there are.
        seed: Of the resamples.
    """
    groups = clusters(query_ids)
    m = len(groups.query_ids)
    times = resampled_times(m, seed, N_RESAMPLES)
    by_query = confusions(groups.of_pair, list(human), list(judge), n_verdicts, n_groups=m)
    counts = (times @ by_query.reshape(m, -1)).reshape(-1, n_verdicts, n_verdicts)
    totals = counts.sum(axis=-1)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    recall = _divided(hits, totals)
    return VerdictAgreement(
        counts=tuple(tuple(map(int, row)) for row in counts[0].tolist()),
        kappa=percentile_interval(kappa(counts), m, within=_COEFFICIENT),
        same=percentile_interval(
            _divided(hits.sum(axis=-1), totals.sum(axis=-1)), m, within=_SHARE
        ),
        recall=tuple(
            percentile_interval(recall[:, verdict], m, within=_SHARE)
            for verdict in range(n_verdicts)
        ),
    )


def score_agreement(
    query_ids: Sequence[str], human: Values, judge: Values, seed: int = 0
) -> ScoreAgreement:
    """Return how numbers of two graders agree.

    Args:
        query_ids: Of each answer, shape (n,), n at least 1.
        human: Aligned.
        judge: Likewise.
        seed: Of the resamples.

    Raises:
        UsageError: The lengths differ.
        DataError: A value is no finite number.

    Source: Spearman 1904, The American Journal of Psychology 15(1).
    """
    theirs, mine = sample(human, "human"), sample(judge, "judge")
    if not len(query_ids) == len(theirs) == len(mine):
        raise UsageError("expected values of the same answers")
    groups = clusters(query_ids)
    m = len(groups.query_ids)
    times = resampled_times(m, seed, N_RESAMPLES)

    def correlation(x: Floats, y: Floats) -> ClusteredInterval:
        columns = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
        sums = times @ _sums(columns, groups.of_pair, m)
        return percentile_interval(_pearson(sums), m, within=_COEFFICIENT)

    off = _sums(np.stack([np.ones_like(mine), mine - theirs], axis=1), groups.of_pair, m)
    drawn = times @ off
    # As far as one could be off who gives what either of them ever gave.
    reach = float(max(theirs.max(), mine.max()) - min(theirs.min(), mine.min()))
    within = Ends(-reach, reach) if reach else None
    return ScoreAgreement(
        n=len(theirs),
        pearson=correlation(theirs - theirs.mean(), mine - mine.mean()),
        spearman=correlation(_ranks(theirs), _ranks(mine)),
        bias=percentile_interval(_divided(drawn[:, 1], drawn[:, 0]), m, within=within),
    )


def preference_agreement(
    query_ids: Sequence[str], human: Values, judge: Values, seed: int = 0
) -> PreferenceAgreement:
    """Return how a judge's differences of two answers agree with people's preferences.

    Args:
        query_ids: Of each comparison, shape (n,), n at least 1.
        human: Above 0 where the first answer is preferred, below where the second is.
        judge: The judge's score of the first minus that of the second, aligned.
        seed: Of the resamples.

    Raises:
        UsageError, DataError: As `score_agreement`.
    """
    scores = score_agreement(query_ids, human, judge, seed)
    theirs, mine = np.sign(sample(human)), np.sign(sample(judge))
    groups = clusters(query_ids)
    m = len(groups.query_ids)
    decided = (theirs != 0).astype(np.float64)
    alike = decided * np.where(mine == 0, 0.5, theirs == mine)
    drawn = resampled_times(m, seed, N_RESAMPLES) @ _sums(
        np.stack([decided, alike], axis=1), groups.of_pair, m
    )
    return PreferenceAgreement(
        scores=scores,
        same_sign=percentile_interval(_divided(drawn[:, 1], drawn[:, 0]), m, within=_SHARE),
        n_ties=int((theirs == 0).sum()),
        n_judge_ties=int((mine == 0).sum()),
    )


def _sums(values: Floats, of_pair: np.ndarray, m: int) -> Floats:
    found = np.zeros((m, values.shape[1]))
    np.add.at(found, of_pair, values)
    return found


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = sums.T
    spread = np.maximum(n * xx - x * x, 0) * np.maximum(n * yy - y * y, 0)
    found = _divided(n * xy - x * y, np.sqrt(spread))
    return np.clip(found, -1.0, 1.0)


def _divided(above: Floats, below: Floats) -> Floats:
    """Return the ratio, NaN where the divisor is 0 but for rounding."""
    is_known = np.abs(below) > 1e-12 * np.maximum(np.abs(above), 1.0)
    found: Floats = np.divide(above, below, out=np.full_like(below, np.nan), where=is_known)
    return found


def _ranks(values: Floats) -> Floats:
    """Return ranks around their middle, equal values with the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle = ends - (counts - 1) / 2
    found: Floats = middle[places] - (len(values) + 1) / 2
    return found
