"""How far two graders of the same pairs agree: coefficients of counts of grades.

All but `auc` take counts, shape (..., K, K): how often a pair has the person's
grade (row) and the judge's (column). Leading axes are resamples, and each gives a value. Counts may
be weighted. Where a coefficient is not defined its value is NaN, and never 1.0: two graders who
gave one and the same grade throughout have not shown that they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.measures.checked_samples import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

Grades: TypeAlias = "Sequence[int] | NDArray[np.integer]"
"""One whole number from 0 per pair."""
Weights: TypeAlias = Literal["quadratic", "linear", "none"]
OfCounts: TypeAlias = Callable[[Floats], Floats]
"""From counts, shape (..., K, K), to values, shape (...)."""

N_GRADES: Final = 4
_BATCH: Final = 2**20
"""Weighted pairs held at once."""


def confusion(human: Grades, judge: Grades, n_grades: int = N_GRADES) -> Floats:
    """Return how often each two grades meet, shape (K, K): row the person's, column the judge's.

    Args:
        human: One per pair; may be empty.
        judge: Aligned: human[i] and judge[i] grade the same pair.
        n_grades: K; grades are 0 to K - 1.

    Raises:
        UsageError: The lengths differ.
        DataError: A grade is outside of the scale.
    """
    alone = np.zeros(len(human), dtype=np.intp)
    return confusions(alone, human, judge, n_grades, n_groups=1).reshape(n_grades, n_grades)


def confusions(
    groups: NDArray[np.intp],
    human: Grades,
    judge: Grades,
    n_grades: int = N_GRADES,
    *,
    n_groups: int,
    weights: Sequence[float] | None = None,
) -> Floats:
    """Return the confusion of each group of pairs, shape (n_groups, K, K).

    Args:
        groups: Of each pair, from 0 to n_groups - 1; shape (n,).
        human: As for `confusion`.
        judge: Likewise.
        n_grades: Likewise.
        n_groups: How many there are.
        weights: What each pair counts; 1 where None.

    Raises:
        UsageError, DataError: As `confusion`.
    """
    rows, columns = _grades(human, "human", n_grades), _grades(judge, "judge", n_grades)
    if not len(groups) == len(rows) == len(columns):
        raise UsageError(
            f"expected grades of the same pairs, got {len(rows)} of people and {len(columns)} of "
            f"the judge for {len(groups)} pairs"
        )
    cells = (groups * n_grades + rows) * n_grades + columns
    counts = np.bincount(cells, weights, minlength=n_groups * n_grades**2).astype(np.float64)
    return counts.reshape(n_groups, n_grades, n_grades)


def kappa(counts: Floats, weights: Weights = "none") -> Floats:
    """Return Cohen's kappa: 1 is agreement, 0 what two independent graders of such habits reach.

    Args:
        counts: Shape (..., K, K).
        weights: "none" counts every disagreement alike; "quadratic" by the square of the distance
            of the grades, "linear" by the distance.

    Returns:
        1 - sum(w o) / sum(w e); NaN where both gave one and the same grade throughout, or there is
        no pair.

    Source: Cohen 1960, Educational and Psychological Measurement 20(1); weighted: Cohen 1968,
    Psychological Bulletin 70(4).
    """
    cost = _cost(counts.shape[-1], weights)
    by_chance = counts.sum(axis=-1)[..., :, None] * counts.sum(axis=-2)[..., None, :]
    observed = (cost * counts).sum(axis=(-2, -1)) * counts.sum(axis=(-2, -1))
    return 1 - _ratio(observed, (cost * by_chance).sum(axis=(-2, -1)))


def quadratic_kappa(counts: Floats) -> Floats:
    """Return Cohen's kappa with quadratic weights; see `kappa`."""
    return kappa(counts, "quadratic")


def alpha(counts: Floats) -> Floats:
    """Return Krippendorff's alpha of two graders with the ordinal distance.

    Returns:
        1 - Do / De, at most 1; NaN where all grades are the same, or there is no pair.

    Source: Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.
    """
    met = counts + counts.swapaxes(-2, -1)
    times = met.sum(axis=-1)
    up_to = np.cumsum(times, axis=-1)
    # Grades from c to k inclusive, of which the two ends count half.
    middle = up_to - times / 2
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    n = times.sum(axis=-1)
    observed = (distance * met).sum(axis=(-2, -1)) * (n - 1)
    chance = (distance * times[..., :, None] * times[..., None, :]).sum(axis=(-2, -1))
    return 1 - _ratio(observed, chance)


def ac2(counts: Floats) -> Floats:
    """Return Gwet's AC2 with ordinal weights.

    It is high wherever most pairs are of one grade, whoever grades: read it beside kappa only.

    Returns:
        (pa - pe) / (1 - pe); NaN where both gave one and the same grade throughout (by the formula
        it would be 1), or there is no pair.

    Source: Gwet 2014, Handbook of Inter-Rater Reliability, 4th ed., chapter 4.
    """
    n_grades = counts.shape[-1]
    distance = np.abs(np.subtract.outer(np.arange(n_grades), np.arange(n_grades)))
    likeness = 1 - distance * (distance + 1) / (n_grades * (n_grades - 1))
    shares = _ratio(counts, counts.sum(axis=(-2, -1))[..., None, None])
    habits = (shares.sum(axis=-1) + shares.sum(axis=-2)) / 2
    spread = (habits * (1 - habits)).sum(axis=-1)
    by_chance = likeness.sum() / (n_grades * (n_grades - 1)) * spread
    found = _ratio((likeness * shares).sum(axis=(-2, -1)) - by_chance, 1 - by_chance)
    return np.where(spread > 0, found, np.nan)


def at_least(counts: Floats, threshold: int) -> Floats:
    """Return the counts of two grades, below the threshold and from it on: shape (..., 2, 2).

    Raises:
        UsageError: The threshold is not from 1 to K - 1, so that it parts nothing.
    """
    if not 1 <= threshold < counts.shape[-1]:
        raise UsageError(
            f"threshold: expected a grade from 1 to {counts.shape[-1] - 1}, got {threshold}"
        )
    rows = np.add.reduceat(counts, [0, threshold], axis=-2)
    return np.add.reduceat(rows, [0, threshold], axis=-1)


def sensitivity(binary: Floats) -> Floats:
    """Return the share of what people call relevant that the judge does; NaN where they call none.

    Args:
        binary: Of `at_least`.
    """
    return _ratio(binary[..., 1, 1], binary[..., 1, :].sum(axis=-1))


def specificity(binary: Floats) -> Floats:
    """Return the share of what people call not relevant that the judge does; NaN where none."""
    return _ratio(binary[..., 0, 0], binary[..., 0, :].sum(axis=-1))


def precision(binary: Floats) -> Floats:
    """Return the share of what the judge calls relevant that people do; NaN where it calls none."""
    return _ratio(binary[..., 1, 1], binary[..., :, 1].sum(axis=-1))


def human_rate(binary: Floats) -> Floats:
    """Return the share of pairs that people call relevant; NaN where there is no pair."""
    return _ratio(binary[..., 1, :].sum(axis=-1), binary.sum(axis=(-2, -1)))


def judge_rate(binary: Floats) -> Floats:
    """Return the share of pairs that the judge calls relevant; NaN where there is no pair."""
    return _ratio(binary[..., :, 1].sum(axis=-1), binary.sum(axis=(-2, -1)))


def mean_error(counts: Floats) -> Floats:
    """Return the mean absolute difference of the grades (MAE); NaN where there is no pair."""
    steps = np.abs(np.subtract.outer(np.arange(counts.shape[-1]), np.arange(counts.shape[-1])))
    return _ratio((steps * counts).sum(axis=(-2, -1)), counts.sum(axis=(-2, -1)))


def bias(counts: Floats) -> Floats:
    """Return the mean of the judge's grade minus the person's; NaN where there is no pair."""
    steps = np.subtract.outer(np.arange(counts.shape[-1]), np.arange(counts.shape[-1])).T
    return _ratio((steps * counts).sum(axis=(-2, -1)), counts.sum(axis=(-2, -1)))


def auc_of_grades(counts: Floats, threshold: int) -> Floats:
    """Return the AUC of the judge's grade against what people call relevant; see `auc`.

    Raises:
        UsageError: As `at_least`.
    """
    at_least(counts, threshold)
    negative = counts[..., :threshold, :].sum(axis=-2)
    positive = counts[..., threshold:, :].sum(axis=-2)
    return _auc(positive, negative)


def auc(
    scores: Sequence[float] | Floats,
    is_relevant: NDArray[np.bool_],
    times: Floats,
    groups: NDArray[np.intp],
) -> Floats:
    """Return the chance that a relevant pair has a higher score than one that is not, ties half.

    Args:
        scores: One finite number per pair, shape (n,).
        is_relevant: Whether people call it so, shape (n,).
        times: How often each group of pairs counts, shape (b, m): a row is a resample.
        groups: Of each pair, from 0 to m - 1, shape (n,).

    Returns:
        Shape (b,), each from 0 to 1; NaN where all pairs are relevant, or none is.

    Source: Mann & Whitney 1947, Annals of Mathematical Statistics 18(1); Bamber 1975, Journal of
    Mathematical Psychology 12(4).
    """
    order = np.argsort(np.asarray(scores, dtype=np.float64), kind="stable")
    sorted_scores = np.asarray(scores, dtype=np.float64)[order]
    areas = np.full(len(times), np.nan)
    if not len(order):
        return areas
    starts = np.flatnonzero(np.r_[True, sorted_scores[1:] != sorted_scores[:-1]])
    positive, batch = is_relevant[order].astype(np.float64), max(1, _BATCH // len(order))
    for first in range(0, len(times), batch):
        part = times[first : first + batch][:, groups[order]]
        areas[first : first + batch] = _auc(
            np.add.reduceat(part * positive, starts, axis=-1),
            np.add.reduceat(part * (1 - positive), starts, axis=-1),
        )
    return areas


def _auc(positive: Floats, negative: Floats) -> Floats:
    """Return the AUC of counts by level of the score, ascending along the last axis."""
    below = np.cumsum(negative, axis=-1) - negative / 2
    pairs = positive.sum(axis=-1) * negative.sum(axis=-1)
    return _ratio((positive * below).sum(axis=-1), pairs)


def _cost(n_grades: int, weights: Weights) -> Floats:
    steps = np.abs(np.subtract.outer(np.arange(n_grades), np.arange(n_grades))).astype(np.float64)
    if weights == "none":
        return (steps > 0).astype(np.float64)
    return steps**2 if weights == "quadratic" else steps


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, NaN where the whole is 0."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    part, whole = np.broadcast_arrays(part, whole)
    found: Floats = np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole != 0)
    return found


def _grades(values: Grades, name: str, n_grades: int) -> NDArray[np.intp]:
    array = np.asarray(values)
    if not len(array):
        return np.empty(0, dtype=np.intp)
    if array.dtype.kind not in "iu":
        raise DataError(f"{name}: expected whole numbers, got {array[0]!r} and the like")
    outside = (array < 0) | (array >= n_grades)
    if outside.any():
        n = int(np.argmax(outside))
        raise DataError(
            f"{name}: grade {n}: expected a whole number from 0 to {n_grades - 1}, got {array[n]}"
        )
    return array.astype(np.intp)
