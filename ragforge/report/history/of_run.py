"""The history of one run, as it is shown: what changed, where it is going, its evaluations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from ragforge.files.history import state_of
from ragforge.records import Evaluation
from ragforge.report.history.moved import Moved, moved
from ragforge.report.history.trends import Change, Trend, changes, trend, until_change

N = TypeVar("N", int, float)


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
    """By measure, between the same two."""
    moved: tuple[Moved, ...]
    """By measure, between the same two; () where there is but one state."""
    window: tuple[Trend, ...]
    """By measure, over the last few evaluations; () where there are but two."""
    window_size: int

    @property
    def n_repeats(self) -> int:
        """Evaluations at the end that only repeat the newest state."""
        return len(self.evaluations) - 1 - self.evaluations.index(self.now)


def run_history(
    evaluations: Sequence[Evaluation],
    measures: Sequence[str] = (),
    *,
    window: Sequence[Trend] = (),
    window_size: int = 0,
) -> RunHistory:
    """Work out what a run's evaluations say.

    Args:
        evaluations: Of one run, oldest first; at least one.
        measures: Canonical names; those of the newest evaluation where empty.
        window: Where the measures went over the last evaluations.
        window_size: How many these are.
    """
    names = tuple(measures) or tuple(evaluations[-1].measures)
    told = until_change(evaluations)
    before, now = (told[-2] if len(told) > 1 else None), told[-1]
    return RunHistory(
        run=now.run,
        evaluations=tuple(evaluations),
        steps=tuple(steps(evaluations)),
        measures=names,
        before=before,
        now=now,
        changes=() if before is None else tuple(changes(before, now)),
        trends=tuple(trend(told, name) for name in names),
        moved=() if before is None else tuple(moved(before, now, name) for name in names),
        window=tuple(window),
        window_size=window_size,
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
            calls=None if before is None else _more(before.spent.calls, now.spent.calls),
            cost_usd=None if before is None else _more(before.spent.cost_usd, now.spent.cost_usd),
        )
        before = now


def _more(old: N | None, new: N | None) -> N | None:
    """Return what came to a total; None where it is not known, or was set back."""
    return None if old is None or new is None or new < old else new - old
