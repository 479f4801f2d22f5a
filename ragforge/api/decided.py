"""Decisions between runs by as few judged pairs as they took, as text, JSON and rows."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Unpack

from ragforge.api.call import JUDGE, Handle, begin, part_of
from ragforge.api.keywords import ComparingKeywords
from ragforge.api.results import Estimate, Result, plain_values
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import render_table
from ragforge.evaluating.graded_by import graders_text
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.comparing.as_needed import NeededComparison, decide_as_needed
from ragforge.pipeline.comparing.needed_pairs import DEFAULT_MEASURE, Declared
from ragforge.pipeline.comparing.several_as_needed import SeveralNeeded, decide_several_as_needed
from ragforge.pipeline.job import Job, Mode
from ragforge.report.as_needed import decision_lines, standings_lines, standings_table


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
        """Name of a run; TIE; or UNKNOWN, as a baseline graded or failures could turn it."""
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
            why=found.why,
            decided=found.decided,
            pool=found.pool,
            n_queries=found.n_queries,
            looks=found.looks,
            judge=graders_text(found.graded_by, found.judge),
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BestRuns(Result):
    """Which of several runs may be the best, decided on a sample of the pairs.

    Args:
        found: What was decided, and what it rests on.
        notes: What was told on the way.
    """

    found: SeveralNeeded
    notes: tuple[str, ...] = field(default=())

    @property
    def may_be_best(self) -> tuple[str, ...]:
        """Holds the best run in at least 95 %; the best by the estimate first."""
        return self.found.may_be_best

    @property
    def worse(self) -> dict[str, str]:
        """The runs that are worse for sure, each with a run that was shown to be better."""
        rows = self.rows()
        return {row["run"]: row["beaten_by"] for row in rows if row["beaten_by"] is not None}

    @property
    def winner(self) -> str:
        """The one run that may be the best, TIE for several, or UNKNOWN.

        UNKNOWN where a baseline graded, or where all others may be it only for what failed.
        """
        return self.found.winner

    @property
    def pairs_used(self) -> int:
        """Pairs judged for this decision."""
        return self.found.pairs_used

    @property
    def pool(self) -> int:
        """Pairs that judging all runs as a whole would take."""
        return self.found.pool

    @property
    def look(self) -> int:
        """How often the grades were looked at."""
        return self.found.decided.n_looks

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known to read the figures."""
        return self.found.warnings

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge compare --judge-as-needed --json` prints of several runs."""
        return self.found.as_json()

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a run: its difference from the first, and what beat it."""
        rows: list[dict[str, Any]] = self.to_dict()["runs"]
        return rows

    def table(self) -> str:
        """Return a row a run, and what it rests on."""
        found = self.found
        table = standings_table(found.names, found.decided, is_baseline=found.is_baseline)
        lines = standings_lines(
            measure=found.measure,
            decided=found.decided,
            pool=found.pool,
            n_queries=found.n_queries,
            judge=graders_text(found.graded_by, found.judge),
        )
        return "\n".join([render_table(table.headers, table.rows), *lines])


async def compare_as_needed(
    handle: Handle,
    runs: Sequence[str],
    measures: Sequence[str],
    mode: Mode,
    sample_seed: int,
    **settings: Unpack[ComparingKeywords],
) -> RunDecision | BestRuns | Estimate:
    """Judge pairs of runs until it is decided which is better; see `compare`."""
    if len(measures) > 1:
        raise UsageError("compare: judge_as_needed decides by one measure, declared before")
    arguments = ("measures", "again", "dry_run", "sample_seed")
    taken = replace(JUDGE, name="compare", arguments=arguments)
    with begin(taken, settings, handle.keywords, mode=mode) as call:
        dataset = part_of(handle)
        names = list(runs) or dataset.run_names()
        measure = measures[0] if measures else DEFAULT_MEASURE
        declared = Declared(measure, sample_seed)
        return decision_of(await decide_runs(dataset, names, call.job, declared), call.notes)


async def decide_runs(
    dataset: Dataset, names: Sequence[str], job: Job, declared: Declared
) -> NeededComparison | SeveralNeeded | dict[str, object]:
    """Judge pairs until it is decided: of two runs which is better, of more which may be best."""
    if len(names) == 2:
        return await decide_as_needed(dataset, names, job, declared)
    return await decide_several_as_needed(dataset, names, job, declared)


def decision_of(
    found: NeededComparison | SeveralNeeded | dict[str, object], notes: Sequence[str] = ()
) -> RunDecision | BestRuns | Estimate:
    """Return a decision, or what it would take, as users have it."""
    if isinstance(found, NeededComparison):
        return RunDecision(found, tuple(notes))
    if isinstance(found, SeveralNeeded):
        return BestRuns(found, tuple(notes))
    return Estimate(found, tuple(notes))
