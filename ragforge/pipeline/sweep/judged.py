"""Which configurations of a sweep may be the best by a judge, by as few judged texts as that takes.

Texts of different chunkings cannot be added up: at equal k, and by the share of a prompt that is
relevant, large chunks win, as each holds more; summed over a prompt of equal size small ones win,
as each piece of one answer counts. What no chunking moves by itself is whether a prompt of a given
size holds an answer. So a prompt counts 1 from the first of its texts that a judge calls relevant,
and each is read only as far as that. Same texts of several configurations are asked for once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ragforge.corpus.file_texts import seen_between
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.configurations import Top
from ragforge.evaluating.formatting import plural
from ragforge.evaluating.sweep import (
    JudgedForecast,
    JudgedSweep,
    RankedConfiguration,
    SweptQueries,
)
from ragforge.files.set.dataset import Dataset
from ragforge.measures.bounds import Interval
from ragforge.measures.evidence_coverage import RetrievedText, within
from ragforge.measures.measure_names import Measure
from ragforge.pipeline.comparing.price import price_of_pairs
from ragforge.pipeline.comparing.several_as_needed import TYPICAL_READ
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import open_judges
from ragforge.stages.judge.llm import refuse_shared_queries

if TYPE_CHECKING:
    from ragforge.pipeline.comparing.needed_pairs import NeededPool, TextKey, Unit

_FAR, _CLOSE = TYPICAL_READ


@dataclass(frozen=True, slots=True)
class Judging:
    """How a judge decides between configurations.

    Args:
        least_grade: Of a text that answers: 2 for a part of the answer, 3 for all of it.
    """

    least_grade: int = 2

    def __post_init__(self) -> None:
        """Check the grade.

        Raises:
            UsageError: It is none that a text with an answer has.
        """
        if self.least_grade not in (2, 3):
            raise UsageError(f"--least-grade {self.least_grade}: expected 2 or 3")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts of the prompts of some configurations.

    Args:
        pool: Each text of a query once; its runs are the configurations.
        texts: By id.
        left_out: Queries on which the retriever of a configuration failed.
    """

    pool: NeededPool
    texts: Mapping[str, str]
    left_out: tuple[str, ...]


def check_judging(top: Top) -> None:
    """Refuse to decide on so many texts, whatever their size.

    Raises:
        UsageError: That is what decides.
    """
    if top.tokens is None:
        raise UsageError(
            "--judge-as-needed: decides within a budget of tokens (--tokens 2000, or --decide-by "
            "'EvidenceR(tokens=2000)'): of as many texts, larger ones hold more"
        )


def prompts_of(
    ranked: Sequence[RankedConfiguration], swept: SweptQueries, top: Top, judging: Judging
) -> Prompts:
    """Return the texts that the configurations put into a prompt.

    Args:
        ranked: Two or more.
        swept: What they are measured on.
        top: How much of each ranking a prompt takes.
        judging: Which texts answer.
    """
    from ragforge.pipeline.comparing.failed_queries import common_queries
    from ragforge.pipeline.comparing.needed_pairs import NeededPool, TextKey, Unit

    failed = [frozenset(each.failed) & frozenset(swept.measured) for each in ranked]
    n_failed = Counter(query_id for of_run in failed for query_id in of_run)
    query_ids = sorted(q for q in swept.measured if len(ranked) - n_failed[q] > 1)
    units: dict[TextKey, Unit] = {}
    texts: dict[str, str] = {}
    for run, each in enumerate(ranked):
        for query_id in query_ids:
            prompt = within(each.rankings.get(query_id, ()), tokens=top.tokens)
            for rank, retrieved in enumerate(prompt):
                text = _text(retrieved, swept)
                digest = hashlib.sha256(text.encode()).hexdigest()
                key = TextKey(query_id, digest)
                texts[digest] = text
                unit = units.setdefault(key, Unit(key, digest, [[] for _ in ranked]))
                unit.ranks[run].append(rank)
    pool = NeededPool(
        measure=Measure("Success", rel=judging.least_grade),
        query_ids=query_ids,
        units=[unit for _, unit in sorted(units.items())],
        by_chunk={},
        size=len(units),
        seed=0,
        n_runs=len(ranked),
        query_weights=_weights(swept, query_ids),
        # Where one failed the prompt of either may hold a text that answers, or none.
        common=common_queries(
            query_ids, failed, partial(_weights, swept), lambda query_id, run: Interval(0.0, 1.0)
        ),
    )
    return Prompts(pool, texts, tuple(sorted(n_failed)))


def _text(retrieved: RetrievedText, swept: SweptQueries) -> str:
    parts = (
        seen_between(swept.documents[place.document], place.start, place.end)
        for place in retrieved.places
    )
    return "\n".join(parts)


def _weights(swept: SweptQueries, query_ids: Sequence[str]) -> np.ndarray:
    """Return what each query stands for, 1 in the mean."""
    chosen = swept.chosen
    if chosen is None or chosen.design is None:
        return np.ones(len(query_ids))
    placed = {query.query_id for query in swept.queries if query.evidence}
    drawn = chosen.design.within(placed | set(query_ids)).stratified(query_ids)
    return np.array(drawn.weights) * len(query_ids)


async def judge_prompts(
    ranked: Sequence[RankedConfiguration],
    prompts: Prompts,
    asked: Mapping[str, str],
    dataset: Dataset,
    job: Job,
) -> JudgedSweep:
    """Judge texts of prompts until it is told which configurations may be the best.

    Args:
        ranked: Those whose prompts these are.
        prompts: As `prompts_of` returns them.
        asked: Text by id of the queries.
        dataset: Has the call store.
        job: Judge and budget.

    Raises:
        DataError: Fewer than ten queries can be decided on.
        EndpointError, BudgetError: Judging was stopped, replies are kept; or every text failed.
    """
    from ragforge.pipeline.comparing.needed_pairs import NeededJudging, until_decided

    pool = prompts.pool
    names = [each.configuration.name for each in ranked]
    _require_queries(pool, names)
    async with open_judges(job, dataset, "judge") as judges:
        refuse_shared_queries(judges.examples, asked)
        judging = NeededJudging(dataset, judges, asked, prompts.texts, job.observer)
        decision = pool.several_read()

        def describe() -> str:
            judged = f"{plural(decision.n_judged, 'text')} judged of {pool.size:,}"
            return f"{judged}; may be best: {len(decision.left)} of {len(names)} configurations"

        try:
            reached = await until_decided(decision, pool, judging, describe)
        finally:
            judges.note_in(dataset)
        judge = judges.name
    return JudgedSweep(
        configurations=tuple(each.configuration for each in ranked),
        standings=decision.unless_failed(reached.decided, reached.values, pool.highest),
        least_grade=pool.measure.rel or 0,
        pool=pool.size,
        n_queries=len(pool.query_ids),
        left_out=prompts.left_out,
        judge=judge,
        is_baseline=any(unit.is_by_rule for unit in pool.units),
        n_failed=judging.result.n_failed,
    )


def _require_queries(pool: NeededPool, names: Sequence[str], least: int = 10) -> None:
    if len(pool.query_ids) < least:
        raise DataError(
            f"--judge-as-needed: {plural(len(pool.query_ids), 'query', 'queries')}: expected at "
            f"least {least}, as the spread between queries decides"
        )
    for (a, b), common in pool.common.items():
        n = int(common.kept.sum())
        if n < least:
            raise DataError(
                f"--judge-as-needed: {plural(n, 'query', 'queries')} on which neither {names[a]} "
                f"nor {names[b]} failed: expected at least {least}"
            )


async def forecast_judging(
    n_texts: int, is_exact: bool, dataset: Dataset, job: Job
) -> JudgedForecast:
    """Return what judging prompts may take; nothing is asked.

    Args:
        n_texts: Of all prompts, each text of a query once.
        is_exact: Whether the prompts are known, and not supposed.
        dataset: Has queries and chunks to go by.
        job: In a dry run.
    """
    price = await price_of_pairs(dataset, job)
    usd = None if price is None else price.usd
    return JudgedForecast(
        expected=(round(_FAR * n_texts), round(_CLOSE * n_texts)),
        at_most=n_texts,
        is_exact=is_exact,
        usd_a_text=usd,
    )


def supposed_texts(chunk_tokens: float, n_queries: int, top: Top) -> int:
    """Return how many texts the prompts of a configuration hold at most, by the mean of its chunks.

    Args:
        chunk_tokens: Of a chunk, in the mean.
        n_queries: Prompts.
        top: How much a prompt takes.
    """
    return n_queries * max(1, round((top.tokens or 0) / max(chunk_tokens, 1.0)))
