"""Live traffic: answers with the passages they were written from, and no reference answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.field_names import (
    ANSWER,
    DOC_ID,
    ITEM_ID,
    QUERY_ID,
    QUERY_OF_PAIR,
    QUOTE,
    TEXT,
    Field,
)
from ragforge.files.formats.row_files import none_found, read_rows_of, unknown_shape
from ragforge.files.row import Row, load_json, make_row, query_name
from ragforge.files.source_files import open_source
from ragforge.files.text import is_unicode, shown

SHAPES: Final = (
    'JSON Lines or a JSON list: {"query_id": "q1", "query": "How …?", "answer": "…", '
    '"contexts": ["…", "…"]}',
    'with ids: {"id": "q1", "response": "…", "contexts": [{"chunk_id": "d7", "text": "…"}]}',
)
QUESTION: Final = Field("query", (*QUERY_OF_PAIR.accepted, "user_input", "input"))
CONTEXTS: Final = Field(
    "contexts",
    (
        *("contexts", "context", "retrieved_contexts", "retrieval_context", "passages"),
        *("chunks", "retrieved_chunks", "documents", "source_documents", "retrieved_documents"),
        *("retrieved_docs", "docs", "retrieved"),
    ),
)
_OF_CHUNK: Final = Field("chunk_id", ("chunk_id", "passage_id"))
_OF_DOCUMENT: Final = Field("doc_id", (*DOC_ID.accepted, "did"))
_WORDS: Final = Field(TEXT.name, (*TEXT.accepted, *QUOTE.accepted, "snippet", "body"))


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A passage that a system had before it.

    Args:
        chunk_id: Its place in the context, from 1, where the file gives no id.
        text: May be empty.
    """

    chunk_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """An answer with its context, in the order the system had it.

    Args:
        query_id: The question itself where the file gives no id.
        question: "" where the file gives none.
        answer: May be empty.
        contexts: Empty where nothing was retrieved.
    """

    query_id: str
    question: str
    answer: str
    contexts: tuple[ContextRow, ...]


def read_traffic(path: Path) -> Iterator[TrafficRow]:
    """Yield the answers of a file in its order, one at a time but for `.json`.

    Further fields are passed over. `.gz` and `.zst` are unpacked.

    Args:
        path: A file of one of `SHAPES`, or with near names.

    Raises:
        DataError: The file cannot be read, has none of the shapes or holds no answer; a row lacks
            a field or holds one of a wrong type; an id comes twice, or that of a chunk with two
            texts; or the place of a text without id is the id of another. Raised when the row's
            turn comes.
    """
    seen: set[str] = set()
    for row in read_rows_of(open_source(path, "answer"), SHAPES):
        if not seen and not row.has(ANSWER):
            raise unknown_shape(path, SHAPES)
        answer = _traffic_row(row)
        if answer.query_id in seen:
            raise DataError(
                f"{row.where}: query {shown(answer.query_id)} comes twice; give each answer an id "
                "of its own"
            )
        seen.add(answer.query_id)
        yield answer
    if not seen:
        raise none_found(path, "answer")


def _traffic_row(row: Row) -> TrafficRow:
    row.require(ANSWER)
    answer = row.get(ANSWER)
    if not isinstance(answer, str) or not is_unicode(answer):
        raise row.wrong(ANSWER, "text", answer)
    row.require(CONTEXTS)
    return TrafficRow(
        query_id=_name(row),
        question=row.optional_text(QUESTION) or "",
        answer=answer,
        contexts=tuple(_contexts(row, _items(row))),
    )


def _name(row: Row) -> str:
    if row.get(QUERY_ID) is None and row.get(QUESTION) is not None:
        return row.text(QUESTION)
    return query_name(row)


def _items(row: Row) -> list[object]:
    """Return the items of a context; a text that is no JSON list is one passage."""
    value = row.get(CONTEXTS)
    if isinstance(value, str):
        try:
            listed = load_json(value) if value.lstrip().startswith("[") else None
        except (ValueError, RecursionError):
            listed = None
        value = listed if isinstance(listed, list) else [value]
    if value is None:
        return []
    if not isinstance(value, list):
        raise row.wrong(CONTEXTS, "a list of texts or of objects with a text", value)
    return value


def _contexts(row: Row, items: list[object]) -> Iterator[ContextRow]:
    texts: dict[str, str] = {}
    named: set[str] = set()
    nameless: set[str] = set()
    for place, item in enumerate(items, start=1):
        inner = _inner(row, item, place)
        passage = _context(row, inner or item, place)
        has_id = inner is not None and inner.get(ITEM_ID) is not None
        (named if has_id else nameless).add(passage.chunk_id)
        if inner is not None and not _names_document(inner):
            _refuse_another(inner, passage, texts.setdefault(passage.chunk_id, passage.text))
        yield passage
    for chunk_id in sorted(named & nameless):
        raise DataError(
            f"{row.where}: {CONTEXTS.name}: item {chunk_id} has no id, and another has the id "
            f"{shown(chunk_id)}; give ids to all or to none, else a citation could mean both"
        )


def _refuse_another(inner: Row, passage: ContextRow, text: str) -> None:
    if passage.text != text:
        raise DataError(
            f"{inner.where}: {shown(passage.chunk_id)} is also the id of another text; give each "
            "passage an id of its own, or name its document in doc_id"
        )


def _inner(row: Row, item: object, place: int) -> Row | None:
    if not isinstance(item, Mapping):
        return None
    return make_row(f"{row.where}: {CONTEXTS.name}: item {place}", item)


def _names_document(inner: Row) -> bool:
    """Whether a passage is named by its document, as its neighbours may be."""
    return inner.get(_OF_CHUNK) is None and inner.get(_OF_DOCUMENT) is not None


def _context(row: Row, item: object, place: int) -> ContextRow:
    chunk_id, text = str(place), item
    if isinstance(item, Row):
        item.require(_WORDS)
        text = item.get(_WORDS)
        if item.get(ITEM_ID) is not None:
            chunk_id = item.identifier(ITEM_ID)
    if not isinstance(text, str) or not is_unicode(text):
        raise row.wrong(CONTEXTS, f"a text as item {place}", text)
    return ContextRow(chunk_id, text)
