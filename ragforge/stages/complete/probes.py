"""Probes: each looks for a query's chunks in its own way, and says in which order it found them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragforge.corpus.survey import Survey
from ragforge.errors import CallError, DataError
from ragforge.records import Chunk
from ragforge.retrieval import Retriever
from ragforge.stages.runner import Collected, Work, Workers, collect

QUERY = "query"
ANSWER = "answer"
SOURCE = "source"
NEIGHBOURS = "neighbours"
TWINS = "twins"


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
            try:
                hits = await retrievers[probe.retriever].retrieve(text, most)
            except DataError as error:
                raise CallError("error", str(error)) from error
            for rank, hit in enumerate(hits[:most], start=1):
                ranks[hit.chunk_id] = min(rank, ranks.get(hit.chunk_id, rank))
        return ProbeRanks(probe.query_id, probe.name, ranks)

    work: Work[Probe, ProbeRanks] = Work(
        stage="retrieve",
        key=lambda probe: probe.key,
        do=find,
        workers=workers,
    )
    return await collect(probes, work, blank=None, keep=lambda collected: None)


def beside(item: Item, survey: Survey, most: int) -> Iterator[ProbeRanks]:
    """Yield what stands beside an item's sources, and what reads nearly like them.

    Args:
        item: The sources themselves are not found again.
        survey: The corpus.
        most: Ranks wanted.
    """
    own = [source.chunk_id for source in item.sources]
    for name, near in ((NEIGHBOURS, survey.neighbours), (TWINS, survey.twins)):
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
