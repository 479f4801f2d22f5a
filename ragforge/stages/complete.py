"""Completing the pools of queries by probes, until what they find is no longer relevant.

Each probe looks for a query's chunks in its own way, and says in which order it found them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass
from ragforge.records import Chunk, PoolEntry
from ragforge.retrieval import Retriever
from ragforge.stages.runner import Collected, Work, Workers, collect
from ragforge.stages.systems import given_by

QUERY = "query"
ANSWER = "answer"
SOURCE = "source"
NEIGHBOURS = "neighbours"
NEAR_DUPLICATES = "twins"


@dataclass(frozen=True, slots=True)
class Item:
    """A query with what probes can start from.

    Args:
        query_id: Its id.
        asked: The question as it stands on its own.
        answer: The expected answer; "" where there is none to look for.
        sources: Chunks that are known to hold the answer, or were meant to.
    """

    query_id: str
    asked: str
    answer: str
    sources: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A search by one retriever for one item.

    Args:
        query_id: Of the item.
        retriever: Its name.
        kind: `query`, `answer` or `source`.
        texts: What it is asked with; several for several sources.
    """

    query_id: str
    retriever: str
    kind: str
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """As the pool names it."""
        return f"{self.retriever}:{self.kind}"

    @property
    def key(self) -> str:
        """For a failure record; no run can have such a name."""
        return f"{self.name}/{self.query_id}"


@dataclass(frozen=True, slots=True)
class ProbeRanks:
    """Ranks that a probe gave to chunks for an item, from 1; several chunks may share one."""

    query_id: str
    probe: str
    ranks: Mapping[str, int]


def probes_of(items: Iterable[Item], retrievers: Iterable[str]) -> list[Probe]:
    """Return searches by the query, by the query with its answer, and by its sources' texts.

    What an item lacks gives no probe.
    """
    names = sorted(retrievers)
    return [
        Probe(item.query_id, name, kind, texts)
        for item in items
        for name in names
        for kind, texts in _texts(item)
    ]


async def look(
    probes: Sequence[Probe],
    retrievers: Mapping[str, Retriever],
    *,
    most: int,
    workers: Workers,
) -> Collected[ProbeRanks]:
    """Ask retrievers; a probe that fails is a failure of its own and leaves its item in work.

    Where a probe has several texts, a chunk gets the best of its ranks.

    Args:
        probes: What to ask.
        retrievers: Whom, by name.
        most: Ranks wanted.
        workers: How many probes are in work at once, and who is told.

    Raises:
        EndpointError: The endpoint that a retriever needs cannot be used.
    """

    async def find(probe: Probe) -> ProbeRanks:
        ranks: dict[str, int] = {}
        for text in probe.texts:
            hits = await given_by("retriever", retrievers[probe.retriever].retrieve(text, most))
            for rank, hit in enumerate(hits[:most], start=1):
                ranks[hit.chunk_id] = min(rank, ranks.get(hit.chunk_id, rank))
        return ProbeRanks(probe.query_id, probe.name, ranks)

    work: Work[Probe, ProbeRanks] = Work(
        stage="retrieve",
        key=lambda probe: probe.key,
        do=find,
        workers=workers,
    )
    return await collect(probes, work)


def beside(item: Item, survey: Survey, most: int) -> Iterator[ProbeRanks]:
    """Yield what stands beside an item's sources, and what reads nearly like them.

    Args:
        item: The sources themselves are not found again.
        survey: The corpus.
        most: Ranks wanted.
    """
    own = [source.chunk_id for source in item.sources]
    for name, near in ((NEIGHBOURS, survey.neighbours), (NEAR_DUPLICATES, survey.near_duplicates)):
        found = dict.fromkeys(other for chunk_id in own for other in near(chunk_id))
        others = [chunk_id for chunk_id in found if chunk_id not in own][:most]
        if others:
            ranks = {chunk_id: rank for rank, chunk_id in enumerate(others, start=1)}
            yield ProbeRanks(item.query_id, name, ranks)


def _texts(item: Item) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield QUERY, (item.asked,)
    if item.answer:
        yield ANSWER, (f"{item.asked}\n{item.answer}",)
    if item.sources:
        yield SOURCE, tuple(source.text for source in item.sources)


@dataclass(frozen=True, slots=True)
class Ranked:
    """All that the probes found for an item, at any rank.

    Args:
        query_id: Of the item.
        sources: Ids of the chunks that were known before any probe.
        ranks: For each chunk, the rank that each probe gave it, from 1.
    """

    query_id: str
    sources: frozenset[str]
    ranks: Mapping[str, Mapping[str, int]]

    def pool(self, depth: int, above: int = 0) -> list[str]:
        """Return the chunks whose best rank lies in (above, depth], sorted."""
        return sorted(
            chunk_id
            for chunk_id, ranks in self.ranks.items()
            if above < min(ranks.values()) <= depth
        )

    def entries(self, depth: int) -> list[PoolEntry]:
        """Return the pool with the ranks that lie within its depth, sorted."""
        return [
            PoolEntry(
                query_id=self.query_id,
                chunk_id=chunk_id,
                probes={
                    probe: rank
                    for probe, rank in sorted(self.ranks[chunk_id].items())
                    if rank <= depth
                },
            )
            for chunk_id in self.pool(depth)
        ]


@dataclass(frozen=True, slots=True)
class Growth:
    """How deep pools get.

    Args:
        first: Ranks of each probe in a pool at first.
        most: Ranks of each probe at most.
    """

    first: int
    most: int

    @property
    def start(self) -> int:
        """The depth of each pool at first."""
        return min(self.first, self.most)

    @property
    def block(self) -> int:
        """Ranks of each probe that are added at once, and whose yield decides about more.

        Half of the first ones: the top ranks of a probe nearly always hold something, and are no
        sign that there is more below. A block is then about one call of the judge.
        """
        return (self.first + 1) // 2

    def depths(self) -> list[int]:
        """Return all depths that a pool can have."""
        return [*range(self.start, self.most, self.block), self.most]

    def next_depth(
        self, ranked: Ranked, depth: int, is_relevant: Callable[[str], bool]
    ) -> int | None:
        """Return the depth to which a pool grows; None where it stays as it is.

        It grows where its last block brought a relevant chunk that no higher rank had, and that was
        not known from the start.

        Args:
            ranked: What the probes found.
            depth: Of the pool so far, one of `depths`.
            is_relevant: Whether a chunk of the pool has a grade that says so.
        """
        if depth >= self.most:
            return None
        new = set(ranked.pool(depth, max(0, depth - self.block))) - ranked.sources
        return min(depth + self.block, self.most) if any(map(is_relevant, new)) else None


def ranked_items(items: Iterable[Item], rankings: Iterable[ProbeRanks]) -> list[Ranked]:
    """Return the ranks of all probes for each item, in the order of the items."""
    by_query: dict[str, dict[str, dict[str, int]]] = {}
    for each in rankings:
        of_query = by_query.setdefault(each.query_id, {})
        for chunk_id, rank in each.ranks.items():
            of_query.setdefault(chunk_id, {})[each.probe] = rank
    return [
        Ranked(
            item.query_id,
            frozenset(source.chunk_id for source in item.sources),
            by_query.get(item.query_id, {}),
        )
        for item in items
    ]
