"""The history of one run, as it is shown: what changed, where it is going, its evaluations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, TypeVar

from ragforge.files.history import state_of
from ragforge.records import BridgeMean, Evaluation
from ragforge.report.history.changes import Change, changes
from ragforge.report.history.moved import Moved, moved
from ragforge.report.history.trends import Trend, comparable, trend, until_change

N = TypeVar("N", int, float)

_NO_MEANS: Final[Mapping[str, BridgeMean]] = {}


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
    """Those that are told, the one that is drawn first."""
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
    told = until_change(comparable(evaluations))
    before, now = (told[-2] if len(told) > 1 else None), told[-1]
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


def last_two_states(
    evaluations: Sequence[Evaluation], measure: str
) -> tuple[Evaluation, Evaluation] | None:
    """Return the last two evaluations that have a measure, repeats at the end left out."""
    having = [item for item in evaluations if measure in item.measures]
    told = until_change(comparable(having))
    return (told[-2], told[-1]) if len(told) > 1 else None


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
            calls=None if before is None else _more(before.spent.calls, now.spent.calls),
            cost_usd=None if before is None else _more(before.spent.cost_usd, now.spent.cost_usd),
        )
        before = now


def _more(old: N | None, new: N | None) -> N | None:
    """Return what came to a total; None where it is not known, or was set back."""
    return None if old is None or new is None or new < old else new - old
