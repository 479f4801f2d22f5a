"""The history of a dataset in a report: what changed between evaluations, and the trends."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.formatting import MISSING, number
from ragforge.evaluating.graded_by import judge_command, judges_text, missing_grades_text
from ragforge.evaluating.history.changes import Change, changes
from ragforge.evaluating.history.trends import LEAST_DIFFERENCE, Trend, trend
from ragforge.evaluating.runs import PRIMARY
from ragforge.evaluating.text_table import Table
from ragforge.files.set.history import History
from ragforge.records import Evaluation
from ragforge.report.comparison.words import signed
from ragforge.report.history_text import needed_text

NEWER: Final = (
    "What is there now was not evaluated yet; it stands here as the last state. "
    "`ragforge evaluate` writes it down."
)
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


def changes_table(history: History, runs: Sequence[str]) -> Table:
    """Return what changed since the last evaluation, as rows of text."""
    rows = tuple(
        (item.change.what, item.change.text, ", ".join(item.runs) or "all")
        for item in changes_since_last(history, runs)
    )
    note = NEWER if set(not_evaluated_yet(history)) & set(runs) else ""
    return Table("What changed since the last evaluation", ("what", "how", "runs"), rows, note)


def trends_table(history: History, runs: Sequence[str]) -> Table:
    """Return full and bridge score of each run with a trend, as rows of text."""
    measure = followed_measure(history)
    rows = tuple(_trend_row(history, trend) for trend in trends(history, runs) if trend.since)
    headers = ("run", "before", "now", "items", "difference", "interval", "trend")
    note = (
        "Before and now are over all items of the set as it was each time. The difference is on "
        "the items that did not change between the two, where there are any: it tells a changed "
        "system from a changed set. It is a trend where its 95 % interval leaves 0 out. Where the "
        "set changed and no item is known to be the same, it is UNKNOWN: easier queries would pass "
        "for a better retriever."
    )
    note = " ".join([note, *_mixed(history, runs, measure), *_needed(trends(history, runs))])
    return Table(f"{measure} since the last evaluation", headers, rows, note)


def _mixed(history: History, runs: Sequence[str], measure: str) -> Iterator[str]:
    """Say of which runs no trend is known, as no one judge graded both rankings."""
    for movement in trends(history, runs):
        now = history.find(movement.until)
        mixed = now.mixed if now is not None and now.bridge_to == movement.since else None
        if mixed is not None and measure in mixed.measures:
            command = judge_command(mixed.ask, "DIR", [movement.run], n_earlier=1)
            yield (
                f"{movement.run}: of {mixed.measures[measure]:,} items no one judge graded both "
                f"rankings ({judges_text(mixed.judges)}); {missing_grades_text(mixed, command)}."
            )


def _needed(trends: Iterable[Trend]) -> Iterator[str]:
    """Say of which runs how many items would tell, where no difference was shown."""
    for item in trends:
        if text := needed_text(item, LEAST_DIFFERENCE):
            yield f"{item.run}: items that would show a difference in 4 of 5 samples: {text}."


def _trend_row(history: History, trend: Trend) -> tuple[str, ...]:
    evaluations = history.of_run(trend.run)
    measured = {item.evaluation_id: item.measures.get(trend.measure) for item in evaluations}
    old, new = measured[trend.since], measured[trend.until]
    items = f"{trend.n:,} unchanged" if trend.on == "same items" else "all"
    ends = "the same rankings" if trend.is_identity else MISSING
    if not trend.is_identity and trend.low is not None and trend.high is not None:
        ends = f"[{trend.low:+.3f}, {trend.high:+.3f}]"
    return (
        trend.run,
        number(old.mean if old else None),
        number(new.mean if new else None),
        items,
        signed(trend.diff, 3),
        ends,
        trend.verdict,
    )
