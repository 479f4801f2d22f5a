"""Tell which of several runs may be the best by as few judged pairs as that takes."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from math import comb
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import UsageError
from ragforge.evaluating.comparison import open_text
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import GradedBy, drift_text, mark_drift
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.measures.first_hits_several import SeveralFirstHits
from ragforge.measures.intervals import Ends
from ragforge.measures.sequential import LEAST_QUERIES, shares_for
from ragforge.measures.sequential_several import Saved, SeveralDecision, Standings, unless_unseen
from ragforge.pipeline.comparing.needed_pairs import (
    BY_DEFAULT,
    UNSEEN_P,
    Declared,
    NeededPool,
    keep_sample,
    needed_runs,
    until_decided,
    warnings_of,
)
from ragforge.pipeline.comparing.price import price_of_pairs
from ragforge.pipeline.job import Job

_NOTHING: Final = 1e-12
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
    """Queries on which a retriever failed: left out where its run is compared."""
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
        """The one run that may be the best; TIE for several.

        UNKNOWN where a baseline graded, or where all others may be it only for what failed.
        """
        if self.is_baseline:
            return "UNKNOWN"
        first, *others = (each for each in self.decided.runs if each.beaten_by is None)
        if not others:
            return self.names[first.run]
        return "UNKNOWN" if all(each.saved is not None for each in others) else "TIE"

    @property
    def why_saved(self) -> tuple[str, ...]:
        """Why runs are not called worse for what failed, a sentence each."""
        return tuple(
            f"{self.names[each.run]} is not called worse than {self.names[each.saved.worse_than]}: "
            f"{_why(each.saved)}"
            for each in self.decided.runs
            if each.saved is not None
        )

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
                    "queries": each.n_queries,
                    "beaten_by": None
                    if each.beaten_by is None or self.is_baseline
                    else self.names[each.beaten_by],
                    "saved_from": None if each.saved is None else self.names[each.saved.worse_than],
                    "failure_bounds": None
                    if each.saved is None
                    else [each.saved.low, each.saved.high],
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
        _require_queries(names, pool)
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
        decided = unless_unseen(reached.decided, _unseen_reaches(reached.decided, pool))
        decided = decision.unless_failed(decided, reached.values, pool.highest)
        graded_by = mark_drift(runs.graded_by, read_canaries(dataset))
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
            warnings=(*warnings_of(runs, ()), *filter(None, [drift_text(graded_by)])),
            graded_by=graded_by,
        )
        failed = _failed_warnings(names, runs.failed)
        found = replace(found, warnings=(*found.warnings, *failed, *found.why_saved))
        keep_sample(dataset, runs, found.as_json(), decision.probabilities)
    return found


def _require_queries(names: Sequence[str], pool: NeededPool) -> None:
    """Refuse two runs of which hardly a query has an answer of both.

    Raises:
        UsageError: There are fewer than ten.
    """
    for (a, b), common in pool.common.items():
        n = int(common.kept.sum())
        if n < LEAST_QUERIES:
            raise UsageError(
                f"{plural(n, 'query', 'queries')} on which neither {names[a]} nor {names[b]} "
                f"failed: expected at least {LEAST_QUERIES}; retrieve again, or leave one out"
            )


def _unseen_reaches(found: Standings, pool: NeededPool) -> dict[int, float]:
    """Return by run how far its difference from the best could be by queries that nobody saw.

    Those that rank as the best does differ by nothing, and runs that are read down have an interval
    that allows for it.
    """
    if pool.is_read or not pool.units:
        return {}
    worths = pool.pairs().discounts
    best, p = found.runs[0].run, UNSEEN_P / comb(pool.n_runs, 2)
    return {
        each.run: pool.unseen_reach(each.n_queries, p)
        for each in found.runs
        if np.abs(worths[:, each.run] - worths[:, best]).max() > _NOTHING
    }


def _failed_warnings(names: Sequence[str], failed: Sequence[Set[str]]) -> Iterator[str]:
    for name, of_run in zip(names, failed, strict=True):
        if of_run:
            left = plural(len(of_run), "query", "queries")
            yield f"{name}: {left} left out where it is compared, as its retriever failed on them"


def _why(saved: Saved) -> str:
    if saved.n_left_out:
        return open_text(saved.n_left_out, Ends(saved.low, saved.high))
    return "judgments failed, which could turn it; `--retry-failed` asks again"
