"""Taking a hand-made set of queries into a dataset: its quotes become judgments of chunks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragforge.corpus.anchors import ChunkIndex
from ragforge.errors import DataError
from ragforge.files.dataset import Dataset
from ragforge.files.opening import create_dataset, refuse_other_files
from ragforge.files.queries import ImportedQuery, read_queries
from ragforge.files.relevance import HIGHEST_GRADE
from ragforge.observe import Event, Observer
from ragforge.pipeline.generation.source import ChunkSource
from ragforge.pipeline.reimporting import Reimported, is_of_former_wording, reimported
from ragforge.records import Chunk, Evidence, Judgment, Lineage, Provenance, Query
from ragforge.stages.answer.facts import keeping_facts
from ragforge.stages.generate.stage import query_id
from ragforge.stages.generate.truth import derive

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

    A query that is there already is replaced, see `reimported`; so are its human grades. A query of
    another dataset keeps its lineage, its evidence is looked up anew, and grades that people gave
    it here stay. Where the file tells only relevant from not, relevant is grade 2: on a scale to 3,
    grade 1 would say that no part of the answer is there. An id may be that of a document if the
    document is one chunk.

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
    return take_in(imported, dataset, observer, made_by=made_by, where=str(path))


def take_in(
    imported: Sequence[ImportedQuery],
    dataset: Dataset,
    observer: Observer,
    *,
    made_by: str,
    where: str,
) -> ImportResult:
    """Add queries to a dataset, with the grades of their relevant passages; see `import_queries`.

    Args:
        imported: Queries with what is relevant to them.
        dataset: Has chunks.
        observer: Told of passages that are in no chunk.
        made_by: Who graded.
        where: Which file they are of, for messages.

    Raises:
        DataError: None of the relevant passages is in any chunk; nothing is written then.
    """
    taking = _Taking(list(dataset.chunks()), made_by, binary=_is_binary(imported))
    for item in imported:
        taking.take(item)
    if taking.lost:
        shown = "; ".join(taking.lost[:3])
        told = f"{len(taking.lost)} relevant passages are in no chunk: {shown}"
        if not taking.judgments:
            raise DataError(f"{where}: {told}; is it a set for other documents?")
        observer(Event("note", message=told))
    before = {old.query_id: old for old in dataset.all_queries()}
    found = reimported(taking.queries, before)
    if found.held:
        shown = ", ".join(found.held[:3])
        many = f"{len(found.held)} queries that people pinned or edited in review stay as they are"
        observer(Event("note", message=f"{many}: {shown}"))
    _write(dataset, before, found, taking)
    return ImportResult(dataset, len(found.queries), len(taking.judgments), len(taking.lost))


def _write(
    dataset: Dataset,
    before: Mapping[str, Query],
    found: Reimported,
    taking: "_Taking",
) -> None:
    fresh = {query.query_id for query in found.queries}
    kept_queries = [old for name, old in before.items() if name not in fresh]
    kept = [
        old
        for old in dataset.judgments()
        if not (old.source == "human" and old.query_id in taking.graded)
        and not is_of_former_wording(old, found.reworded)
    ]
    human = {(old.query_id, old.chunk_id) for old in kept if old.source == "human"}
    new = {
        pair: judgment
        for pair, judgment in taking.judgments.items()
        if judgment.source == "human" or pair not in human
    }
    dataset.write_queries([*kept_queries, *keeping_facts(found.queries, before.values())])
    others = [old for old in kept if (old.query_id, old.chunk_id) not in new]
    dataset.write_judgments([*others, *new.values()])


def dataset_for(out: Path, source: ChunkSource) -> Dataset:
    """Return the dataset in a directory, made with these chunks where there is none.

    Raises:
        UsageError: The directory holds a dataset of other chunks, or other files.
        DataError: The chunks cannot be read or written.
    """
    refuse_other_files(out)
    with source.prepared(out / ".ragforge") as chunks:
        dataset = create_dataset(out, {"chunks": chunks.digest})
        dataset.take_chunks(chunks.path, chunks.count)
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
        self._made_by = made_by
        self._provenance = Provenance(kind="human", model=made_by)
        self.queries: list[Query] = []
        self.judgments: dict[tuple[str, str], Judgment] = {}
        self.lost: list[str] = []
        self.graded: set[str] = set()
        """Queries whose grades of people are those of the file."""

    def take(self, item: ImportedQuery) -> None:
        """Take one query with its passages."""
        query = item.query
        for chunk_id, grade in item.grades.items():
            self._grade(query, chunk_id, grade)
        evidence = self._quoted(item)
        if query.evidence:
            self._derive(query)
            return
        if query.lineage is None:
            self.graded.add(query.query_id)
        lineage = query.lineage or Lineage(kind="human", model=self._made_by)
        update = {"evidence": evidence, "lineage": lineage}
        self.queries.append(query.model_copy(update=update))

    def _grade(self, query: Query, chunk_id: str, grade: int | None) -> None:
        meant = self._ids.get(chunk_id, [])
        if len(meant) != 1:
            many = f" (a document of {len(meant)} chunks; name one, or a quote)"
            self.lost.append(f"{query.query_id}: {chunk_id}{many if meant else ''}")
        elif grade is not None:
            checked = _checked(query, chunk_id, grade)
            self._judge(query.query_id, meant[0], self._relevant if checked == 1 else checked, "")

    def _quoted(self, item: ImportedQuery) -> tuple[Evidence, ...]:
        """Judge the chunks that hold the quotes of a query, and return its evidence."""
        query_id = item.query.query_id
        evidence: list[Evidence] = []
        for anchor in item.anchors:
            held = self._index.holding(anchor.quote, anchor.doc_id)
            if not held:
                self.lost.append(f"{query_id}: {anchor.doc_id}: {anchor.quote[:60]!r}")
            for chunk in held:
                self._judge(query_id, chunk.chunk_id, anchor.grade, anchor.quote)
            if held and anchor.grade >= LEAST_EVIDENCE_GRADE:
                chunk_id = held[0].chunk_id
                evidence.append(
                    Evidence(doc_id=anchor.doc_id, chunk_id=chunk_id, quote=anchor.quote)
                )
        return derive(
            item.query.model_copy(update={"evidence": tuple(evidence)}), self._index
        ).query.evidence

    def _derive(self, query: Query) -> None:
        """Take a query of another dataset, whose evidence may stand in other chunks here."""
        derived = derive(query, self._index)
        self.queries.append(derived.query)
        for item in derived.lost:
            self.lost.append(f"{query.query_id}: {item.doc_id}: {item.quote[:60]!r}")
        for judgment in derived.judgments:
            self.judgments.setdefault((judgment.query_id, judgment.chunk_id), judgment)

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
