"""The history of a run, and of all runs by rounds: what changed, and how measures moved."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias, TypeVar

from ragforge.deferred import dataclass
from ragforge.evaluating.history.changes import Change, changes, stands_for_same
from ragforge.evaluating.history.trends import (
    Trend,
    comparable,
    difference_between,
    has_several_judges,
    is_open,
    is_same_set,
    last_two_states,
    trend,
    trend_on_bridge,
    until_change,
)
from ragforge.evaluating.runs import PRIMARY
from ragforge.files.set.history import History, state_of
from ragforge.records import BridgeMean, Evaluation, MeasuredMean

MoveCause: TypeAlias = Literal[
    "system", "set", "judgments", "both", "failures", "neither", "unknown"
]
N = TypeVar("N", int, float)
_NO_MEANS: Final[Mapping[str, BridgeMean]] = {}
MOST_ROUNDS: Final = 30
"""Rounds that are looked at, the latest."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Whether it was the system that moved a measure, or the set it is measured on."""

    measure: str
    cause: MoveCause
    """`system`: the same items came out otherwise. `set`: the mean over all items moved further
    than the same items, and whatever failed, allow; `judgments` where only its grades changed.
    `failures`: it did so by the queries that failed, which are in no mean."""
    full: float | None
    """Difference of the means over all items; None where it may be one of several judges."""
    same: BridgeMean | None
    """Of the items that are equal in both."""


def moved(
    before: Evaluation, now: Evaluation, measure: str, same: BridgeMean | None = None
) -> Moved:
    """Return what moved a measure between two evaluations of a run, by the items in common.

    Args:
        before: An earlier one.
        now: The later one.
        measure: Canonical name.
        same: The items that are equal in both, where the later one has no bridge to the earlier.
    """
    full = difference_between(before.measures.get(measure), now.measures.get(measure))
    if now.bridge_to == before.evaluation_id and not is_open(before, now):
        same = now.bridge.get(measure)
    if has_several_judges(before, now):
        return Moved(measure, _cause_beside_judges(before, now, measure, same), None, same)
    if same is None or full is None:
        return Moved(measure, "unknown", full, same)
    return Moved(measure, _cause(before, now, measure, same), full, same)


def _cause_beside_judges(
    before: Evaluation, now: Evaluation, measure: str, same: BridgeMean | None
) -> MoveCause:
    """Say whether the system moved; what else moved a mean over all items may be the judges."""
    if same is None:
        return "unknown"
    verdict = trend_on_bridge(before, now, measure, same).verdict
    if verdict == "UNKNOWN":
        return "unknown"
    return "judgments" if verdict == "STABLE" else "system"


def _cause(before: Evaluation, now: Evaluation, measure: str, same: BridgeMean) -> MoveCause:
    movement = trend_on_bridge(before, now, measure, same)
    if same.low is None or same.high is None or movement.verdict == "UNKNOWN":
        return "unknown"
    old, new = before.measures[measure], now.measures[measure]
    least, full, most = _differences(old, new)
    of_set = not is_same_set(before, now) and (most < same.low or least > same.high)
    if movement.verdict != "STABLE":
        return "both" if of_set else "system"
    if of_set:
        is_same = before.digests.queries == now.digests.queries and stands_for_same(before, now)
        return "judgments" if is_same else "set"
    if same.low <= full <= same.high:
        return "neither"
    return "failures" if old.n_failed or new.n_failed else "unknown"


def _differences(old: MeasuredMean, new: MeasuredMean) -> tuple[float, float, float]:
    """Return the least difference of two means that failures allow, their own, and the greatest."""
    old_least, old_mean, old_most = _failure_bounds(old)
    new_least, new_mean, new_most = _failure_bounds(new)
    return new_least - old_most, new_mean - old_mean, new_most - old_least


def _failure_bounds(of: MeasuredMean) -> tuple[float, float, float]:
    assert of.mean is not None
    return (
        of.mean if of.least is None else of.least,
        of.mean,
        of.mean if of.most is None else of.most,
    )


@dataclass(frozen=True, slots=True)
class Step:
    """An evaluation, with those right after it that only repeat it."""

    evaluation: Evaluation
    """The last of them."""
    count: int
    changes: tuple[Change, ...]
    """Against the evaluation before."""
    calls: int | None
    """Model calls that the set took since the step before; None where that cannot be told."""
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class RunHistory:
    """One run of a dataset over its evaluations."""

    run: str
    evaluations: tuple[Evaluation, ...]
    """Oldest first; at least one."""
    steps: tuple[Step, ...]
    """The same, repeats put together."""
    measures: tuple[str, ...]
    """Those that are reported, the one that is drawn first."""
    before: Evaluation | None
    """The one before the newest state; None where all are alike."""
    now: Evaluation
    """The first in the newest state; those after it, if any, only repeat it."""
    changes: tuple[Change, ...]
    """Between these two, the weightiest first."""
    trends: tuple[Trend, ...]
    """By measure, between the last two states that have it: these two, but where others were
    measured in between."""
    moved: tuple[Moved, ...]
    """As trends, of the measures with an earlier state."""
    window: tuple[Trend, ...]
    """By measure, from the first to the last of the newest few evaluations; () where there are but
    two."""
    window_size: int
    dataset: str = ""
    """Where the set is, for what is to be done about it."""

    @property
    def n_repeats(self) -> int:
        """Evaluations at the end that only repeat the newest state."""
        return len(self.evaluations) - 1 - self.evaluations.index(self.now)

    def find(self, evaluation_id: str) -> Evaluation | None:
        """Return an evaluation by its id; None where it is not there."""
        return next((one for one in self.evaluations if one.evaluation_id == evaluation_id), None)


def run_history(
    evaluations: Sequence[Evaluation],
    measures: Sequence[str] = (),
    *,
    window: Sequence[Trend] = (),
    window_size: int = 0,
    bridges: Mapping[str, BridgeMean] = _NO_MEANS,
    dataset: str = "DIR",
) -> RunHistory:
    """Work out what a run's evaluations say.

    Args:
        evaluations: Of one run, oldest first; at least one.
        measures: Canonical names; those of the newest evaluation where empty.
        window: Where the measures went over the last evaluations.
        window_size: How many these are.
        bridges: By measure, of the items that are equal in its last two states, where they were
            not measured one after the other.
        dataset: Where the set is.
    """
    names = tuple(measures) or tuple(evaluations[-1].measures)
    distinct = until_change(comparable(evaluations))
    before, now = (distinct[-2] if len(distinct) > 1 else None), distinct[-1]
    pairs = {name: last_two_states(evaluations, name) for name in names}
    return RunHistory(
        run=now.run,
        evaluations=tuple(evaluations),
        steps=tuple(steps(evaluations)),
        measures=names,
        before=before,
        now=now,
        changes=() if before is None else tuple(changes(before, now)),
        trends=tuple(trend(pairs[name] or (now,), name, bridges.get(name)) for name in names),
        moved=tuple(moved(*pair, name, bridges.get(name)) for name, pair in pairs.items() if pair),
        window=tuple(window),
        window_size=window_size,
        dataset=dataset,
    )


def steps(evaluations: Iterable[Evaluation]) -> Iterator[Step]:
    """Yield evaluations, repeats put together, with what changed and was spent in between.

    Args:
        evaluations: Of one run, oldest first.
    """
    before: Evaluation | None = None
    for _, group in groupby(evaluations, key=state_of):
        same = list(group)
        now = same[-1]
        yield Step(
            evaluation=now,
            count=len(same),
            changes=() if before is None else tuple(changes(before, same[0])),
            calls=None if before is None else _increase(before.spent.calls, now.spent.calls),
            cost_usd=None
            if before is None
            else _increase(before.spent.cost_usd, now.spent.cost_usd),
        )
        before = now


def _increase(old: N | None, new: N | None) -> N | None:
    """Return what came to a total; None where it is not known, or was set back."""
    return None if old is None or new is None or new < old else new - old


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
    """Return the latest rounds, oldest first."""
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


def followed_measure(history: History, decides: str = PRIMARY) -> str:
    """Return the measure whose trend is reported: that which decides, where the history has it."""
    named = [name for item in history.evaluations for name in item.measures]
    return next((name for name in (decides, PRIMARY, *reversed(named)) if name in named), decides)


def trends(history: History, runs: Sequence[str], decides: str = PRIMARY) -> list[Trend]:
    """Return each run's trend between its last two states, in the `followed_measure`."""
    measure = followed_measure(history, decides)
    lasting = [history.of_run(run) for run in runs]
    return [
        trend(evaluations, measure)
        for evaluations in lasting
        if any(measure in item.measures for item in evaluations)
    ]
