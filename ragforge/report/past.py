"""The history of a dataset as a report tells it: what changed, and where it went."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.graded_by import judge_command, judges_shown, missing_grades
from ragforge.evaluating.history.changes import Change, changes
from ragforge.evaluating.history.trends import LEAST_DIFFERENCE, Trend, trend
from ragforge.evaluating.runs import PRIMARY
from ragforge.evaluating.text_table import Table
from ragforge.evaluating.wording import MISSING, number
from ragforge.files.set.history import History
from ragforge.records import Evaluation
from ragforge.report.comparison.words import signed
from ragforge.report.history_text import needed_text

NEWER: Final = (
    "What is there now was not evaluated yet; it stands here as the last state. "
    "`ragforge evaluate` writes it down."
)
MOST_SITTINGS: Final = 30
"""Sittings that are looked at, the latest."""


@dataclass(frozen=True, slots=True)
class Sitting:
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
class Since:
    """What changed since an evaluation."""

    evaluation: Evaluation
    """The earlier one, of one of the runs."""
    changed: tuple[Changed, ...]
    """The weightiest first."""


def sittings(history: History) -> list[Sitting]:
    """Return the latest sittings, oldest first."""
    found: list[dict[str, Evaluation]] = []
    for item in history.evaluations:
        if not found or item.run in found[-1]:
            found.append({})
        found[-1][item.run] = item
    return [Sitting(one) for one in found[-MOST_SITTINGS:]]


def since(history: History, runs: Sequence[str]) -> Since | None:
    """Return what changed since the sitting before, or since the last one that differs.

    Args:
        history: Of the dataset.
        runs: Which; those with fewer than two evaluations tell nothing.

    Returns:
        None where no run was evaluated twice.
    """
    found = sittings(history)
    now = {run: history.of_run(run)[-1] for run in runs if len(history.of_run(run)) > 1}
    newest = None
    for place in reversed(range(len(found) - 1)):
        before = {run: one for run in now if (one := _until(found, place, run)) != now[run]}
        known = {run: one for run, one in before.items() if one is not None}
        if not known:
            continue
        changed = together({run: changes(one, now[run]) for run, one in known.items()})
        this = Since(next(iter(known.values())), tuple(changed))
        if changed:
            return this
        newest = newest or this
    return newest


def latest_changes(history: History, runs: Sequence[str]) -> tuple[Changed, ...]:
    """Return what changed, as `since`; nothing where no run was evaluated twice."""
    found = since(history, runs)
    return () if found is None else found.changed


def _until(found: Sequence[Sitting], place: int, run: str) -> Evaluation | None:
    """Return the last evaluation of a run up to a sitting."""
    earlier = [one.evaluations[run] for one in found[: place + 1] if run in one.evaluations]
    return earlier[-1] if earlier else None


def changes_at(found: Sequence[Sitting], place: int) -> list[Changed]:
    """Return what had changed at a sitting since the last evaluation of each run before it."""
    by_run = {}
    for run, now in found[place].evaluations.items():
        before = _until(found, place - 1, run)
        if before is not None:
            by_run[run] = changes(before, now)
    return together(by_run)


def together(by_run: Mapping[str, Iterable[Change]]) -> list[Changed]:
    """Return changes once, with the runs that they concern."""
    runs_of: dict[Change, list[str]] = {}
    for run, found in by_run.items():
        for change in found:
            runs_of.setdefault(change, []).append(run)
    return [
        Changed(change, () if len(runs) == len(by_run) else tuple(runs))
        for change, runs in runs_of.items()
    ]


def unkept(history: History) -> tuple[str, ...]:
    """Return the runs whose state of now is newer than their last evaluation, sorted."""
    return tuple(sorted(item.run for item in history.evaluations if not item.at))


def followed(history: History) -> str:
    """Return the measure by which a history is told; "" where there is none."""
    named = [name for item in history.evaluations for name in item.measures]
    return PRIMARY if PRIMARY in named or not named else named[-1]


def trends(history: History, runs: Sequence[str]) -> list[Trend]:
    """Return where each run went since its evaluation before."""
    measure = followed(history)
    lasting = [history.of_run(run) for run in runs]
    return [
        trend(found, measure)
        for found in lasting
        if any(measure in item.measures for item in found)
    ]


def changes_table(history: History, runs: Sequence[str]) -> Table:
    """Return what changed since the last evaluation, as rows of text."""
    rows = tuple(
        (item.change.what, item.change.text, ", ".join(item.runs) or "all")
        for item in latest_changes(history, runs)
    )
    note = NEWER if set(unkept(history)) & set(runs) else ""
    return Table("What changed since the last evaluation", ("what", "how", "runs"), rows, note)


def trends_table(history: History, runs: Sequence[str]) -> Table:
    """Return full and bridge score of each run with a trend, as rows of text."""
    measure = followed(history)
    rows = tuple(_trend_row(history, found) for found in trends(history, runs) if found.since)
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
    for found in trends(history, runs):
        now = history.find(found.until)
        mixed = now.mixed if now is not None and now.bridge_to == found.since else None
        if mixed is not None and measure in mixed.measures:
            command = judge_command(mixed.ask, "DIR", [found.run], n_earlier=1)
            yield (
                f"{found.run}: of {mixed.measures[measure]:,} items no one judge graded both "
                f"rankings ({judges_shown(mixed.judges)}); {missing_grades(mixed, command)}."
            )


def _needed(found: Iterable[Trend]) -> Iterator[str]:
    """Say of which runs how many items would tell, where no difference was shown."""
    for item in found:
        if text := needed_text(item, LEAST_DIFFERENCE):
            yield f"{item.run}: items that would show a difference in 4 of 5 samples: {text}."


def _trend_row(history: History, found: Trend) -> tuple[str, ...]:
    evaluations = history.of_run(found.run)
    measured = {item.evaluation_id: item.measures.get(found.measure) for item in evaluations}
    old, new = measured[found.since], measured[found.until]
    items = f"{found.n:,} unchanged" if found.on == "same items" else "all"
    ends = "the same rankings" if found.is_identity else MISSING
    if not found.is_identity and found.low is not None and found.high is not None:
        ends = f"[{found.low:+.3f}, {found.high:+.3f}]"
    return (
        found.run,
        number(old.mean if old else None),
        number(new.mean if new else None),
        items,
        signed(found.diff, 3),
        ends,
        found.verdict,
    )
