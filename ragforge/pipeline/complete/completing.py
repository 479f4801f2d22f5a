"""Completing pools: what else in the corpus is relevant to a query, found by probes and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragforge.config import JudgeSettings, PoolSettings, Settings
from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass
from ragforge.evaluating.completion import CompletionSummary, PooledItem, summarise_completion
from ragforge.evaluating.evaluation_data import reading_in_force
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_own_chunks
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.backend import count_embeddings, embedder_of, with_embeddings
from ragforge.pipeline.complete.pool_waves import (
    PooledQuery,
    PoolWaves,
    items_of,
    queries_to_complete,
)
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judge_run import JudgingResult
from ragforge.pipeline.judge.judges import open_judges
from ragforge.pipeline.judge.judging import note_label_reading, refused_if_all_failed
from ragforge.pipeline.retrieving import embed_chunks
from ragforge.pipeline.surveying import StoredSurvey, open_survey
from ragforge.records import Chunk, Query
from ragforge.retrieval import Buildable, Embedder, Retriever
from ragforge.retrieval.retrievers import make_retriever
from ragforge.stages.complete import (
    Item,
    ProbeRanks,
    Ranked,
    beside,
    look,
    probes_of,
    ranked_items,
)
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.runner import Collected, Workers

if TYPE_CHECKING:
    from ragforge.llm.embedder import EndpointEmbedder


@dataclass(frozen=True, slots=True)
class Completion:
    """What completing came to.

    Args:
        judging: Of all pairs that were judged now.
        summary: The figures of the pools; None in a dry run.
        failed_probes: For how many queries a probe failed, by its name.
        estimate: What a dry run counted; None in earnest.
    """

    judging: JudgingResult
    summary: CompletionSummary | None
    failed_probes: Mapping[str, int]
    estimate: dict[str, object] | None = None

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Ids of unanswerable queries that the corpus answers, sorted."""
        return self.summary.conflicts if self.summary else ()


async def complete_dataset(
    dataset: Dataset,
    survey: Survey,
    retrievers: Mapping[str, Retriever],
    job: Job,
    query_ids: Collection[str] | None = None,
) -> Completion:
    """Pool what probes find for queries, and judge it; pools grow while their end is relevant.

    Retrievers look for the query, the query with its answer, and the text of its source chunks;
    beside these stand neighbours and near-duplicates of the sources. Pairs that have a grade are
    not judged again, nor is a query's own evidence.

    Args:
        dataset: Has queries; gets pools and judgments.
        survey: Its corpus.
        retrievers: Who looks, by the name that the pool gives them.
        job: Depth of the pools, models and budget. A dry run writes nothing, and asks no retriever
            that has to be built first.
        query_ids: Which queries, of any status; the accepted ones of the split where None.

    Raises:
        DataError: No query is in the split.
        UsageError: Another model or prompt graded a part of the pools; see `Mode`.
        EndpointError, BudgetError: The run was stopped, what was judged is written; or nothing
            could be judged.
    """
    was = reading_in_force(dataset, dataset.judgment_table())
    queries = queries_to_complete(dataset, job.settings.judge.split, query_ids)
    items = items_of(dataset, queries, survey, job.observer)
    if job.mode.dry_run:
        retrievers = free_retrievers(retrievers, job.observer)
    looked = await look_for(items, survey, retrievers, job)
    if not job.mode.dry_run:
        tried = {probe.key for probe in probes_of(items, retrievers)}
        dataset.replace_failures("retrieve", looked.failures, tried.__contains__)
    failed = Counter(failure.key.partition("/")[0] for failure in looked.failures)
    waves = await judge_pools(
        dataset, survey, _asked(queries, ranked_items(items, looked.results)), job
    )
    if job.mode.dry_run:
        return Completion(waves.result, None, failed, waves.result.estimate)
    note_label_reading(dataset, was, job.observer)
    summary = _summary(dataset, waves)
    if not summary.n_calls and not waves.result.n_judged:
        refused_if_all_failed(waves.result, waves.result.n_failed)
    return Completion(waves.result, summary, failed)


def _asked(queries: Sequence[Query], ranked: Sequence[Ranked]) -> dict[str, PooledQuery]:
    """Return the queries whose pools are judged, by id; both in one order."""
    return {
        query.query_id: PooledQuery(query.asked, query.answerable, found)
        for query, found in zip(queries, ranked, strict=True)
    }


async def judge_pools(
    dataset: Dataset,
    survey: Survey,
    asked: Mapping[str, PooledQuery],
    job: Job,
    *,
    starts: Mapping[str, int] = MappingProxyType({}),
    adds: bool = False,
) -> PoolWaves:
    """Judge pools wave by wave, by whoever judges pools; in a dry run the result has an estimate.

    Args:
        dataset: Gets judgments and pools.
        survey: Has the texts.
        asked: The queries, by id.
        job: Depth of the pools, models and budget.
        starts: As for `PoolWaves`.
        adds: As for `PoolWaves`.

    Raises:
        UsageError, EndpointError, BudgetError: As for `PoolWaves.judge`.
    """
    judging = job.with_settings(judging_settings(job.settings))
    async with open_judges(judging, dataset, "judge") as judges:
        refuse_shared_queries(judges.examples, {name: query.text for name, query in asked.items()})
        waves = PoolWaves(dataset, survey, judges, asked, starts=starts, adds=adds)
        await waves.judge()
        if job.mode.dry_run:
            waves.result.estimate = _estimate(waves)
        return waves


async def complete_whole(dataset: Dataset, job: Job) -> Completion:
    """Complete the pools of a dataset's accepted queries by what its own corpus holds.

    Args and errors are those of `complete_dataset`.
    """
    require_own_chunks(dataset)
    place, seed = dataset.own_place, job.settings.model.seed
    with open_survey(dataset.chunks_path, place, job.observer, seed=seed) as survey:
        async with embedder_of(job, dataset) as embedder:
            retrievers = probing_retrievers(survey, embedder, job.settings.pool, place)
            done = await complete_dataset(dataset, survey, retrievers, job)
            if embedder is None or done.estimate is None:
                return done
            counted = await _count_embeddings(dataset, survey, job.settings, embedder)
            return replace(done, estimate=with_embeddings(done.estimate, counted))


def probing_retrievers(
    survey: StoredSurvey, embedder: Embedder | None, pool: PoolSettings, place: Path
) -> dict[str, Retriever]:
    """Return the retrievers that probe: BM25, and one by meaning where there is a model for it.

    That is the embedding model of the endpoint; else a local model, under its own name.

    Args:
        survey: Of the corpus.
        embedder: None where no embedding model is set.
        pool: Which local model.
        place: Folder of the dataset's own files, where vectors are kept.

    Raises:
        ConfigError: The local model that is named is not installed.
    """
    retrievers = {"bm25": survey.bm25}
    if embedder is not None:
        from ragforge.retrieval.dense import DenseRetriever

        retrievers["dense"] = DenseRetriever(_chunks(survey), embedder)
    elif name := probing_model(pool, survey.n_chunks):
        retrievers[name] = make_retriever(name, _chunks(survey), None, folder=place)
    return retrievers


def probing_model(pool: PoolSettings, n_chunks: int) -> str:
    """Return the local model that probes a corpus of a size; "" for none."""
    if pool.pool_model != "auto":
        return pool.pool_model.replace("none", "")
    from ragforge.retrieval.local_models import MOST_UNASKED, is_installed

    if n_chunks <= MOST_UNASKED and is_installed("minilm"):
        return "minilm"
    return "static" if is_installed("static") else ""


def _chunks(survey: StoredSurvey) -> Iterator[Chunk]:
    return (survey.chunk(card.chunk_id) for card in survey.cards())


async def _count_embeddings(
    dataset: Dataset, survey: StoredSurvey, settings: Settings, embedder: EndpointEmbedder
) -> dict[str, object]:
    queries = queries_to_complete(dataset, settings.judge.split, None)
    probes = probes_of(items_of(dataset, queries, survey, silent), ["dense"])
    texts = (text for probe in probes for text in probe.texts)
    return await count_embeddings(embedder, _chunks(survey), texts)


def judging_settings(settings: Settings) -> Settings:
    """Return the settings with which pools are judged: by the checker, in batches.

    A panel, and anything that says how to judge, stays as it is set.
    """
    how, changes = settings.judge, dict[str, object]()
    if settings.generate.checker and not how.panel:
        changes["panel"] = (settings.generate.checker,)
    plain = JudgeSettings(depth=how.depth, split=how.split, panel=how.panel)
    if how.model_copy(update={"permutations": plain.permutations}) == plain:
        changes |= {"batch": settings.pool.pool_batch, "permutations": 1}
    return settings.model_copy(update={"judge": how.model_copy(update=changes)})


def free_retrievers(
    retrievers: Mapping[str, Retriever], observer: Observer
) -> dict[str, Retriever]:
    """Return the retrievers that ask nobody."""
    free = {name: one for name, one in retrievers.items() if not isinstance(one, Buildable)}
    costly = sorted(set(retrievers).difference(free))
    if costly:
        told = f"{', '.join(costly)}: not asked in a dry run; its probes will find more"
        observer(Event("note", message=told))
    return free


async def look_for(
    items: Sequence[Item],
    survey: Survey,
    retrievers: Mapping[str, Retriever],
    job: Job,
) -> Collected[ProbeRanks]:
    """Return the rankings of probes for items, and the neighbours of their sources."""
    most = job.settings.pool.pool_most
    await embed_chunks(retrievers.values(), job.observer)
    looked = await look(
        probes_of(items, retrievers),
        retrievers,
        most=most,
        workers=Workers(job.settings.model.concurrency, job.observer),
    )
    looked.results.extend(found for item in items for found in beside(item, survey, most))
    return looked


def _summary(dataset: Dataset, waves: PoolWaves) -> CompletionSummary:
    pools = {
        query_id: {entry.chunk_id: entry for entry in pooled.ranked.entries(waves.depths[query_id])}
        for query_id, pooled in waves.asked.items()
    }
    grades: dict[str, dict[str, int]] = {query_id: {} for query_id in waves.asked}
    calls = set[str]()
    for old in dataset.each_judgment():
        pooled, grade = waves.asked.get(old.query_id), old.listed_grade
        if pooled is None or grade is None or not waves.stands(old):
            continue
        if pooled.answerable or old.source != "evidence":
            grades[old.query_id][old.chunk_id] = grade
        if old.chunk_id in pools[old.query_id] and old.source == "judge" and old.provenance:
            calls |= {old.provenance.call_key, *(vote.call_key for vote in old.votes)}
    return summarise_completion(
        [
            PooledItem(
                query_id=query_id,
                answerable=pooled.answerable,
                depth=waves.depths[query_id],
                sources=pooled.ranked.sources,
                entries=[*pools[query_id].values()],
                grades=grades[query_id],
            )
            for query_id, pooled in waves.asked.items()
        ],
        n_calls=len(calls - {""}),
    )


def _estimate(waves: PoolWaves) -> dict[str, object]:
    """Return the price of the first blocks, and the calls if all pools grow to the end."""
    judges, result, blocks = waves.judges, waves.result, list(waves.open_blocks())
    new = sum(first for first, *_ in blocks)
    counts = {
        "in_pool": result.n_pairs,
        "graded": result.n_pairs - new,
        "new": new,
        "new_if_all_pools_grow": sum(map(sum, blocks)),
        "distinct_texts": result.n_texts,
    }
    estimate = {"pairs": counts, **judges.estimate(result.n_texts)}
    if judges.is_dry:
        how = judges.settings.judge
        each = len(judges.backends) * (how.permutations if judges.batch > 1 else how.votes)
        calls = sum(ceil(pairs / judges.batch) for pool in blocks for pairs in pool)
        estimate["calls_if_all_pools_grow"] = each * calls
    return estimate
