"""Pools under a changed corpus: what is new and comes into them is judged, and nothing else."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.complete.completing import (
    Completion,
    complete_dataset,
    free_retrievers,
    judge_pools,
    look_for,
)
from ragforge.pipeline.complete.pool_waves import PooledQuery, items_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judge_run import JudgingResult
from ragforge.pipeline.judge.judging import refused_if_all_failed
from ragforge.pipeline.retrieving import embed_chunks
from ragforge.pipeline.surveying import StoredSurvey
from ragforge.records import Failure, Query
from ragforge.retrieval import Retriever
from ragforge.retrieval.bm25_index import NewChunks
from ragforge.stages.complete import (
    Growth,
    Item,
    ProbeRanks,
    Ranked,
    beside,
    look,
    probes_of,
    ranked_items,
)
from ragforge.stages.runner import Workers

_MOST_NEW: Final = 0.25
"""Share of the chunks up to which it pays to ask whether a search can bring one that is new."""


@dataclass(frozen=True, slots=True)
class NewChunksInPools:
    """New chunks in pools.

    Args:
        ranked: For each query into whose pool something comes, the new chunks that probes found
            at any rank, and those of its pool that could not be judged before.
        depths: Of the pools, by query id.
        n_searched: Queries for which the corpus was searched.
        tried: Keys of the probes that were asked.
        failures: Of these.
    """

    ranked: Sequence[Ranked] = ()
    depths: Mapping[str, int] = field(default_factory=dict)
    n_searched: int = 0
    tried: frozenset[str] = frozenset()
    failures: Sequence[Failure] = ()


@dataclass(slots=True)
class _Pools:
    """What the pools of some queries hold.

    Args:
        growth: Which depths there are.
        known: Ids of their chunks, and of others that have a grade, by query.
        deepest: The highest rank in each.
        failed: Chunks that could not be judged, with their ranks, by query.
    """

    growth: Growth
    known: dict[str, set[str]]
    deepest: dict[str, int]
    failed: dict[str, dict[str, Mapping[str, int]]]

    def depth(self, query_id: str) -> int:
        """Return how deep a pool is, as deep as a new one at least."""
        deepest = self.deepest.get(query_id, 0)
        return next((one for one in self.growth.depths() if one >= deepest), self.growth.most)


async def entering_chunks(
    staged: Dataset,
    survey: StoredSurvey,
    retrievers: Mapping[str, Retriever],
    job: Job,
    query_ids: Collection[str],
    new: frozenset[str],
) -> NewChunksInPools:
    """Return which new chunks come into the pools of some queries.

    Args:
        staged: With the pools as they were, under the ids that chunks have now.
        survey: The corpus as it is now.
        retrievers: Who looks. The survey's own BM25 is asked only where a new chunk may be within
            the depth of the pool; the outcome is that of a full search.
        job: Depth of the pools.
        query_ids: The queries.
        new: Ids of the new chunks.
    """
    settings, observer = job.settings, job.observer
    growth = Growth(settings.pool.pool_k, settings.pool.pool_most)
    pools = _read(staged, query_ids, growth)
    queries = [query for query in staged.queries() if query.query_id in query_ids]
    items = items_of(staged, queries, survey, observer) if new else []
    own = {name for name, one in retrievers.items() if one is survey.bm25}
    others = {name: one for name, one in retrievers.items() if name not in own}
    most, workers = growth.most, Workers(settings.model.concurrency, observer)
    probes = probes_of(items, others)
    await embed_chunks(retrievers.values(), job.observer)
    probed = await look(probes, others, most=most, workers=workers)
    hit = {one.query_id for one in probed.results if _enters(one, pools, new)}
    newcomers = survey.newcomers(new) if len(new) <= _MOST_NEW * survey.n_chunks else None
    entry_check = _EntryCheck(survey, newcomers, pools, new, sorted(own))
    searched = [item for item in items if item.query_id in hit or entry_check.may_enter(item)]
    mine = {name: retrievers[name] for name in own}
    more = await look_for(searched, survey, mine, job)
    ranked = ranked_items(items, [*probed.results, *more.results])
    narrowed = _narrowed(ranked, pools, new)
    return NewChunksInPools(
        ranked=[one for one in narrowed if one.pool(pools.depth(one.query_id))],
        depths={one.query_id: pools.depth(one.query_id) for one in narrowed},
        n_searched=len(items) if others else len(searched),
        tried=frozenset(one.key for one in (*probes, *probes_of(searched, mine))),
        failures=[*probed.failures, *more.failures],
    )


def failed_pairs(staged: Dataset, job: Job, query_ids: Collection[str]) -> NewChunksInPools:
    """Return the pairs in the pools of some queries that could not be judged, and nothing new."""
    growth = Growth(job.settings.pool.pool_k, job.settings.pool.pool_most)
    pools = _read(staged, query_ids, growth)
    narrowed = _narrowed((), pools, ())
    return NewChunksInPools(narrowed, {one.query_id: pools.depth(one.query_id) for one in narrowed})


def _read(staged: Dataset, query_ids: Collection[str], growth: Growth) -> _Pools:
    pools = _Pools(growth, {query_id: set() for query_id in query_ids}, {}, {})
    failed = set()
    for judgment in staged.each_judgment():
        if judgment.query_id in query_ids:
            pools.known[judgment.query_id].add(judgment.chunk_id)
            if judgment.is_failed:
                failed.add((judgment.query_id, judgment.chunk_id))
    for entry in staged.each_pool_entry():
        if entry.query_id not in query_ids:
            continue
        pools.known[entry.query_id].add(entry.chunk_id)
        deepest = max(entry.probes.values(), default=0)
        pools.deepest[entry.query_id] = max(deepest, pools.deepest.get(entry.query_id, 0))
        if entry.probes and (entry.query_id, entry.chunk_id) in failed:
            pools.failed.setdefault(entry.query_id, {})[entry.chunk_id] = entry.probes
    return pools


def _enters(found: ProbeRanks, pools: _Pools, new: Collection[str]) -> bool:
    depth = pools.depth(found.query_id)
    return any(rank <= depth and chunk_id in new for chunk_id, rank in found.ranks.items())


@dataclass(frozen=True, slots=True)
class _EntryCheck:
    """For which items a search may bring new chunks within the depth of the pool."""

    survey: StoredSurvey
    newcomers: NewChunks | None
    pools: _Pools
    new: Collection[str]
    own: Sequence[str]
    """Names of the survey's own retriever."""

    def may_enter(self, item: Item) -> bool:
        """Whether the survey's retriever, or the place beside a source, may bring a new chunk."""
        depth, known = self.pools.depth(item.query_id), self.pools.known[item.query_id]
        near = beside(item, self.survey, self.pools.growth.most)
        if any(_enters(one, self.pools, self.new) for one in near):
            return True
        texts = (text for probe in probes_of([item], self.own) for text in probe.texts)
        return self.newcomers is None or any(
            self.newcomers.may_enter(text, depth, known) for text in texts
        )


def _narrowed(ranked: Sequence[Ranked], pools: _Pools, new: Collection[str]) -> list[Ranked]:
    """Return what was found without what is not new, and what is to be tried again, by query."""
    sources = {one.query_id: one.sources for one in ranked}
    ranks: dict[str, dict[str, Mapping[str, int]]] = {
        one.query_id: {chunk_id: of for chunk_id, of in one.ranks.items() if chunk_id in new}
        for one in ranked
    }
    for query_id, failed in pools.failed.items():
        of_query = ranks.setdefault(query_id, {})
        for chunk_id, of in failed.items():
            of_query.setdefault(chunk_id, of)
    return [
        Ranked(query_id, sources.get(query_id, frozenset()), ranks[query_id])
        for query_id in sorted(ranks)
        if ranks[query_id]
    ]


@dataclass(frozen=True, slots=True)
class DeltaPools:
    """What judging the new chunks came to.

    Args:
        n_pairs: That had no grade and were judged or tried; in a dry run those of the first wave.
        n_judged, n_failed: Of these.
        n_calls: Calls that this took, those that the store answered included.
        n_searched: Queries for which the corpus was searched.
        conflicts: Ids of unanswerable queries that got a whole pool, and an answer in it; sorted.
        failed_probes: For how many queries a probe failed, by its name.
        estimates: What a dry run counted, for whole pools and for new chunks; () in earnest.
    """

    n_pairs: int = 0
    n_judged: int = 0
    n_failed: int = 0
    n_calls: int = 0
    n_searched: int = 0
    conflicts: tuple[str, ...] = ()
    failed_probes: Mapping[str, int] = field(default_factory=dict)
    estimates: tuple[Mapping[str, object], ...] = ()


async def judge_new_chunks(
    staged: Dataset,
    survey: StoredSurvey,
    retrievers: Mapping[str, Retriever],
    job: Job,
    *,
    new_chunks: Collection[str],
    whole: Collection[str] = (),
    again: bool = False,
) -> DeltaPools:
    """Judge the new chunks that come into the pools of accepted queries.

    A pool stays as deep as it was, with what it holds; new chunks within its depth are added and
    judged, and it grows where a new chunk at its end is relevant. A pair of the pool that could not
    be judged before is tried again. Some queries get a whole pool anew: those named, and those of
    which a probe failed before. Without any new chunk only those named are looked at.

    Args:
        staged: With the queries, grades and pools that the changed corpus leaves.
        survey: The corpus as it is now.
        retrievers: Who looks, by the name that the pool gives them.
        job: Depth of the pools, models and budget. A dry run writes nothing, and asks no retriever
            that has to be built first.
        new_chunks: Ids of the chunks that the version before did not have.
        whole: Ids of queries that are new, or whose evidence or answer changed.
        again: Whether failed pairs are tried again without a new chunk, too.

    Raises:
        UsageError: Another model or prompt graded a part of a whole pool, and is not marked so.
        EndpointError, BudgetError: The run was stopped; or nothing could be judged.
    """
    dry_run = job.mode.dry_run
    before = _call_keys(staged)
    accepted = {query.query_id for query in staged.queries()}
    unprobed = _unprobed(staged.failures()) if new_chunks else set[str]()
    entire = accepted & unprobed.union(whole)
    done = Completion(JudgingResult(""), None, {})
    if entire:
        done = await complete_dataset(staged, survey, retrievers, job, sorted(entire))
    if dry_run:
        retrievers = free_retrievers(retrievers, job.observer)
    entering = NewChunksInPools()
    if new_chunks:
        new, others = frozenset(new_chunks), accepted - entire
        entering = await entering_chunks(staged, survey, retrievers, job, others, new)
    elif again:
        entering = failed_pairs(staged, job, accepted - entire)
    if not dry_run and entering.tried:
        staged.replace_failures("retrieve", entering.failures, entering.tried.__contains__)
    result = await _judge(staged, survey, job, entering)
    if not before and not dry_run:
        refused_if_all_failed(result, result.n_failed)
    judged = _in_all(done, Completion(result, None, _failed_probes(entering), result.estimate))
    n_calls = len(_call_keys(staged) - before)
    return replace(judged, n_calls=n_calls, n_searched=len(entire) + entering.n_searched)


def _in_all(whole: Completion, new: Completion) -> DeltaPools:
    """Return what judging whole pools and new chunks of others came to together."""
    return DeltaPools(
        n_pairs=_n_new(whole.judging, whole.estimate) + _n_new(new.judging, new.estimate),
        n_judged=whole.judging.n_judged + new.judging.n_judged,
        n_failed=whole.judging.n_failed + new.judging.n_failed,
        conflicts=whole.conflicts,
        failed_probes=Counter(new.failed_probes) + Counter(whole.failed_probes),
        estimates=tuple(one.estimate for one in (whole, new) if one.estimate is not None),
    )


def _failed_probes(entering: NewChunksInPools) -> Counter[str]:
    return Counter(failure.key.partition("/")[0] for failure in entering.failures)


async def _judge(
    staged: Dataset, survey: StoredSurvey, job: Job, entering: NewChunksInPools
) -> JudgingResult:
    if not entering.ranked:
        return JudgingResult("")
    queries = {query.query_id: query for query in staged.queries()}
    asked = {
        ranked.query_id: PooledQuery(
            queries[ranked.query_id].asked, queries[ranked.query_id].answerable, ranked
        )
        for ranked in entering.ranked
    }
    waves = await judge_pools(staged, survey, asked, job, starts=entering.depths, adds=True)
    return waves.result


def _n_new(result: JudgingResult, estimate: Mapping[str, object] | None) -> int:
    if estimate is None:
        return result.n_judged + result.n_failed
    pairs = estimate["pairs"]
    assert isinstance(pairs, Mapping)
    return int(pairs["new"])


def _unprobed(failures: Sequence[Failure]) -> set[str]:
    """Return the ids of queries of which a probe failed; a run's name has no colon."""
    parts = (failure.key.partition("/") for failure in failures if failure.what == "retrieve")
    return {query_id for name, _, query_id in parts if ":" in name}


def _call_keys(dataset: Dataset) -> set[str]:
    """Return the keys of all calls that grades, or failures to grade, rest on."""
    keys = {key for old in dataset.failures() if old.what == "judge" for key in old.call_keys}
    for judgment in dataset.each_judgment():
        if judgment.source != "evidence" and judgment.provenance:
            keys |= {judgment.provenance.call_key, *(vote.call_key for vote in judgment.votes)}
    return keys - {""}


def without_judge(dataset: Dataset, queries: Iterable[Query]) -> set[str]:
    """Return the ids of accepted queries that a person wrote anew and no judge has seen since.

    Raises:
        DataError: The grades cannot be read.
    """
    edited = {
        query.query_id
        for query in queries
        if query.status == "accepted" and query.reviewed and query.reviewed.decision == "edit"
    }
    if not edited:
        return edited
    seen = {one.query_id for one in dataset.each_judgment() if one.source in ("judge", "carried")}
    return edited - seen
