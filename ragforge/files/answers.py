"""Answers of a RAG system, with what it had in its context named by ids or by quotes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.fields import Row, cell_items, latency_of, make_row
from ragforge.files.lines import open_source
from ragforge.files.names import (
    ANSWER,
    DOC_ID,
    IN_CONTEXT,
    ITEM_ID,
    N_UNKNOWN_PASSAGES,
    QUERY,
    QUERY_ID,
    QUOTE,
    TEXT,
)
from ragforge.files.rows import none_found, read_rows_of, unknown_shape
from ragforge.files.values import is_unicode, shown

SHAPES: Final = (
    'JSON Lines or a JSON list: {"query_id": "q1", "answer": "…", "chunk_ids": ["d7"]}',
    'with quotes: {"query_id": "q1", "answer": "…", "retrieved": [{"doc_id": "a.md", '
    '"quote": "…"}]}',
    'with texts: {"query_id": "q1", "answer": "…", "contexts": ["…"]}',
    'with other names: {"id": "q1", "generatedAnswer": "…", "retrievedDocs": ["d7"]}',
    'by question: {"perQuestion": [{"query": "How …?", "aiAnswer": "…"}]}',
    "CSV or TSV with a header: query_id,answer,chunk_ids (ids between ;)",
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage named by its document and a quote from it."""

    doc_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer and its context, in the order the system had it."""

    query_id: str
    """"" where the row names its query by the question alone."""
    answer: str
    chunk_ids: tuple[str, ...] = ()
    """As the file names them, by id or by what they say; empty where it names passages by quotes.
    """
    passages: tuple[Passage, ...] = ()
    n_unknown_passages: int = 0
    """Further passages, that are known to be in no chunk."""
    latency_s: float | None = None
    question: str = ""
    """"" where the row has an id."""
    where: str = field(default="", compare=False)
    """File and place of the row."""


def read_answers(path: Path) -> Iterator[AnswerRow]:
    """Yield the answers of a file in its order, one at a time but for `.json`.

    An answer may be empty; that is what the system said. Further fields are passed over.

    Args:
        path: A file of one of `SHAPES`, or with the near names that `fields` lists.

    Raises:
        DataError: The file cannot be read, has none of the shapes or holds no answer; a row lacks
            a field or holds one of a wrong type; or a query is answered twice. Raised when the
            row's turn comes.
    """
    seen: set[str] = set()
    number = 0
    for number, row in enumerate(read_rows_of(open_source(path), SHAPES), 1):
        if number == 1 and not row.has(QUERY_ID, ANSWER):
            raise unknown_shape(path, SHAPES)
        answer = _answer_row(row)
        if answer.query_id in seen:
            raise DataError(f"{row.where}: query {shown(answer.query_id)} comes twice")
        if answer.query_id:
            seen.add(answer.query_id)
        yield answer
    if not number:
        raise none_found(path, "answer")


def _answer_row(row: Row) -> AnswerRow:
    row.require(ANSWER)
    answer = row.get(ANSWER)
    if not isinstance(answer, str) or not is_unicode(answer):
        raise row.wrong(ANSWER, "text", answer)
    chunk_ids: list[str] = []
    passages: list[Passage] = []
    for item in _context(row):
        if not isinstance(item, Mapping):
            chunk_ids.append(row.as_id(item, IN_CONTEXT))
            continue
        inner = make_row(f"{row.where}: {IN_CONTEXT.name}", item)
        if inner.has(QUOTE):
            passages.append(Passage(inner.identifier(DOC_ID), inner.text(QUOTE)))
        elif inner.has(TEXT) and not inner.has(ITEM_ID):
            chunk_ids.append(inner.text(TEXT))
        else:
            chunk_ids.append(inner.identifier(ITEM_ID))
    if chunk_ids and passages:
        raise row.wrong(IN_CONTEXT, "either ids or quotes", row.get(IN_CONTEXT))
    by_question = not row.has(QUERY_ID) and row.has(QUERY)
    return AnswerRow(
        query_id="" if by_question else row.identifier(QUERY_ID),
        answer=answer,
        chunk_ids=tuple(chunk_ids),
        passages=tuple(passages),
        n_unknown_passages=_n_unknown(row),
        latency_s=latency_of(row),
        question=row.text(QUERY) if by_question else "",
        where=row.where,
    )


def _n_unknown(row: Row) -> int:
    if not row.has(N_UNKNOWN_PASSAGES):
        return 0
    value = row.get(N_UNKNOWN_PASSAGES)
    count = row.as_whole(value, N_UNKNOWN_PASSAGES)
    if count < 0:
        raise row.wrong(N_UNKNOWN_PASSAGES, "a whole number of at least 0", value)
    return count


def _context(row: Row) -> list[object]:
    value = cell_items(row, IN_CONTEXT)
    if not isinstance(value, list):
        raise row.wrong(IN_CONTEXT, "a list of ids or quotes", value)
    return value
