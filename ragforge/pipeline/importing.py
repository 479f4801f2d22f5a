"""Taking a hand-made set of queries into a dataset: its quotes become judgments of chunks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragforge.corpus.anchors import ChunkIndex
from ragforge.errors import DataError
from ragforge.files.dataset import Dataset
from ragforge.files.manifest import digest_texts
from ragforge.files.opening import create_dataset
from ragforge.files.queries import ImportedQuery, read_queries
from ragforge.files.relevance import HIGHEST_GRADE
from ragforge.observe import Event, Observer
from ragforge.records import Chunk, Evidence, Judgment, Provenance, Query
from ragforge.stages.answer.facts import keeping_facts
from ragforge.stages.generate.stage import query_id

LEAST_EVIDENCE_GRADE = 2


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What was taken in."""

    dataset: Dataset
    n_queries: int
    n_judgments: int
    n_lost: int
    """Relevant passages that are in no chunk."""


def import_queries(
    path: Path, dataset: Dataset, observer: Observer, *, made_by: str = ""
) -> ImportResult:
    """Add the queries of a file to a dataset, with the grades of their relevant passages.

    A query that is there already is replaced; so are its human grades. Where the file tells only
    relevant from not, relevant is grade 2: on a scale to 3, grade 1 would say that no part of the
    answer is there. An id may be that of a document if the document is one chunk.

    Args:
        path: Queries in any of the shapes that `read_queries` takes.
        dataset: Has chunks.
        observer: Told of passages that are in no chunk.
        made_by: Who graded, for provenance.

    Raises:
        DataError: The file does not hold to its format, or none of its relevant passages is in
            any chunk; nothing is written then.
    """
    imported = read_queries(path, make_id=lambda text: query_id(text, "en"))
    taking = _Taking(list(dataset.chunks()), made_by, binary=_is_binary(imported))
    for item in imported:
        taking.take(item)
    if taking.lost:
        shown = "; ".join(taking.lost[:3])
        told = f"{len(taking.lost)} relevant passages are in no chunk: {shown}"
        if not taking.judgments:
            raise DataError(f"{path}: {told}; is it a set for other documents?")
        observer(Event("note", message=told))
    fresh = {query.query_id for query in taking.queries}
    before = dataset.all_queries()
    kept_queries = [old for old in before if old.query_id not in fresh]
    kept = [
        old
        for old in dataset.judgments()
        if not (old.source == "human" and old.query_id in fresh)
        and (old.query_id, old.chunk_id) not in taking.judgments
    ]
    dataset.write_queries([*kept_queries, *keeping_facts(taking.queries, before)])
    dataset.write_judgments([*kept, *taking.judgments.values()])
    return ImportResult(dataset, len(fresh), len(taking.judgments), len(taking.lost))


def dataset_for(out: Path, chunks: Sequence[Chunk]) -> Dataset:
    """Return the dataset in a directory, made with these chunks where there is none.

    Raises:
        UsageError: The directory holds a dataset of other chunks, or other files.
    """
    made_from = {"chunks": digest_texts({chunk.chunk_id: chunk.text for chunk in chunks})}
    dataset = create_dataset(out, made_from)
    dataset.write_chunks(chunks)
    return dataset


class _Taking:
    """Collects queries and judgments, quotes resolved to chunks."""

    def __init__(self, chunks: list[Chunk], made_by: str, *, binary: bool) -> None:
        self._index = ChunkIndex(chunks)
        self._ids: dict[str, list[str]] = {}
        for chunk in chunks:
            self._ids.setdefault(chunk.doc_id, []).append(chunk.chunk_id)
        self._ids.update({chunk.chunk_id: [chunk.chunk_id] for chunk in chunks})
        self._relevant = LEAST_EVIDENCE_GRADE if binary else 1
        self._provenance = Provenance(kind="human", model=made_by)
        self.queries: list[Query] = []
        self.judgments: dict[tuple[str, str], Judgment] = {}
        self.lost: list[str] = []

    def take(self, item: ImportedQuery) -> None:
        """Take one query with its passages."""
        query = item.query
        evidence: list[Evidence] = []
        for chunk_id, grade in item.grades.items():
            meant = self._ids.get(chunk_id, [])
            if len(meant) != 1:
                many = f" (a document of {len(meant)} chunks; name one, or a quote)"
                self.lost.append(f"{query.query_id}: {chunk_id}{many if meant else ''}")
            elif grade is not None:
                checked = _checked(query, chunk_id, grade)
                self._judge(
                    query.query_id, meant[0], self._relevant if checked == 1 else checked, ""
                )
        for anchor in item.anchors:
            held = self._index.holding(anchor.quote, anchor.doc_id)
            if not held:
                self.lost.append(f"{query.query_id}: {anchor.doc_id}: {anchor.quote[:60]!r}")
            for chunk in held:
                self._judge(query.query_id, chunk.chunk_id, anchor.grade, anchor.quote)
            if held and anchor.grade >= LEAST_EVIDENCE_GRADE:
                evidence.append(_evidence(held[0], anchor.quote))
        update = {"evidence": tuple(evidence) or query.evidence, "lineage": self._provenance}
        self.queries.append(query.model_copy(update=update))

    def _judge(self, asked: str, chunk_id: str, grade: int, quote: str) -> None:
        old = self.judgments.get((asked, chunk_id))
        if old is not None and (old.grade or 0) >= grade:
            return
        holds = grade >= LEAST_EVIDENCE_GRADE
        self.judgments[asked, chunk_id] = Judgment(
            query_id=asked,
            chunk_id=chunk_id,
            grade=grade,
            contains_answer=holds,
            evidence=quote if holds else "",
            source="human",
            provenance=self._provenance,
        )


def _is_binary(imported: Iterable[ImportedQuery]) -> bool:
    """Whether a file tells relevant from not, and no more."""
    return all(
        not item.anchors and all(grade in (None, 0, 1) for grade in item.grades.values())
        for item in imported
    )


def _checked(query: Query, chunk_id: str, grade: int) -> int:
    if not 0 <= grade <= HIGHEST_GRADE:
        raise DataError(
            f"query {query.query_id}: grade of {chunk_id}: expected 0, 1, 2 or 3, got {grade}"
        )
    return grade


def _evidence(chunk: Chunk, quote: str) -> Evidence:
    at = chunk.text.find(quote)
    known = at >= 0 and chunk.end > chunk.start
    return Evidence(
        doc_id=chunk.doc_id,
        chunk_id=chunk.chunk_id,
        quote=quote,
        start=chunk.start + at if known else None,
        end=chunk.start + at + len(quote) if known else None,
    )
