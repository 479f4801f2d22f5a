"""New chunks under an old set: its evidence is looked up again, and no model is asked."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ragforge.corpus.chunking import text_sha256
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.errors import UsageError
from ragforge.files.record_files import read_records
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.cards import renew_card
from ragforge.pipeline.generation.generated_queries import settle
from ragforge.pipeline.generation.source import Prepared, take_corpus
from ragforge.pipeline.graded_quotes import GradedQuotes, at_chunks, by_rank, moved_pool
from ragforge.records import Chunk, Evidence, Judgment, Query
from ragforge.stages.generate.truth import derive


@dataclass(slots=True)
class Rederivation:
    """What became of a set when its chunks were replaced.

    Args:
        n_quotes: Of evidence, in queries that are not retired.
        lost: Those that stand nowhere in their document any more, by query.
        quarantined: Ids of the queries that lost all or part of their evidence.
        freed: Ids of those that had lost some, and have it again.
        n_kept: Grades of judges and people whose chunk reads the same now.
        n_dropped: Grades whose chunk is gone; their pairs are holes now.
    """

    n_quotes: int = 0
    lost: list[tuple[str, Evidence]] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    freed: list[str] = field(default_factory=list)
    n_kept: int = 0
    n_dropped: int = 0

    @property
    def n_found(self) -> int:
        """Quotes that were found again."""
        return self.n_quotes - len(self.lost)

    def as_json(self) -> dict[str, object]:
        """Return the figures, and what was lost by query."""
        return {
            "quotes": self.n_quotes,
            "found": self.n_found,
            "lost": [{"query_id": name, **item.model_dump()} for name, item in self.lost],
            "quarantined": self.quarantined,
            "freed": self.freed,
            "grades_carried": self.n_kept,
            "grades_dropped": self.n_dropped,
        }


def rederive_dataset(dataset: Dataset, prepared: Prepared) -> Rederivation:
    """Replace the chunks of a dataset; evidence, relevant chunks and grades follow.

    A query that lost a quote is quarantined, but for one that a person pinned. A grade stays
    where a chunk of the same document reads the same, whatever its id; one of a judge is then
    marked as carried. A grade that a person gave to a quote follows the quote, and is never
    raised. Running it again changes nothing.

    Args:
        dataset: With queries.
        prepared: The corpus as it is cut now.

    Raises:
        UsageError: No quote at all is result: these are other documents.
    """
    queries = dataset.all_queries()
    result = Rederivation()
    graded = GradedQuotes(dataset.each_judgment(), dataset.chunks(), queries)
    index = _index(queries, graded.documents, prepared)
    derived, evidence = _derive_all(queries, index, result)
    if result.n_quotes and not result.n_found:
        raise UsageError(
            f"{dataset.path}: none of its {result.n_quotes} quotes stands in these chunks; they "
            "seem to be of other documents"
        )
    moves = _NewChunkIds(dataset, prepared)
    followed = graded.place(index)
    carried = _carried(dataset.each_judgment(), moves, followed.pairs, result)
    judgments = [*followed.judgments, *carried, *evidence]
    pool = moved_pool(dataset.pool(), moves)
    if pool or dataset.pool():
        dataset.write_pool(pool)
    dataset.write_judgments({(j.query_id, j.chunk_id): j for j in by_rank(judgments)}.values())
    dataset.write_queries(derived)
    take_corpus(dataset, prepared)
    manifest = dataset.manifest
    if manifest.made_from.get("chunks") == prepared.digest:
        renew_card(dataset)
        return result
    # From these chunks, generation would make other queries; what is there stands beside them.
    settle(dataset)
    made_from = {**manifest.made_from, "chunks": prepared.digest}
    dataset.write_manifest(dataset.manifest.model_copy(update={"made_from": made_from}))
    renew_card(dataset)
    return result


def _derive_all(
    queries: Iterable[Query], index: ChunkIndex, result: Rederivation
) -> tuple[list[Query], list[Judgment]]:
    derived: list[Query] = []
    judgments: list[Judgment] = []
    for query in queries:
        if query.status == "retired":
            derived.append(query)
            continue
        again = derive(query, index)
        result.n_quotes += len(query.evidence)
        result.lost += [(query.query_id, item) for item in again.lost]
        judgments += again.judgments
        moved = again.query
        if again.lost and query.pinned is None:
            result.quarantined.append(query.query_id)
            moved = moved.model_copy(update={"status": "quarantined"})
        elif query.status == "quarantined" and query.evidence and not again.lost:
            # Only a lost quote quarantines a query that has evidence.
            result.freed.append(query.query_id)
            moved = moved.model_copy(update={"status": "accepted"})
        derived.append(moved)
    return derived, judgments


def _index(queries: Iterable[Query], graded: Collection[str], prepared: Prepared) -> ChunkIndex:
    """Return the new chunks of the documents that hold evidence, in their order."""
    documents = {item.doc_id for query in queries for item in query.evidence} | set(graded)
    chunks = [chunk for chunk in read_records(prepared.path, Chunk) if chunk.doc_id in documents]
    return ChunkIndex(sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id)))


class _NewChunkIds:
    """Which new chunks read like an old one that has a grade, in the same document."""

    def __init__(self, dataset: Dataset, prepared: Prepared) -> None:
        graded = {judgment.chunk_id for judgment in dataset.each_judgment()}
        graded |= {entry.chunk_id for entry in dataset.pool()}
        self._old = {
            chunk.chunk_id: _content(chunk)
            for chunk in dataset.chunks()
            if chunk.chunk_id in graded
        }
        wanted = set(self._old.values())
        self._by_text: dict[tuple[str, str], list[str]] = {}
        self._documents = set[str]()
        for chunk in read_records(prepared.path, Chunk):
            content = _content(chunk)
            self._documents.add(chunk.doc_id)
            if content in wanted:
                self._by_text.setdefault(content, []).append(chunk.chunk_id)

    def of(self, chunk_id: str) -> list[str]:
        """Return the ids that a chunk has now, its own alone where it still reads the same."""
        found = self._by_text.get(self._old.get(chunk_id, ("", "")), [])
        return [chunk_id] if chunk_id in found else found

    def of_judgment(self, judgment: Judgment) -> list[str]:
        """Return the ids a judgment holds for now; a document's own id where it is there."""
        if judgment.level == "chunk":
            return self.of(judgment.chunk_id)
        return [judgment.chunk_id] if judgment.chunk_id in self._documents else []


def _content(chunk: Chunk) -> tuple[str, str]:
    return chunk.doc_id, text_sha256(chunk.text)


def _carried(
    judgments: Iterable[Judgment],
    moves: _NewChunkIds,
    followed: Collection[tuple[str, str]],
    result: Rederivation,
) -> Iterable[Judgment]:
    for judgment in judgments:
        if judgment.source == "evidence":
            continue
        now = moves.of_judgment(judgment)
        if not now and (judgment.query_id, judgment.chunk_id) not in followed:
            result.n_dropped += 1
        else:
            result.n_kept += 1
        yield from at_chunks(judgment, now)
