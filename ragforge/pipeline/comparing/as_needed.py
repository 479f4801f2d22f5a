"""Compare two runs by as few judged pairs as the decision takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import BudgetError, UsageError
from ragforge.evaluating.comparison import open_text
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.graded_by import GradedBy, drift_text, mark_drift
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.measures.first_hits import FirstHits
from ragforge.measures.intervals import Ends
from ragforge.measures.left_out import LeftOut
from ragforge.measures.sequential import DecidedDifference, SequentialDecision, shares_for
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

_TYPICAL: Final = (0.27, 0.55)
"""Of the pool: runs that are far apart, and close ones, on human-judged sets."""
_TYPICAL_OF_RULES: Final = (0.27, 1.0)
"""The same where a drop is to be ruled out: of runs that are as good it takes all, as a rule."""
_TYPICAL_READ: Final = (0.33, 0.22)
"""The same where both runs are read down to their first hits."""


@dataclass(frozen=True, slots=True)
class NeededComparison:
    """What was decided, and what it rests on."""

    a: str
    b: str
    measure: str
    decided: DecidedDifference
    pairs_used: int
    """Judged for this decision."""
    pairs_known: int
    """Of those that decide, graded before."""
    pool: int
    """Pairs that judging both runs as a whole would take."""
    looks: int
    n_queries: int
    left_out: tuple[str, ...]
    """Queries on which a retriever failed, or, where runs are read down, the judge."""
    judge: str
    is_baseline: bool
    n_failed: int
    """Judgments that failed."""
    failure_bounds: tuple[float, float] | None
    """The difference, had judgments and retrievals that failed come out worst and best for B; None
    where none failed."""
    warnings: tuple[str, ...]
    """What must be known to read the figures."""
    worst: tuple[float, float]
    """The interval that decides a rule on B, failures at their worst; see `worst_interval`."""
    n_unretrieved: int = 0
    """Queries left out as a retriever failed on them."""
    n_failed_of: tuple[int, int] = (0, 0)
    """Those of A, and of B."""
    graded_by: tuple[GradedBy, ...] = ()
    """Who gave the grades, those of before included; who gave most first."""

    @property
    def is_open(self) -> bool:
        """Whether what failed could turn the difference round."""
        bounds = self.failure_bounds
        return bounds is not None and bounds[0] <= 0 <= bounds[1]

    @property
    def winner(self) -> str:
        """Name of a run, TIE, or UNKNOWN: see `why`."""
        if self.why:
            return "UNKNOWN"
        return {"a": self.a, "b": self.b, "tie": "TIE"}[self.decided.outcome]

    @property
    def why(self) -> str:
        """Why the winner is unknown; "" where it is not."""
        if self.is_baseline:
            return "no judge graded, a baseline or ragforge mock did"
        if self.decided.outcome == "tie" or self.failure_bounds is None or not self.is_open:
            return ""
        if not self.n_unretrieved:
            failed = plural(self.n_failed, "judgment")
            return f"{failed} failed, which could turn it; `--retry-failed` asks again"
        return open_text(len(self.left_out), Ends(*self.failure_bounds))

    @property
    def is_worse(self) -> bool:
        """Whether failures at their worst move the interval that decides a rule."""
        return self.worst != (self.decided.low, self.decided.high)

    def as_json(self) -> dict[str, object]:
        """Return it as JSON has it."""
        look = self.decided.look
        return {
            "a": self.a,
            "b": self.b,
            "measure": self.measure,
            "winner": self.winner,
            "why": self.why,
            "difference": look.difference,
            "interval": [self.decided.low, self.decided.high],
            "pairs_used": self.pairs_used,
            "pairs_known": self.pairs_known,
            "pool": self.pool,
            "look": self.looks,
            "share": look.share,
            "information": look.information,
            "queries": self.n_queries,
            "left_out": list(self.left_out),
            "failed": self.n_failed,
            "failure_bounds": None if self.failure_bounds is None else list(self.failure_bounds),
            "judge": self.judge,
        }


async def decide_as_needed(
    dataset: Dataset, names: Sequence[str], job: Job, declared: Declared = BY_DEFAULT
) -> NeededComparison | dict[str, object]:
    """Judge pairs of two runs until the decision is made.

    Args:
        dataset: Has chunks, queries and runs.
        names: Of two runs, A and B.
        job: Judge, split and budget. A dry run judges nothing and returns what it would take.
        declared: By what is decided.

    Raises:
        UsageError: Not two runs, another measure, too few queries, or runs of different chunks,
            whose DCG is of other texts.
        DataError: There is no such run, it is empty, or it was made on other chunks; or both rank
            alike throughout.
        EndpointError, BudgetError: Judging was stopped; replies are kept, and the same command goes
            on; or every pair failed.
    """
    if len(names) != 2:
        raise UsageError("--judge-as-needed compares two runs here: name both")
    async with needed_runs(dataset, names, job, declared) as runs:
        pool = runs.pool
        if job.mode.dry_run:
            if pool.is_read:
                first_look = len(_decision(pool, BY_DEFAULT).wanted())
                forecast = pool.counted(first_look, _TYPICAL_READ)
            else:
                is_rule = declared.allowed is not None
                forecast = pool.forecast(_TYPICAL_OF_RULES if is_rule else _TYPICAL)
            return {**forecast, "usd_a_pair": await _usd_a_pair(dataset, job)}
        common = pool.common.get((0, 1))
        decision = _decision(pool, declared, None if common is None else common.left_out)

        def describe() -> str:
            n_judged = plural(decision.n_judged, "pair")
            return f"look {decision.n_looks}: {n_judged} judged of {pool.size:,}"

        n_known = int(pool.is_known().sum())
        try:
            reached = await until_decided(decision, pool, runs.judging, describe)
        except BudgetError as error:
            n_judged = n_known + runs.judging.result.n_judged
            raise BudgetError(
                f"{error}; {n_judged:,} of {pool.size:,} pairs are judged, which decides nothing "
                "yet; the same command goes on"
            ) from error
        values, highest = reached.values, pool.highest
        decided = _allowing_for_unseen(reached.decided, pool)
        graded_by = mark_drift(runs.graded_by, read_canaries(dataset))
        left_out = (*runs.left_out, *(pool.query_ids[at] for at in decision.failed))
        found = NeededComparison(
            a=names[0],
            b=names[1],
            measure=str(pool.measure),
            decided=decided,
            pairs_used=decided.look.n_judged,
            pairs_known=n_known,
            pool=pool.size,
            looks=decision.n_looks,
            n_queries=len(pool.query_ids) - len(decision.failed),
            left_out=left_out,
            judge=runs.judge,
            is_baseline=runs.is_baseline,
            n_failed=runs.judging.result.n_failed,
            failure_bounds=decision.bounds(values, highest),
            warnings=(*warnings_of(runs, left_out), *filter(None, [drift_text(graded_by)])),
            worst=decision.worst(values, highest, Ends(decided.low, decided.high)),
            n_unretrieved=len(runs.left_out),
            n_failed_of=(len(runs.failed[0]), len(runs.failed[1])),
            graded_by=graded_by,
        )
        keep_sample(dataset, runs, found.as_json(), decision.probabilities)
    return found


def _decision(
    pool: NeededPool, declared: Declared, left_out: LeftOut | None = None
) -> SequentialDecision | FirstHits:
    n_queries = len(pool.query_ids)
    if declared.allowed is not None and n_queries < declared.least_queries:
        counted = plural(n_queries, "query", "queries")
        least = f"expected at least {declared.least_queries}"
        raise UsageError(f"{counted}: {least}, or as --min-queries or --allow-few say")
    if pool.is_read:
        values = np.array([nan if unit.value is None else unit.value for unit in pool.units])
        by_rank = pool.measure.name == "RR"
        return FirstHits(pool.lists(), values, by_rank, pool.query_weights, left_out)
    shares = shares_for(n_queries)
    pairs, known = pool.pairs_of_two(), pool.is_known()
    return SequentialDecision(pairs, shares, known, declared.allowed, left_out)


def _allowing_for_unseen(decided: DecidedDifference, pool: NeededPool) -> DecidedDifference:
    """Return a decision whose interval has no zero width, unless nothing at all differs.

    See `NeededPool.unseen_reach`.
    """
    if decided.high > decided.low or not pool.units or pool.is_read:
        return decided
    reach = pool.unseen_reach(len(pool.query_ids), UNSEEN_P)
    low, high = decided.look.difference - reach, decided.look.difference + reach
    outcome = "tie" if low <= 0 <= high else decided.outcome
    return replace(decided, outcome=outcome, low=low, high=high)


async def _usd_a_pair(dataset: Dataset, job: Job) -> float | None:
    """Return what grading a pair costs; None where the model's price is not known."""
    price = await price_of_pairs(dataset, job)
    return None if price is None else price.usd
