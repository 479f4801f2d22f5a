"""Qrels in rows: about a pair of query and chunk, or about a query."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import (
    CHUNK_ID,
    DOCUMENT,
    GRADE,
    GRADE_BY_NAME,
    GRADES,
    ITEM_ID,
    QUERY,
    QUERY_ID,
    QUERY_ID_OF_PAIR,
    QUERY_OF_PAIR,
    RELEVANT,
    TEXT,
    TITLE,
    Field,
    goes_by,
)
from ragforge.files.formats.named_texts import NamedText, question_beside, text_beside
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.formats.row_relevance import (
    HIGHEST_GRADE,
    Relevance,
    SettledRelevance,
    lists_in_words,
    read_relevance,
    settle_relevance,
)
from ragforge.files.row import Row, is_grade, pair_twice, query_name, query_of_pair
from ragforge.files.source_files import Source, has_header
from ragforge.files.text import shown
from ragforge.measures.listed_relevance import marked_labels
from ragforge.records.judgments import GradeOrigin, origin
from ragforge.records.record import JudgeKind

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
_NATIVE: Final = {"query_id", "chunk_id", "grade"}
_SOURCES: Final = frozenset({"human", "judge", "carried", "evidence", "model", "llm"})
"""What rows call those who graded; a source may be that of the passage, too."""
_GRADE_OF_PAIR: Final = GRADE._replace(accepted=(*GRADE.accepted, "relevant"))
_BY_NAME_OF_PAIR: Final = GRADE_BY_NAME._replace(accepted=(*GRADE_BY_NAME.accepted, "relevant"))
_NO_GRADES: Final = (QUERY_ID, QUERY, CHUNK_ID, ITEM_ID, DOCUMENT, TITLE, TEXT)
"""What else a row about a pair may hold that looks like a number."""


class RowsOfQrels(NamedTuple):
    """What rows say of pairs; see `ragforge.files.formats.qrels.JudgedQrels`."""

    relevance: SettledRelevance
    origins: Mapping[tuple[str, str], GradeOrigin]
    texts: Mapping[str, Sequence[NamedText]]
    questions: Collection[NamedText]


def read_rows_of_qrels(source: Source) -> RowsOfQrels:
    """Return the qrels of a file that is no TREC file; see `ragforge.files.formats.qrels`."""
    if source.kind == "columns" and not has_header(source):
        raise unknown_shape(source.path, SHAPES)
    rows = read_rows_of(source, SHAPES, by_query="relevant")
    collected = _collected(str(source.path), rows)
    return RowsOfQrels(collected.settled(), collected.origins, collected.texts, collected.questions)


def qrels_of_rows(where: str, rows: Iterator[Row]) -> SettledRelevance:
    """Return the qrels of rows about pairs of query and chunk, or each about a query, as in a file.

    Args:
        where: Where the rows are from, for messages.
        rows: All of the kind of the first.

    Raises:
        DataError: There is none, or one cannot be taken.
    """
    return _collected(where, rows).settled()


def _collected(where: str, rows: Iterator[Row]) -> "_Collected":
    collected = _Collected()
    for row, about_query in _shaped(where, rows):
        if about_query:
            collected.add_query(row)
        else:
            collected.add_pair(row)
    if not collected.queries:
        raise none_found(where, "judgments")
    return collected


@dataclass(slots=True)
class _Collected:
    queries: dict[str, Relevance] = field(default_factory=dict)
    graded: bool | None = None
    """Whether the rows of a file of pairs have grades; the first one decides."""
    marks: dict[str, dict[str, bool]] = field(default_factory=dict)
    """Of judgments, whether chunks are listed as relevant, where no threshold says so."""
    origins: dict[tuple[str, str], GradeOrigin] = field(default_factory=dict)
    """Of the pairs whose rows say who graded."""
    questions: dict[NamedText, None] = field(default_factory=dict)
    """What rows ask beside the ids of their queries."""
    texts: dict[str, list[NamedText]] = field(default_factory=dict)
    """What passages read, by query, as far as rows say it."""
    has_texts: bool | None = None
    """Whether the rows of a table have columns of such texts."""

    def add_query(self, row: Row) -> None:
        query_id = query_name(row)
        if query_id in self.queries:
            raise DataError(f"{row.where}: query {shown(query_id)} comes twice")
        relevance = read_relevance(row)
        if relevance.graded_quotes:
            raise DataError(
                f"{row.where}: relevant: expected ids, got quotes; chunks have to be found for "
                "them first, which the import of a golden set does"
            )
        self.queries[query_id] = relevance
        self.questions |= dict.fromkeys(question_beside(row, query_id))
        if relevance.texts:
            self.texts[query_id] = list(relevance.texts)

    def add_pair(self, row: Row) -> None:
        query_id, chunk_id = query_of_pair(row), row.identifier(CHUNK_ID)
        if row.given.get("level") == "document":
            raise DataError(
                f"{row.where}: level: {shown(chunk_id)} is a whole document, and a file of "
                "judgments does not tell whose chunks count for it; measure with --dataset DIR, or "
                "write qrels and runs of documents with `ragforge export --dataset DIR --as trec`"
            )
        name = GRADE if _is_judgment(row) else _GRADE_OF_PAIR
        grades = self.queries.setdefault(query_id, Relevance({})).grades
        if chunk_id in grades or chunk_id in self.marks.get(query_id, {}):
            raise pair_twice(row.where, query_id, chunk_id)
        grade = self._grade(row, name)
        mark = _mark(row)
        if mark is not None:
            self.marks.setdefault(query_id, {})[chunk_id] = mark
        if grade is not None or mark is None:
            grades[chunk_id] = grade
        if _says_who(row):
            self.origins[query_id, chunk_id] = _origin(row)
        self.questions |= dict.fromkeys(question_beside(row, query_id))
        if self.has_texts is None or not row.is_of_table:
            self.has_texts = row.has(TEXT)
        if self.has_texts and (texts := text_beside(row, chunk_id, row.get(QUERY_OF_PAIR))):
            self.texts.setdefault(query_id, []).extend(texts)

    def _grade(self, row: Row, name: Field) -> int | None:
        if self.graded is None:
            self.graded = row.has(name)
        if self.graded:
            return _grade(row, name)
        if row.has(name):
            raise row.wrong(name, "grades in all rows or in none", row.get(name))
        _refuse_grades(row)
        return 1

    def settled(self) -> SettledRelevance:
        if not self.marks:
            return settle_relevance(self.queries)
        qrels = {query_id: one.grades for query_id, one in self.queries.items()}
        highest = max((grade or 0 for of in qrels.values() for grade in of.values()), default=0)
        threshold = 2 if highest > 1 else 1
        graded, lists = marked_labels(qrels, self.marks, threshold)
        grades = {key: dict(of) for key, of in graded.items()}
        by_lists = lists_in_words(lists, qrels, threshold)
        return SettledRelevance(grades, None, lists, by_lists)


def _mark(row: Row) -> bool | None:
    """Return whether a judgment says that its chunk is listed as relevant; None where it does not.

    Raises:
        DataError: It is neither true nor false.
    """
    mark = row.given.get("relevant") if _is_judgment(row) else None
    if mark is None or isinstance(mark, bool):
        return mark
    raise row.wrong(RELEVANT, "true or false", mark)


def _is_judgment(row: Row) -> bool:
    return row.given.keys() >= _NATIVE


def _says_who(row: Row) -> bool:
    """Whether a row says who gave its grade."""
    given = row.given
    if given.get("provenance") not in (None, "") or given.get("source") in _SOURCES:
        return True
    return _is_name(given.get("model"))


def _origin(row: Row) -> GradeOrigin:
    """Return who gave the grade of a row, as far as its provenance can be read.

    A name alone is of a model, unless the row says that a person graded.

    Raises:
        DataError: Its kind is none that there is.
    """
    by = row.given.get("provenance")
    named = by if isinstance(by, Mapping) else {"model": by or row.given.get("model")}
    said = (named.get(name) for name in ("kind", "model", "prompt"))
    kind, model, prompt = (value if isinstance(value, str) else "" for value in said)
    if kind and kind not in get_args(JudgeKind):
        kinds = ", ".join(get_args(JudgeKind))
        raise DataError(f"{row.where}: provenance.kind: expected one of {kinds}, got {shown(kind)}")
    source = str(row.given.get("source") or "")
    is_of_model = bool(model) and source not in ("human", "evidence")
    return origin(kind or ("llm" if is_of_model else ""), model, prompt, source)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shaped(where: str, rows: Iterator[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield rows, and whether they are about a query rather than a pair; the first decides."""
    about_query: bool | None = None
    for row in rows:
        if about_query is None:
            about_query = (
                row.has(RELEVANT, GRADES) and not _is_judgment(row) and not _is_marked_pair(row)
            )
            if not row.has(QUERY_ID, QUERY) or not (about_query or row.has(CHUNK_ID)):
                raise unknown_shape(where, SHAPES)
        if about_query and not row.has(RELEVANT, GRADES):
            row.require(RELEVANT)
        yield row, about_query


def _is_marked_pair(row: Row) -> bool:
    """Whether a row names a chunk, and says under `relevant` whether it is, or how much."""
    is_pair = row.has(QUERY_ID_OF_PAIR, QUERY_OF_PAIR) and row.has(CHUNK_ID)
    return is_pair and not row.has(GRADES) and is_grade(row.given.get("relevant"))


def _refuse_grades(row: Row) -> None:
    """Refuse a row of pairs without grades that may well have one, under a name nobody knows.

    Raises:
        DataError: It is so: taken without it, the pair would be relevant whatever it says.
    """
    columns = [
        repr(name)
        for name, value in row.given.items()
        if is_grade(value) and not any(goes_by(name, known) for known in _NO_GRADES)
    ]
    if columns:
        raise DataError(
            f"{row.where}: {', '.join(columns)}: may be the grade of the pair; name that column "
            f"grade (or {', '.join(GRADE.accepted[1:])}), in all rows, and leave other numbers out"
        )


def _grade(row: Row, name: Field) -> int | None:
    row.require(name)
    value = row.get(name)
    if value is None:
        row.refuse_blank(GRADE_BY_NAME if name is GRADE else _BY_NAME_OF_PAIR)
        return None
    grade = row.as_grade(value, name)
    is_of_a_set = _is_judgment(row) and "source" in row.given  # Other qrels are on any scale.
    if is_of_a_set and not row.is_of_table and not 0 <= grade <= HIGHEST_GRADE:
        raise row.wrong(name, "0, 1, 2 or 3", value)
    return grade
