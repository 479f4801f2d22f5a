"""Rounds of evaluations: what changed between them, and each run's trend since the round before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.history.changes import Change, changes
from ragforge.evaluating.history.trends import Trend, trend
from ragforge.evaluating.runs import PRIMARY
from ragforge.files.set.history import History
from ragforge.records import Evaluation

MOST_ROUNDS: Final = 30
"""Rounds that are looked at, the latest."""


@dataclass(frozen=True, slots=True)
class EvaluationRound:
    """Evaluations that were made one after the other, at most one of each run."""

    evaluations: Mapping[str, Evaluation]
    """By run."""

    @property
    def day(self) -> str:
        """When, as YYYY-MM-DD; "now" for a state that was not evaluated yet."""
        return next(iter(self.evaluations.values())).at[:10] or "now"


@dataclass(frozen=True, slots=True)
class Changed:
    """Something that changed for some runs."""

    change: Change
    runs: tuple[str, ...]
    """Empty where it changed for all of them."""


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """What changed since an evaluation."""

    evaluation: Evaluation
    """The earlier one, of one of the runs."""
    changed: tuple[Changed, ...]
    """The weightiest first."""


def evaluation_rounds(history: History) -> list[EvaluationRound]:
    """Return the latest evaluation_rounds, oldest first."""
    rounds: list[dict[str, Evaluation]] = []
    for item in history.evaluations:
        if not rounds or item.run in rounds[-1]:
            rounds.append({})
        rounds[-1][item.run] = item
    return [EvaluationRound(evaluations) for evaluations in rounds[-MOST_ROUNDS:]]


def changes_since(history: History, runs: Sequence[str]) -> ChangesSince | None:
    """Return what changed since the round before, or since the last one that differs.

    Args:
        history: Of the dataset.
        runs: Which; those with fewer than two evaluations tell nothing.

    Returns:
        None where no run was evaluated twice.
    """
    rounds = evaluation_rounds(history)
    now = {run: history.of_run(run)[-1] for run in runs if len(history.of_run(run)) > 1}
    newest = None
    for place in reversed(range(len(rounds) - 1)):
        before = {run: one for run in now if (one := _until(rounds, place, run)) != now[run]}
        known = {run: one for run, one in before.items() if one is not None}
        if not known:
            continue
        changed = merge_changes({run: changes(one, now[run]) for run, one in known.items()})
        this = ChangesSince(next(iter(known.values())), tuple(changed))
        if changed:
            return this
        newest = newest or this
    return newest


def changes_since_last(history: History, runs: Sequence[str]) -> tuple[Changed, ...]:
    """Return what changed, as `changes_since`; nothing where no run was evaluated twice."""
    latest = changes_since(history, runs)
    return () if latest is None else latest.changed


def _until(rounds: Sequence[EvaluationRound], place: int, run: str) -> Evaluation | None:
    """Return the last evaluation of a run up to a round."""
    earlier = [one.evaluations[run] for one in rounds[: place + 1] if run in one.evaluations]
    return earlier[-1] if earlier else None


def changes_at(rounds: Sequence[EvaluationRound], place: int) -> list[Changed]:
    """Return what had changed at a round since the last evaluation of each run before it."""
    by_run = {}
    for run, now in rounds[place].evaluations.items():
        before = _until(rounds, place - 1, run)
        if before is not None:
            by_run[run] = changes(before, now)
    return merge_changes(by_run)


def merge_changes(by_run: Mapping[str, Iterable[Change]]) -> list[Changed]:
    """Return changes once, with the runs that they concern."""
    runs_of: dict[Change, list[str]] = {}
    for run, of_run in by_run.items():
        for change in of_run:
            runs_of.setdefault(change, []).append(run)
    return [
        Changed(change, () if len(runs) == len(by_run) else tuple(runs))
        for change, runs in runs_of.items()
    ]


def not_evaluated_yet(history: History) -> tuple[str, ...]:
    """Return the runs whose state of now is newer than their last evaluation, sorted."""
    return tuple(sorted(item.run for item in history.evaluations if not item.at))


def followed_measure(history: History) -> str:
    """Return the measure whose trend is reported; "" where there is none."""
    named = [name for item in history.evaluations for name in item.measures]
    return PRIMARY if PRIMARY in named or not named else named[-1]


def trends(history: History, runs: Sequence[str]) -> list[Trend]:
    """Return each run's trend since its evaluation before."""
    measure = followed_measure(history)
    lasting = [history.of_run(run) for run in runs]
    return [
        trend(evaluations, measure)
        for evaluations in lasting
        if any(measure in item.measures for item in evaluations)
    ]
