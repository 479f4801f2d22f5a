"""Tell which of several runs may be the best by as few judged pairs as that takes."""

from collections.abc import Sequence
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import GradedBy
from ragforge.files.set.dataset import Dataset
from ragforge.measures.first_hits_several import SeveralFirstHits
from ragforge.measures.sequential import shares_for
from ragforge.measures.sequential_several import SeveralDecision, Standings
from ragforge.pipeline.comparing.needed_pairs import (
    BY_DEFAULT,
    Declared,
    keep_sample,
    needed_runs,
    until_decided,
    warnings_of,
)
from ragforge.pipeline.comparing.price import price_of_pairs
from ragforge.pipeline.job import Job

_TYPICAL: Final = (0.55, 0.65)
"""Of the pool: what five runs took, on human-judged sets."""
TYPICAL_READ: Final[tuple[float, float]] = (0.24, 0.35)
"""The same where all are read down to their first hits, by RR and by Success."""


@dataclass(frozen=True, slots=True)
class SeveralNeeded:
    """Which runs may be the best, and what that rests on."""

    names: tuple[str, ...]
    measure: str
    decided: Standings
    """Its runs are places in the names."""
    pairs_used: int
    """Judged for this decision."""
    pairs_known: int
    """Of those that decide, graded before."""
    pool: int
    """Pairs that judging all runs as a whole would take."""
    n_queries: int
    left_out: tuple[str, ...]
    """Queries on which a retriever failed."""
    judge: str
    is_baseline: bool
    n_failed: int
    """Judgments that failed."""
    warnings: tuple[str, ...]
    """What must be known to read the figures."""
    graded_by: tuple[GradedBy, ...] = ()
    """Who gave the grades, those of before included; who gave most first."""

    @property
    def may_be_best(self) -> tuple[str, ...]:
        """Runs that none was shown to be better than; of a baseline's grades all."""
        if self.is_baseline:
            return self.names
        return tuple(self.names[run] for run in self.decided.may_be_best)

    @property
    def winner(self) -> str:
        """The one run that may be the best; TIE for several; UNKNOWN where a baseline graded."""
        if self.is_baseline:
            return "UNKNOWN"
        first, *others = self.may_be_best
        return "TIE" if others else first

    def as_json(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "measure": self.measure,
            "winner": self.winner,
            "may_be_best": list(self.may_be_best),
            "runs": [
                {
                    "run": self.names[each.run],
                    "difference": each.difference,
                    "interval": [each.low, each.high],
                    "beaten_by": None
                    if each.beaten_by is None or self.is_baseline
                    else self.names[each.beaten_by],
                }
                for each in self.decided.runs
            ],
            "pairs_used": self.pairs_used,
            "pairs_known": self.pairs_known,
            "pool": self.pool,
            "look": self.decided.n_looks,
            "share": self.decided.share,
            "queries": self.n_queries,
            "left_out": list(self.left_out),
            "failed": self.n_failed,
            "judge": self.judge,
        }


async def decide_several_as_needed(
    dataset: Dataset, names: Sequence[str], job: Job, declared: Declared = BY_DEFAULT
) -> SeveralNeeded | dict[str, object]:
    """Judge pairs of several runs until it is told which may be the best.

    Args:
        dataset: Has chunks, queries and runs.
        names: Of two runs or more.
        job: Judge, split and budget. A dry run judges nothing and returns what it would take.
        declared: By what is decided.

    Raises:
        UsageError, DataError, EndpointError, BudgetError: As for two runs.
    """
    async with needed_runs(dataset, names, job, declared) as runs:
        pool = runs.pool
        if job.mode.dry_run:
            price = await price_of_pairs(dataset, job)
            if pool.is_read:
                forecast = pool.counted(len(pool.several_read().wanted()), TYPICAL_READ)
            else:
                forecast = pool.forecast(_TYPICAL)
            return {**forecast, "usd_a_pair": price.usd if price else None}
        shares = shares_for(len(pool.query_ids))
        decision: SeveralDecision | SeveralFirstHits = (
            pool.several_read()
            if pool.is_read
            else SeveralDecision(pool.pairs(), shares, pool.is_known())
        )

        def describe() -> str:
            n_judged = plural(decision.n_judged, "pair")
            left = ", ".join(names[run] for run in decision.left)
            return f"look {decision.n_looks}: {n_judged} judged of {pool.size:,}, left: {left}"

        n_known = int(pool.is_known().sum())
        reached = await until_decided(decision, pool, runs.judging, describe)
        decided = decision.unless_failed(reached.decided, reached.values, pool.highest)
        found = SeveralNeeded(
            names=tuple(names),
            measure=str(pool.measure),
            decided=decided,
            pairs_used=decided.n_judged,
            pairs_known=n_known,
            pool=pool.size,
            n_queries=len(pool.query_ids),
            left_out=runs.left_out,
            judge=runs.judge,
            is_baseline=runs.is_baseline,
            n_failed=runs.judging.result.n_failed,
            warnings=warnings_of(runs, runs.left_out),
            graded_by=runs.graded_by,
        )
        keep_sample(dataset, runs, found.as_json(), decision.probabilities)
    return found
