"""Logs of what users asked: the questions, what people labelled in them, and what was retrieved.

Who asked, when, and what a system answered is never read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass, pattern
from ragforge.errors import DataError
from ragforge.files.field_names import (
    CHUNK_ID,
    GRADES,
    ITEM_ID,
    LANGUAGE,
    QUERY_ID,
    QUERY_ID_OF_PAIR,
    RELEVANT,
    Field,
    normal_name,
)
from ragforge.files.formats.named_texts import text_beside
from ragforge.files.formats.row_files import (
    none_found,
    read_labelled_rows,
    read_rows_of,
    unknown_shape,
)
from ragforge.files.formats.row_relevance import Relevance, joined, read_relevance
from ragforge.files.row import Row, cell_items, make_row
from ragforge.files.source_files import open_source
from ragforge.files.text import shown

E_MAIL: Final = "[e-mail]"
NUMBER: Final = "[number]"
_E_MAIL = pattern(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_NUMBER = pattern(
    r"(?<![\w.])(?:"
    r"\+\d[\d ()./-]{5,20}\d"  # +49 30 123456
    r"|\(?0\d{2,5}\)?[ /-]{1,3}\d[\d /-]{3,15}\d"  # 030 / 123 456
    r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}"  # (555) 123-4567
    r"|\d{4}(?:[ -]\d{4}){2,3}(?:[ -]\d{1,4})?"  # 1234 5678 9012 3456
    r"|[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?"  # DE00 0000 0000 0000 0000 00
    r"|(?!(?:\d{4}-\d\d?-\d\d?|\d\d?-\d\d?-\d{4})(?!-?\d))"  # no date, but 123-45-6789:
    r"(?=(?:\d-?){7})\d+(?:-\d+){2,}"
    r"|\d{7,}"
    r")(?!\w)"
)

SHAPES: Final = (
    'questions: {"query": "How …?"} (who asked and when is not read)',
    'graded passages: {"query": "How …?", "chunk_id": "d7", "label": 2} (0-3, or relevant)',
    'relevant passages: {"query": "How …?", "relevant_ids": ["d7"], "labels": {"d8": 0}}',
    "CSV or TSV with a header, such as query,count or query,chunk_id,label",
)
LABEL_SHAPES: Final = (
    'by id: {"u-17": {"relevantChunkIds": ["d7"], "correctAnswer": "…"}}',
    'rows: {"query_id": "u-17", "relevant_ids": ["d7"], "correct_answer": "…"}',
    "CSV or TSV with a header, such as query_id,chunk_id,label",
)
_QUERY: Final = Field("query", ("query", "question", "query_text", "user_input", "search", "q"))
_COUNT: Final = Field("count", ("count", "frequency", "freq"))
_LABEL: Final = Field(
    "label", ("label", "human_label", "human_grade", "human_relevance", "grade", "relevance")
)
_LABELS: Final = Field("labels", ("labels", "human_labels", "grades", *GRADES.accepted))
_CLICKED: Final = Field(
    "clicked", ("clicked", "clicks", "clicked_ids", "clicked_doc_ids", "clicked_chunk_ids")
)
_RETRIEVED: Final = Field(
    "retrieved",
    (
        *("retrieved_chunk_ids", "retrieved_doc_ids", "retrieved_ids", "retrieved_docs"),
        *("retrieved_documents", "retrieved_chunks", "retrieved_context_ids", "retrieved"),
        "ranking",
    ),
)
"""Not `hits` or `results`: in a log they may be counts."""
_HUMAN_ANSWER: Final = Field(
    "expected_answer",
    (
        *("expected_answer", "correct_answer", "ground_truth"),
        *("reference_answer", "expected_output"),
    ),
)
"""Not `answer`: in a log that is what the system said."""
_RELEVANT_WORDS: Final = frozenset({"relevant", "yes", "true", "positive"})
_OTHER_WORDS: Final = frozenset({"irrelevant", "notrelevant", "nonrelevant", "no", "false"})


@dataclass(frozen=True, slots=True)
class Masked:
    """A text, and how much was taken out of it."""

    text: str
    n: int


def masked(text: str) -> Masked:
    """Return a text with e-mail addresses, and numbers of telephones, cards and customers, masked.

    Numbers of seven digits and more are taken for such. Dates, versions and IP addresses stay, and
    so do names: no pattern tells those.
    """
    text, n_addresses = _E_MAIL.subn(E_MAIL, text)
    text, n_numbers = _NUMBER.subn(NUMBER, text)
    return Masked(text, n_addresses + n_numbers)


@dataclass(frozen=True, slots=True)
class LoggedQuery:
    """A row of a log."""

    where: str
    query: str
    """On one line; "" where the row has none."""
    count: int
    language: str
    expected_answer: str | None
    """Written by a person."""
    relevance: Relevance
    """As people labelled it."""
    clicked: tuple[str, ...]
    """What the user opened: no label, for people click on what stands first."""
    query_id: str = ""
    """"" where the log has no ids."""
    retrieved: tuple[str, ...] = ()
    """Ids of what a system retrieved, best first; no label either."""

    @property
    def is_labelled(self) -> bool:
        """Whether a person said what is relevant or what the answer is."""
        return self.expected_answer is not None or not self.relevance.is_empty


@dataclass(frozen=True, slots=True)
class LoggedLabels:
    """Labels of a logged question by people, from a file of their own."""

    relevance: Relevance
    expected_answer: str | None


def read_labels(path: Path) -> dict[str, LoggedLabels]:
    """Return people's labels of logged questions, by the id of the question in its log.

    Args:
        path: A file of one of `LABEL_SHAPES`; several rows of one id belong together.

    Raises:
        DataError: The file cannot be read, has none of the shapes, a value is of a wrong type, or
            rows of one id differ in the answer.
    """
    labels: dict[str, LoggedLabels] = {}
    fields = (RELEVANT, _LABELS, _LABEL, _HUMAN_ANSWER)
    for row in read_labelled_rows(open_source(path, "label"), LABEL_SHAPES, RELEVANT):
        if not labels and not (row.has(QUERY_ID) and row.has(*fields)):
            raise unknown_shape(path, LABEL_SHAPES)
        query_id, answer = row.identifier(QUERY_ID), row.optional_text(_HUMAN_ANSWER)
        before = labels.get(query_id, LoggedLabels(Relevance({}), answer))
        if answer and before.expected_answer and answer != before.expected_answer:
            raise row.wrong(_HUMAN_ANSWER, f"{shown(before.expected_answer)} as before", answer)
        relevance = joined(before.relevance, _relevance(row), row.where)
        labels[query_id] = LoggedLabels(relevance, before.expected_answer or answer)
    if not labels:
        raise none_found(path, "label")
    return labels


def read_log(path: Path) -> Iterator[LoggedQuery]:
    """Yield the rows of a log.

    Args:
        path: A file of one of `SHAPES`.

    Raises:
        DataError: The file cannot be read, has none of the shapes, or a value is of a wrong type.
    """
    first = True
    for row in read_rows_of(open_source(path, "query"), SHAPES):
        if first and not row.has(_QUERY):
            raise unknown_shape(path, SHAPES)
        first = False
        yield _logged(row)


def _relevance(row: Row) -> Relevance:
    """Return people's labels in a row, in whatever field."""
    relevance = read_relevance(row) if row.has(RELEVANT) else Relevance({})
    relevance = joined(relevance, _labels(row), row.where)
    return joined(relevance, _pair(row), row.where)


def _logged(row: Row) -> LoggedQuery:
    return LoggedQuery(
        where=row.where,
        query=" ".join((row.optional_text(_QUERY) or "").split()),
        count=_count(row),
        language=row.optional_text(LANGUAGE) or "",
        expected_answer=row.optional_text(_HUMAN_ANSWER),
        relevance=_relevance(row),
        clicked=_clicked(row),
        query_id=_query_id(row),
        retrieved=_retrieved(row),
    )


def _query_id(row: Row) -> str:
    is_given = row.get(QUERY_ID_OF_PAIR) not in (None, "")
    return row.identifier(QUERY_ID_OF_PAIR) if is_given else ""


def _retrieved(row: Row) -> tuple[str, ...]:
    """Return the ids of what was retrieved; nothing where they are not all given."""
    items = cell_items(row, _RETRIEVED)
    if not isinstance(items, list):
        return ()
    ids = [_retrieved_id(item, row.where) for item in items]
    return tuple(dict.fromkeys(filter(None, ids))) if all(ids) else ()


def _retrieved_id(item: object, where: str) -> str:
    """Return the id of something retrieved; "" where it has none."""
    given = make_row(where, item).get(ITEM_ID) if isinstance(item, Mapping) else item
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""


def _count(row: Row) -> int:
    value = row.get(_COUNT)
    if value in (None, ""):
        return 1
    count = row.as_whole(value, _COUNT)
    if count < 1:
        raise row.wrong(_COUNT, "a whole number of at least 1", value)
    return count


def _labels(row: Row) -> Relevance:
    row.refuse_two(_LABELS)
    value = row.get(_LABELS)
    if value in (None, "") or value in ([], {}):
        return Relevance({})
    return read_relevance(make_row(row.where, {GRADES.name: value}))


def _pair(row: Row) -> Relevance:
    """Return the label of the one passage that a row names."""
    label = row.get(_LABEL)
    if label in (None, "") or row.get(CHUNK_ID) in (None, ""):
        return Relevance({})
    chunk_id = row.identifier(CHUNK_ID)
    texts = text_beside(row, chunk_id, row.get(_QUERY))
    word = normal_name(str(label))
    if word in _RELEVANT_WORDS:
        return Relevance({}, (chunk_id,), texts=texts)
    if word in _OTHER_WORDS:
        return Relevance({chunk_id: 0}, texts=texts)
    try:
        return Relevance({chunk_id: row.as_whole(label, _LABEL)}, texts=texts)
    except DataError:
        raise row.wrong(_LABEL, "0, 1, 2, 3, relevant or irrelevant", label) from None


def _clicked(row: Row) -> tuple[str, ...]:
    value = cell_items(row, _CLICKED)
    items = [value] if isinstance(value, int | str) else value
    if isinstance(items, Mapping) or not isinstance(items, list):
        raise row.wrong(_CLICKED, "a list of ids", value)
    if any(isinstance(item, bool) for item in items):
        return ()  # Whether anything was opened, not what.
    return tuple(dict.fromkeys(row.as_id(item, _CLICKED) for item in items))
