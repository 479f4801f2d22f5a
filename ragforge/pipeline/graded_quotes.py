"""Grades that people gave to quotes, which follow the quotes into other chunks."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from ragforge.corpus.quote_locations import CONTEXT_CHARS, ChunkIndex, fold, locate
from ragforge.deferred import dataclass
from ragforge.records import Chunk, Evidence, Judgment, PoolEntry, Query
from ragforge.stages.generate.truth import grades_at


class ChunkMoves(Protocol):
    """Under which ids chunks are found now."""

    def of(self, chunk_id: str) -> Sequence[str]:
        """Return the ids that a chunk has now: its own alone where it stays, none where it is gone.

        One text may stand several times now, and what stood several times may stand once.
        """


def at_chunks(judgment: Judgment, chunk_ids: Iterable[str]) -> Iterator[Judgment]:
    """Yield a judgment for each id that its chunk has now; a judge's is marked at a new one."""
    for chunk_id in chunk_ids:
        if chunk_id == judgment.chunk_id:
            yield judgment
        else:
            source = "carried" if judgment.source == "judge" else judgment.source
            update = {"chunk_id": chunk_id, "source": source, "copied_from": ""}
            yield judgment.model_copy(update=update)


def by_rank(judgments: Iterable[Judgment]) -> list[Judgment]:
    """Order judgments so that the last of a pair stands: a person's, a judge's, the evidence's."""
    rank = {"evidence": 1, "carried": 2, "judge": 3, "human": 4}
    return sorted(judgments, key=lambda item: (not item.is_failed, rank[item.source]))


def moved_pool(entries: Iterable[PoolEntry], moves: ChunkMoves) -> list[PoolEntry]:
    """Return pools with the ids that their chunks have now; the last of a pair stands."""
    merged: dict[tuple[str, str], PoolEntry] = {}
    for entry in entries:
        for chunk_id in moves.of(entry.chunk_id):
            here = chunk_id == entry.chunk_id
            moved = entry if here else entry.model_copy(update={"chunk_id": chunk_id})
            merged[entry.query_id, chunk_id] = moved
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class PlacedGrades:
    """Grades in other chunks.

    Args:
        judgments: Of the chunks that hold a quote now; of several grades of a pair the highest.
        pairs: Query and chunk of the grades that they come from.
    """

    judgments: list[Judgment]
    pairs: set[tuple[str, str]]


def _same_id(doc_id: str) -> str:
    return doc_id


class GradedQuotes:
    """Quotes that people graded, at their places in the chunks that they graded.

    Args:
        judgments: Of any kind; the others are passed over.
        chunks: All that these name; read to the end, others are not kept.
        queries: Those that are judged; their evidence knows where a quote stands.
        doc_of: Gives the id that a document has now.
    """

    def __init__(
        self,
        judgments: Iterable[Judgment],
        chunks: Iterable[Chunk],
        queries: Iterable[Query],
        doc_of: Callable[[str], str] = _same_id,
    ) -> None:
        graded = [judgment for judgment in judgments if is_graded_quote(judgment)]
        wanted = {judgment.chunk_id for judgment in graded}
        found = _named(chunks, wanted) if wanted else {}
        known = _known(queries)
        self._quotes: list[tuple[Judgment, Evidence]] = []
        for judgment in graded:
            chunk = found.get(judgment.chunk_id)
            if chunk is not None:
                key = (judgment.query_id, chunk.doc_id, fold(judgment.evidence))
                item = known.get(key) or _quote(judgment, chunk)
                item = item.model_copy(update={"doc_id": doc_of(item.doc_id)})
                self._quotes.append((judgment, item))

    @property
    def documents(self) -> set[str]:
        """Those that hold the quotes."""
        return {item.doc_id for _, item in self._quotes}

    def place(self, index: ChunkIndex) -> PlacedGrades:
        """Return the grades that the quotes give to the chunks of an index."""
        return place_grades(self._quotes, index)


def place_grades(quotes: Iterable[tuple[Judgment, Evidence]], index: ChunkIndex) -> PlacedGrades:
    """Return the grades that quotes give to the chunks of an index.

    Args:
        quotes: Each with what a person gave to it.
        index: Of all chunks of the documents that hold them.
    """
    by_pair: dict[tuple[str, str], Judgment] = {}
    pairs: set[tuple[str, str]] = set()
    for judgment, item in quotes:
        placed = index.place(item)
        if placed is None:
            continue
        pairs.add((judgment.query_id, judgment.chunk_id))
        for chunk_id, grade in grades_at(placed, judgment.grade or 0).items():
            old = by_pair.get((judgment.query_id, chunk_id))
            if old is None or (old.grade or 0) < grade:
                update = {"chunk_id": chunk_id, "grade": grade, "copied_from": ""}
                by_pair[judgment.query_id, chunk_id] = judgment.model_copy(update=update)
    return PlacedGrades(list(by_pair.values()), pairs)


def is_graded_quote(judgment: Judgment) -> bool:
    """Whether a person graded a quote, rather than a chunk."""
    return judgment.source == "human" and bool(judgment.evidence) and judgment.grade is not None


def _named(chunks: Iterable[Chunk], wanted: Collection[str]) -> dict[str, Chunk]:
    return {chunk.chunk_id: chunk for chunk in chunks if chunk.chunk_id in wanted}


def _known(queries: Iterable[Query]) -> dict[tuple[str, str, str], Evidence]:
    """Return evidence by query, document and quote: it knows where the quote stands."""
    return {
        (query.query_id, item.doc_id, fold(item.quote)): item
        for query in queries
        for item in query.evidence
    }


def _quote(judgment: Judgment, chunk: Chunk) -> Evidence:
    """Return the quote of a judgment with what its chunk tells of its place."""
    item = Evidence(doc_id=chunk.doc_id, chunk_id=chunk.chunk_id, quote=judgment.evidence)
    at = locate(judgment.evidence, chunk.text)
    if at is None:
        return item
    update = {
        "start": chunk.start + at.start,
        "prefix": chunk.text[max(0, at.start - CONTEXT_CHARS) : at.start],
        "suffix": chunk.text[at.end : at.end + CONTEXT_CHARS],
    }
    return item.model_copy(update=update)
