"""A decision between two runs by as few judged pairs as it took, as text, JSON and rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

from ragforge.api.call import JUDGE, Handle, begin, part_of
from ragforge.api.keywords import ComparingKeywords
from ragforge.api.results import Estimate, Result, plain_values
from ragforge.errors import UsageError
from ragforge.pipeline.comparing.as_needed import (
    DEFAULT_MEASURE,
    NeededComparison,
    decide_as_needed,
)
from ragforge.pipeline.job import Mode
from ragforge.report.as_needed import decision_lines


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RunDecision(Result):
    """Which of two runs is better, decided on a sample of the pairs.

    Args:
        found: What was decided, and what it rests on.
        notes: What was told on the way.
    """

    found: NeededComparison
    notes: tuple[str, ...] = field(default=())

    @property
    def winner(self) -> str:
        """Name of a run; TIE; or UNKNOWN where a baseline graded."""
        return self.found.winner

    @property
    def measure(self) -> str:
        """The one that decided."""
        return self.found.measure

    @property
    def difference(self) -> float:
        """The second run less the first, in the mean over queries."""
        return self.found.decided.look.difference

    @property
    def interval(self) -> tuple[float, float]:
        """Where the difference lies; wider where it was decided early."""
        return self.found.decided.low, self.found.decided.high

    @property
    def pairs_used(self) -> int:
        """Pairs judged for this decision."""
        return self.found.pairs_used

    @property
    def pool(self) -> int:
        """Pairs that judging both runs as a whole would take."""
        return self.found.pool

    @property
    def look(self) -> int:
        """How often the grades were looked at."""
        return self.found.looks

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read the figures."""
        return self.found.warnings

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge compare --judge-as-needed --json` prints."""
        return self.found.as_json()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row with all that was found."""
        return [plain_values(self.to_dict())]

    def table(self) -> str:
        """Return what was decided and what it rests on, a sentence a line."""
        found = self.found
        lines = decision_lines(
            names=(found.a, found.b),
            measure=found.measure,
            winner=found.winner,
            decided=found.decided,
            pool=found.pool,
            n_queries=found.n_queries,
            looks=found.looks,
            judge=found.judge,
        )
        return "\n".join(lines)


async def compare_as_needed(
    handle: Handle,
    runs: Sequence[str],
    measures: Sequence[str],
    mode: Mode,
    sample_seed: int,
    **settings: Unpack[ComparingKeywords],
) -> RunDecision | Estimate:
    """Judge pairs of two runs until it is decided which is better; see `compare`."""
    if len(measures) > 1:
        raise UsageError("compare: judge_as_needed decides by one measure, declared before")
    arguments = ("measures", "again", "dry_run", "sample_seed")
    taken = replace(JUDGE, name="compare", arguments=arguments)
    with begin(taken, settings, handle.keywords, mode=mode) as call:
        dataset = part_of(handle)
        names = list(runs) or dataset.run_names()
        measure = measures[0] if measures else DEFAULT_MEASURE
        found = await decide_as_needed(dataset, names, call.job, measure, sample_seed)
        if isinstance(found, dict):
            return Estimate(found, tuple(call.notes))
        return RunDecision(found, tuple(call.notes))
