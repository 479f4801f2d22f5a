"""Qrels: which chunk has which grade for which query, from files of many shapes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.fields import Row, query_name, query_of_pair, shown
from ragforge.files.lines import open_source
from ragforge.files.names import CHUNK_ID, GRADE, GRADES, QUERY, QUERY_ID, RELEVANT
from ragforge.files.relevance import HIGHEST_GRADE, Relevance, grade_of_listed, read_relevance
from ragforge.files.rows import has_header, none_found, read_rows_of, unknown_shape
from ragforge.files.trec import read_trec_qrels

SHAPES: Final = (
    "TREC qrels: q1 0 d7 2",
    "CSV or TSV with a header: query-id,corpus-id,score or query_id,chunk_id,grade",
    'JSON Lines: {"query_id": "q1", "chunk_id": "d7", "grade": 2}',
    'queries: {"queries": [{"id": "q1", "relevant_doc_ids": ["d7"], '
    '"graded_relevance": {"d7": 2}}]}',
    'a golden set: [{"query": "How …?", "relevant": ["d7"]}]',
    'test cases: [{"question": "How …?", "relevant_doc_ids": ["d7"]}]',
    'JSON by query: {"q1": {"d7": 2}} or {"q1": ["d7"]}',
    "a BEIR folder: qrels/test.tsv; a dataset: judgments.jsonl",
)
_FEWEST_COLUMNS: Final = 4
_NATIVE: Final = {"query_id", "chunk_id", "grade"}


def read_qrels(path: Path) -> Mapping[str, Mapping[str, int | None]]:
    """Return query id to chunk id to grade; None where a judgment gave no grade.

    The shape is recognised by suffix and first line; `.gz` and `.zst` are unpacked. Query and chunk
    ids are texts. A query without id goes by its text. A query without relevant chunks is there,
    empty. Grades are any whole numbers; 0 to 3 in rows with the names of `judgments.jsonl`. Ids
    that are listed as relevant without grade get the lowest grade that counts as relevant in the
    file: see `grade_of_listed`. Where a listed id has a grade too, that grade counts.

    Args:
        path: A file of one of `SHAPES`, or a folder.

    Raises:
        DataError: The file cannot be read, has none of the shapes, holds a grade that is no whole
            number, or judges a pair twice; the message names file, line and field.
    """
    source = open_source(_file(path) if path.is_dir() else path)
    if source.kind == "columns" and not has_header(source):
        if len(source.first.split()) < _FEWEST_COLUMNS:
            raise unknown_shape(source.path, SHAPES)
        return read_trec_qrels(source.path, source.groups)
    return qrels_of_rows(str(path), read_rows_of(source, SHAPES, by_query="relevant"))


def qrels_of_rows(where: str, rows: Iterator[Row]) -> Mapping[str, Mapping[str, int | None]]:
    """Return what rows say about pairs of query and chunk, or each about a query, as `read_qrels`.

    Args:
        where: Where the rows are from, for messages.
        rows: All of the kind of the first.

    Raises:
        DataError: There is none, or one cannot be taken.
    """
    collected = _Collected()
    for row, about_query in _shaped(where, rows):
        if about_query:
            collected.add_query(row)
        else:
            collected.add_pair(row)
    if not collected.queries:
        raise none_found(where, "judgments")
    return collected.settled()


def beir_split(folder: Path) -> Path:
    """Return the qrels file of a BEIR folder: of the test split, else of the only split.

    Raises:
        DataError: There is none, or several and none is called test.
    """
    splits = sorted((folder / "qrels").glob("*.tsv"))
    test = [split for split in splits if split.stem == "test"]
    if len(test or splits) == 1:
        return (test or splits)[0]
    if not splits:
        raise DataError(f"{folder}: expected a folder with qrels/test.tsv or judgments.jsonl")
    names = ", ".join(f"qrels/{split.name}" for split in splits)
    raise DataError(f"{folder}: expected one split, or one called test; name one of {names}")


@dataclass(slots=True)
class _Collected:
    queries: dict[str, Relevance] = field(default_factory=dict)
    graded: bool | None = None
    """Whether the rows of a file of pairs have grades; the first one decides."""

    def add_query(self, row: Row) -> None:
        query_id = query_name(row)
        if query_id in self.queries:
            raise DataError(f"{row.where}: query {shown(query_id)} comes twice")
        relevance = read_relevance(row)
        if relevance.anchors:
            raise DataError(
                f"{row.where}: relevant: expected ids, got quotes; chunks have to be found for "
                "them first, which the import of a golden set does"
            )
        self.queries[query_id] = relevance

    def add_pair(self, row: Row) -> None:
        query_id, chunk_id = query_of_pair(row), row.identifier(CHUNK_ID)
        grades = self.queries.setdefault(query_id, Relevance({})).grades
        if chunk_id in grades:
            raise DataError(
                f"{row.where}: query {shown(query_id)}: chunk {shown(chunk_id)} comes twice"
            )
        if self.graded is None:
            self.graded = row.has(GRADE)
        if not self.graded and row.has(GRADE):
            raise row.wrong(GRADE, "grades in all rows or in none", row.get(GRADE))
        grades[chunk_id] = _grade(row) if self.graded else 1

    def settled(self) -> dict[str, dict[str, int | None]]:
        every = chain.from_iterable(found.grades.values() for found in self.queries.values())
        grade = grade_of_listed(every)
        return {query_id: found.settled(grade) for query_id, found in self.queries.items()}


def _file(folder: Path) -> Path:
    native = folder / "judgments.jsonl"
    return native if native.is_file() else beir_split(folder)


def _shaped(where: str, rows: Iterator[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield rows, and whether they are about a query rather than a pair; the first decides."""
    about_query: bool | None = None
    for row in rows:
        if about_query is None:
            about_query = row.has(RELEVANT, GRADES)
            if not row.has(QUERY_ID, QUERY) or not (about_query or row.has(CHUNK_ID)):
                raise unknown_shape(where, SHAPES)
        if about_query and not row.has(RELEVANT, GRADES):
            row.require(RELEVANT)
        yield row, about_query


def _grade(row: Row) -> int | None:
    row.require(GRADE)
    value = row.get(GRADE)
    if value is None:
        return None
    grade = row.as_whole(value, GRADE)
    if row.given.keys() >= _NATIVE and not 0 <= grade <= HIGHEST_GRADE:
        raise row.wrong(GRADE, "0, 1, 2 or 3", value)
    return grade
