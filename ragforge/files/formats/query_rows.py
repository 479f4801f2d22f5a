"""Rows of hand-made query sets: a query, and what the row says is relevant to it."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final, NamedTuple

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.field_names import (
    ANSWERS,
    CATEGORY,
    CHUNK_ID,
    EXPECTED_ANSWER,
    GRADE,
    GRADE_OF_LIST,
    GRADE_OF_TEXTS,
    GRADES,
    GROUND_TRUTH,
    GROUND_TRUTHS,
    LANGUAGE,
    PERSONA,
    QUERY,
    QUERY_ID,
    QUERY_ID_OF_PAIR,
    QUOTE_OF_ROW,
    RANK,
    RANKING,
    RELEVANT,
    SCORE,
    Field,
    goes_by,
    holds_numbers,
    normal_name,
)
from ragforge.files.formats.named_texts import NamedText
from ragforge.files.formats.query_words import behaviour_of, difficulty_of, type_of, unsaid
from ragforge.files.formats.row_columns import (
    NO_COLUMNS,
    Columns,
    answers_with_places,
    are_outputs_expected,
    has_other_assertions,
    lacking_columns,
    names_not_read,
    no_such_column,
    refuse_misspelt_quotes,
    unknown_columns,
    with_columns,
)
from ragforge.files.formats.row_files import none_found, read_rows_of
from ragforge.files.formats.row_relevance import (
    EVIDENCE_SHAPE,
    HIGHEST_GRADE,
    GradedQuote,
    Relevance,
    grade_of_passage,
    joined,
    lacks_quotes,
    relevance_of_row,
    with_mark,
)
from ragforge.files.record_files import explain
from ragforge.files.row import Row, examples, grade_in_words
from ragforge.files.source_files import Source, has_header, open_source
from ragforge.files.text import shown
from ragforge.records import Query
from ragforge.records.model import pydantic

SHAPES: Final = (
    'golden set: {"query_id": "h1", "query": "How …?", "expected_answer": "…", '
    '"relevant": [{"doc_id": "a.md", "quote": "…", "grade": 3}]}',
    'queries: {"queries": [{"id": "q1", "query": "How …?", "relevant_doc_ids": ["d7"], '
    '"graded_relevance": {"d7": 3}}]}',
    'pairs of query and ids: [{"query": "How …?", "relevant": ["d7"]}]',
    'test cases: [{"question": "How …?", "relevant_doc_ids": ["d7"], "ground_truth": "…"}]',
    "a dataset's queries.jsonl",
    'a BEIR folder: queries.jsonl with {"_id": "q1", "text": "How …?"}, and qrels/test.tsv',
    "CSV or TSV with a header: query_id,query,expected_answer,relevant_doc_ids (ids between ;)",
    "CSV or TSV of passages: question,answer,doc_id,quote,difficulty,category (rows of one "
    "question belong together)",
)
_SURE_TRUTH: Final = Field(
    "expected_answer", tuple(name for name in GROUND_TRUTH.accepted if name != "reference")
)
"""Beside `answer`, a `reference` is often the source of it."""
_PLAIN_ID: Final = Field("id", ("id", "_id"))
"""Names of an id that may be of the row, rather than of its query."""
_PLACE: Final = Field(
    "place",
    (
        *("hop", "hop_index", "hop_number", "step", "order", "index", "no", "number"),
        *("page", "page_no", "page_number", "page_index", "section", "paragraph", "line"),
        *("chunk_index", "chunk_no", "chunk_number", "passage_index", "passage_no"),
        *("evidence_index", "evidence_no"),
    ),
)
"""Names of columns that number passages, or places in a document."""
_OUTPUTS: Final = Field("outputs", ("outputs", "output"))
_VAGUE: Final = Field("score", ("score", "value", "rating", "label"))
"""Names of grades of passages that may be of anything, as of an answer."""
_VALUES_HELD: Final = 50
"""Of each column that is not read."""
_QRELS_FLAG: Final = "--qrels FILE"
_RUN_FLAG: Final = "--run FILE"


@dataclass(frozen=True, slots=True)
class ImportedQuery:
    """A query from a file, and what the file says is relevant to it."""

    query: Query
    grades: dict[str, int | None] = field(default_factory=dict)
    """Grades by the ids of the file, which may be of chunks or of documents; any whole number."""
    graded_quotes: tuple[GradedQuote, ...] = ()
    """Passages named by quotes."""
    marks: Mapping[str, bool] = field(default_factory=dict)
    """Whether ids are listed as relevant, where no threshold on the grades of the file says so: of
    all that the query lists or grades; empty for a query without a list."""
    texts: tuple[NamedText, ...] = ()
    """What passages that are named by ids read, as far as the file says it."""
    unsaid: frozenset[str] = field(default=frozenset(), compare=False)
    """Fields of the query of which the file says nothing; `evidence` where it does not say what is
    relevant either."""


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query of one row or several, and what these say is relevant."""

    imported: ImportedQuery
    relevance: Relevance
    not_read: tuple[str, ...] = ()
    """Fields that may hold what is relevant, under names that nobody knows."""
    passed_over: tuple[str, ...] = ()
    """Why values are not read, in words."""


class ReadRows(NamedTuple):
    """What stands in a file of rows."""

    query_rows: list[QueryRow]
    repeated: list[str]
    """Where rows stand that say again what one before them says."""
    not_read: dict[str, list[object]]
    """First values of columns and keys that are known by no name."""
    is_table: bool
    as_read: tuple[str, ...] = ()
    """How cells of a spreadsheet and grades of a vague name were read, in words."""


def read_query_rows(
    path: Path, make_id: Callable[[str], str], columns: Columns = NO_COLUMNS
) -> ReadRows:
    """Return the queries of a file of rows; rows that are equal but for passages are one.

    Args:
        path: A file of one of `SHAPES`.
        make_id: Makes the id of a query without one from its text.
        columns: Where fields stand in rows that call them otherwise.

    Raises:
        DataError: The file cannot be read, has none of the shapes, a row lacks its text or holds
            a value of a wrong type, or an id comes twice with something else.
    """
    query_rows: dict[str, QueryRow] = {}
    seen: dict[str, str] = {}
    repeated: list[str] = []
    not_read: dict[str, list[object]] = {}
    graded: dict[bool | None, Row] = {}
    marks = _UnreadMarks()
    asked: dict[str, dict[str, None]] = {}
    source = _opened(path, columns)
    for row in _rows(source, columns):
        refuse_misspelt_quotes(row)
        graded.setdefault(grade_of_passage(row), row)
        _hold_unread(row, not_read)
        query_row = _query_row(row, make_id)
        query_id = query_row.imported.query.query_id
        marks.look(row, query_row)
        if not query_row.relevance.is_empty and goes_by(row.name_of(QUERY_ID) or "", _PLAIN_ID):
            asked.setdefault(query_row.imported.query.query, {})[query_id] = None
        first = seen.setdefault(query_id, row.where)
        if query_id in query_rows:
            before = query_rows[query_id]
            if (before.imported, before.relevance) == (query_row.imported, query_row.relevance):
                repeated.append(row.where)
                continue
            query_row = _together(before, query_row, row.where, first)
        query_rows[query_id] = query_row
    if not query_rows:
        raise none_found(path, "query")
    if True in graded and False in graded:
        blank = graded[False]
        raise DataError(
            f"{blank.where}: {GRADE.name}: is blank, where {graded[True].where} has one; give the "
            "passage a grade, or leave the row out while nobody has graded it"
        )
    marks.refuse()
    of_sheet = source.sheet.notes(path) if source.sheet else ()
    as_read = (*of_sheet, *_grade_notes(graded.get(True)), *_split_notes(path, asked))
    return ReadRows(list(query_rows.values()), repeated, not_read, row.is_of_table, as_read)


def _hold_unread(row: Row, held: dict[str, list[object]]) -> None:
    """Add the values of a row under names that nobody knows."""
    for name in () if _is_record(row) else names_not_read(row):
        values = held.setdefault(name, [])
        if len(values) < _VALUES_HELD:
            values.append(row.given[name])


def _split_notes(path: Path, asked: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield how many questions have several ids, which may be those of their rows.

    Args:
        path: The file.
        asked: Ids by question, of rows that name passages.
    """
    several = [ids for of in asked.values() if len(ids := list(of)) > 1]
    if several:
        n = "1 question comes" if len(several) == 1 else f"{len(several):,} questions come"
        yield (
            f"{path}: {n} under several ids, such as {shown(several[0][0])} and "
            f"{shown(several[0][1])}, and each id is a query of its own, with its own passages; "
            "where they number the rows, leave them out"
        )


def _grade_notes(graded: Row | None) -> Iterator[str]:
    """Yield that a field of a vague name is read as grades, of the first row with one."""
    name = graded.name_of(GRADE) if graded else None
    if graded and name and goes_by(name, _VAGUE):
        yield (
            f"{graded.where}: {shown(name)} is taken for the grade of the passage beside it; where "
            "it is of something else, leave it out"
        )


@dataclass(frozen=True, slots=True)
class _UnreadMarks:
    """Columns that nobody knows, of which one may say which passages are not relevant."""

    seen: dict[str, dict[str, dict[int, Row]]] = field(default_factory=dict)
    """The first row of each grade, by column and query."""
    others: set[str] = field(default_factory=set)
    """Columns with values that are no grades."""

    def look(self, row: Row, query_row: QueryRow) -> None:
        """Look at a row; one that names a single passage, and has no grade, tells something."""
        relevance = query_row.relevance
        n_passages = len(relevance.listed) + len(relevance.graded_quotes)
        if n_passages != 1 or relevance.grades or row.get(GRADE) not in (None, ""):
            return
        for name in names_not_read(row):
            own = name.rpartition(".")[2] or name
            if goes_by(own, RANK) or goes_by(own, _PLACE):
                continue
            grade = grade_in_words(row.given[name])
            if grade is None or not 0 <= grade <= HIGHEST_GRADE:
                self.others.add(name)
                continue
            of_query = self.seen.setdefault(name, {})
            grades = of_query.setdefault(query_row.imported.query.query_id, {})
            grades.setdefault(grade, row)

    def refuse(self) -> None:
        """Refuse a column that is 0 for one passage of a question and more for another.

        Raises:
            DataError: There is one: not read, it would leave both passages relevant.
        """
        for name in (name for name in self.seen if name not in self.others):
            for rows in self.seen[name].values():
                if 0 in rows and len(rows) > 1:
                    flag = f"--map {shlex.quote(f'grade={name}')}"
                    raise DataError(
                        f"{rows[0].where}: {shown(name)}: is not read, and may be the grade of "
                        f"the passage; where it is, say so with {flag}, else take it out of the "
                        "file: without it all passages are relevant"
                    )


def _together(first: QueryRow, second: QueryRow, where: str, first_where: str) -> QueryRow:
    """Return one query of two rows that name different passages of it."""
    query = second.imported.query
    if query != first.imported.query or first.relevance.is_empty or second.relevance.is_empty:
        others = [
            name
            for name in Query.model_fields
            if getattr(query, name) != getattr(first.imported.query, name)
        ]
        other = f", with another {', '.join(others)}" if others else ""
        raise DataError(
            f"{where}: query {shown(query.query_id)} comes twice, first in {first_where} "
            f"({shown(first.imported.query.query)}){other}"
        )
    relevance = joined(first.relevance, second.relevance, where)
    unsaid = first.imported.unsaid & second.imported.unsaid
    return QueryRow(ImportedQuery(query, {}, relevance.graded_quotes, unsaid=unsaid), relevance)


def _opened(path: Path, columns: Columns) -> Source:
    """Open a file of queries.

    Raises:
        DataError: It cannot be read, or is of another kind.
    """
    if path.suffix.lower() in (".yaml", ".yml"):
        raise DataError(f"{path}: YAML is not read; write its rows as JSON, JSON Lines or CSV")
    mapped = {column: holds_numbers(of.accepted[0]) for of, column in columns.items()}
    source = open_source(path, is_number=lambda name: mapped.get(name, holds_numbers(name)))
    if flag := _flag_of_trec(source):
        raise _holds_no_questions(path, flag)
    return source


def _rows(source: Source, columns: Columns) -> Iterator[Row]:
    first, path = True, source.path
    lacking, head = columns, None
    outputs: dict[bool | None, str] = {}
    for found in read_rows_of(source, SHAPES):
        is_own = found.given.get("origin") is not None
        if not is_own:
            head = head or found
            lacking = lacking_columns(found, lacking) if lacking else lacking
            outputs.setdefault(are_outputs_expected(found, columns), found.where)
        row = found if is_own else with_mark(with_columns(found, columns))
        if first and not row.has(QUERY):
            if flag := _flag_of_row(row):
                raise _holds_no_questions(path, flag)
            hint = f"{unknown_columns(row)}. Otherwise it" if row.given else f"{path}:"
            raise DataError(f"{hint} has none of the shapes accepted:{examples(SHAPES)}")
        first = False
        yield row
    if lacking and head is not None:
        raise DataError(no_such_column(head, lacking))
    if True in outputs and False in outputs:
        raise DataError(
            f"{outputs[True]}: has outputs and nothing else that is expected, where "
            f"{outputs[False]} has both, so that outputs may be what a system said; say where the "
            "expected answer stands with --map answer=PLACE, such as answer=reference.answer"
        )


def _holds_no_questions(path: Path, flag: str) -> DataError:
    return DataError(f"{path}: holds no questions; is it for {flag}?")


def _flag_of_trec(source: Source) -> str:
    """Return the flag for a file of TREC; "" for others."""
    if source.kind != "columns" or has_header(source):
        return ""
    flags = {4: _QRELS_FLAG, 5: _RUN_FLAG, 6: _RUN_FLAG}
    return flags.get(len(source.first.split()), "")


def _flag_of_row(row: Row) -> str:
    """Return the flag for a file whose rows hold grades or hits by query id; "" for others."""
    if not row.has(QUERY_ID_OF_PAIR):
        return ""
    if row.has(RANKING) or (row.has(CHUNK_ID) and row.has(SCORE)):
        return _RUN_FLAG
    return _QRELS_FLAG if row.has(CHUNK_ID) else ""


def _is_record(row: Row) -> bool:
    """Whether a row is a query as a dataset has it."""
    return row.given.get("origin") is not None and row.given.keys() <= Query.model_fields.keys()


def _query_row(row: Row, make_id: Callable[[str], str]) -> QueryRow:
    if _is_record(row):
        # Frames have null for what a record leaves out.
        given = {name: value for name, value in row.given.items() if value is not None}
        return QueryRow(ImportedQuery(_query(row, given)), Relevance({}))
    relevance = relevance_of_row(row)
    row.refuse_two(GROUND_TRUTH)
    text = row.text(QUERY)
    category = row.optional_text(CATEGORY) or ""
    query_type = type_of(row, category)
    behaviour = behaviour_of(row, query_type)
    query = _query(
        row,
        {
            "query_id": row.identifier(QUERY_ID) if _is_set(row, QUERY_ID) else make_id(text),
            "query": text,
            "expected_answer": row.optional_text(
                GROUND_TRUTH if row.has(_SURE_TRUTH) else EXPECTED_ANSWER
            ),
            "difficulty": difficulty_of(row),
            "type": query_type,
            "persona": row.optional_text(PERSONA),
            "language": row.optional_text(LANGUAGE) or "en",
            "answerable": behaviour != "abstain",
            "expected_behaviour": behaviour,
            "category": category,
            "origin": "human",
        },
    )
    not_read = tuple(
        name
        for name, value in row.given.items()
        if isinstance(value, list | dict) or normal_name(name).endswith("ids")
        if not goes_by(name, GROUND_TRUTHS)
        if not (goes_by(name, ANSWERS) and answers_with_places(row) is not None)
    )
    passed_over = _passed_over(row, relevance, query.expected_answer)
    imported = ImportedQuery(
        query,
        {},
        relevance.graded_quotes,
        unsaid=unsaid(row, query, names_passages=not relevance.is_empty),
    )
    return QueryRow(imported, relevance, not_read, passed_over)


def _passed_over(row: Row, relevance: Relevance, answer: str | None) -> tuple[str, ...]:
    """Return why values of a row are not read, in words."""
    return (*_answers_passed_over(row, answer), *_labels_passed_over(row, relevance))


def _answers_passed_over(row: Row, answer: str | None) -> Iterator[str]:
    if row.has(GROUND_TRUTH) and row.given.get("answer") not in (None, "", answer):
        yield "'answer' stands beside the expected answer: it is what a system said"
    if answer is None and isinstance(row.get(_OUTPUTS), Mapping):
        name = row.name_of(_OUTPUTS)
        yield (
            f"'{name}' beside a place for the expected answer is what a system said; where it is "
            f"the expected answer, say so with --map answer={name}.KEY"
        )
    if len({*(answers_with_places(row) or ())}) > 1:
        yield "of several texts in 'answers' the first is the expected answer"
    if has_other_assertions(row):
        yield (
            "'__expected' asserts something else than the answer, as `contains:` and `is-json` do"
        )


def _labels_passed_over(row: Row, relevance: Relevance) -> Iterator[str]:
    if lacks_quotes(row) and not relevance.graded_quotes:
        yield f"'evidence' without a quote; {EVIDENCE_SHAPE}"
    elif row.get(QUOTE_OF_ROW) not in (None, "", [], {}) and not relevance.graded_quotes:
        yield (
            "'evidence' that names no document may be an explanation; what is called quote is "
            "looked up in all documents"
        )
    is_of_texts = any(not quote.must_stand for quote in relevance.graded_quotes)
    if is_of_texts and row.get(GRADE) not in (None, "") and not row.has(GRADE_OF_TEXTS):
        yield (
            "a score beside texts that hold the answer may be of anything; --map grade=… says that "
            "it is their grade"
        )
    is_beside_list = row.has(RELEVANT, GRADES) and bool(relevance.listed)
    if is_beside_list and row.get(GRADE) not in (None, "") and not row.has(GRADE_OF_LIST):
        yield (
            "a score, rating or label beside relevant ids may be of anything; --map grade=… says "
            "that it is their grade"
        )
    is_graded = any(row.given.get(name) not in (None, "") for name in ("grade", "relevance"))
    if is_graded and relevance.is_empty:
        yield "a grade stands beside no passage that it could be of"


def _query(row: Row, fields: dict[str, object]) -> Query:
    try:
        return Query.model_validate(fields)
    except pydantic.ValidationError as error:
        raise DataError(f"{row.where}: {explain(error)}") from error


def _is_set(row: Row, name: Field) -> bool:
    return row.get(name) not in (None, "")
