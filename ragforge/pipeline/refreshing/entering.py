"""Which new chunks come into which pools; the corpus is searched only where one may."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ragforge.config import Settings
from ragforge.files.dataset import Dataset
from ragforge.observe import Observer
from ragforge.pipeline.completing import look_for
from ragforge.pipeline.pool_items import items_of
from ragforge.pipeline.surveyed import Surveyed
from ragforge.records import Failure
from ragforge.retrieval import Retriever
from ragforge.retrieval.newcomers import Newcomers
from ragforge.stages.complete.growth import Growth, Ranked, ranked_items
from ragforge.stages.complete.probes import Found, Item, beside, look, probes_of

_MOST_NEW: Final = 0.25
"""Share of the chunks up to which it pays to ask whether a search can bring one that is new."""


@dataclass(frozen=True, slots=True)
class Entering:
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
    survey: Surveyed,
    retrievers: Mapping[str, Retriever],
    settings: Settings,
    observer: Observer,
    query_ids: Collection[str],
    new: frozenset[str],
) -> Entering:
    """Return which new chunks come into the pools of some queries.

    Args:
        staged: With the pools as they were, under the ids that chunks have now.
        survey: The corpus as it is now.
        retrievers: Who looks. The survey's own BM25 is asked only where a new chunk may be within
            the depth of the pool; the outcome is that of a full search.
        settings: Depth of the pools.
        observer: Told of progress.
        query_ids: The queries.
        new: Ids of the new chunks.
    """
    growth = Growth(settings.pool.pool_k, settings.pool.pool_most)
    pools = _read(staged, query_ids, growth)
    queries = [query for query in staged.queries() if query.query_id in query_ids]
    items = items_of(staged, queries, survey, observer) if new else []
    own = {name for name, one in retrievers.items() if one is survey.bm25}
    others = {name: one for name, one in retrievers.items() if name not in own}
    most, at_once = growth.most, settings.model.concurrency
    probes = probes_of(items, others)
    found = await look(probes, others, most=most, concurrency=at_once, observer=observer)
    hit = {one.query_id for one in found.results if _enters(one, pools, new)}
    newcomers = survey.newcomers(new) if len(new) <= _MOST_NEW * survey.n_chunks else None
    doubts = _Doubts(survey, newcomers, pools, new, sorted(own))
    searched = [item for item in items if item.query_id in hit or doubts.may_enter(item)]
    mine = {name: retrievers[name] for name in own}
    more = await look_for(searched, survey, mine, settings, observer)
    ranked = ranked_items(items, [*found.results, *more.results])
    narrowed = _narrowed(ranked, pools, new)
    return Entering(
        ranked=[one for one in narrowed if one.pool(pools.depth(one.query_id))],
        depths={one.query_id: pools.depth(one.query_id) for one in narrowed},
        n_searched=len(items) if others else len(searched),
        tried=frozenset(one.key for one in (*probes, *probes_of(searched, mine))),
        failures=[*found.failures, *more.failures],
    )


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


def _enters(found: Found, pools: _Pools, new: Collection[str]) -> bool:
    depth = pools.depth(found.query_id)
    return any(rank <= depth and chunk_id in new for chunk_id, rank in found.ranks.items())


@dataclass(frozen=True, slots=True)
class _Doubts:
    """For which items a search may bring new chunks within the depth of the pool."""

    survey: Surveyed
    newcomers: Newcomers | None
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
