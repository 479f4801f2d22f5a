"""Ready-made chunk files, taken as they are: JSON Lines, JSON, CSV, TSV and BEIR folders."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.jsonl import Row, explain, read_rows
from ragforge.files.text import read_text
from ragforge.records import Chunk

_IDS = ("chunk_id", "chunkId", "id", "_id")
_DOCUMENTS = ("doc_id", "docId", "document_id", "documentId", "document")
_TEXTS = ("text", "content", "contents", "page_content", "pageContent")
_NATIVE = frozenset(Chunk.model_fields)
_NATIVE_ONLY = {"heading_path", "start", "end"}
_NEEDED = {"chunk_id", "doc_id", "text"}
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_FOLDER_FILES = ("chunks.jsonl", "corpus.jsonl")
_SHOWN = 80
_FIELD_CHARS = 2**31 - 1
"""The csv module refuses fields above 128 KiB unless told otherwise, for the whole process."""

_SHAPES = (
    "{chunk_id, doc_id, text, heading_path, start, end}, {id, document, text}, {id, text}, "
    "{_id, title, text} (BEIR), {chunkId, docId, content}, "
    "{chunk_id, document_id, page_content, metadata: {source}}"
)


@dataclass(frozen=True, slots=True)
class _Located:
    """A row and what an error message calls its place."""

    where: str
    row: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which fields hold what; document is "" where a row has none."""

    native: bool
    chunk_id: str
    document: str
    text: str


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Yield the chunks of a file, in its order; the first row decides which shape all rows have.

    Foreign rows may have further fields, native rows may not. Numbers are taken as ids. A row
    without a document is a document of its own, a title becomes the heading path. Offsets of
    foreign rows are not taken: what they count is not known.

    Args:
        path: `.json` (a list, or {"chunks": [...]}), `.csv` or `.tsv` with a header, else JSON
            Lines; or a folder with chunks.jsonl or corpus.jsonl (BEIR).

    Raises:
        DataError: The file cannot be read, holds no chunks or has an unknown shape; a row lacks
            an id or text, has a field of a wrong type, or an id that came before.
    """
    file = _file(path)
    shape: _Shape | None = None
    seen: dict[str, str] = {}
    for located in _rows(file):
        shape = shape or _shape(located)
        chunk = _native(located) if shape.native else _foreign(located, shape)
        first = seen.setdefault(chunk.chunk_id, located.where)
        if first != located.where:
            raise DataError(
                f"{located.where}: {shape.chunk_id}: expected an id that is used once, "
                f"got {chunk.chunk_id!r} again (first in {first})"
            )
        yield chunk
    if shape is None:
        raise DataError(f"{file}: holds no chunks")


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in _FOLDER_FILES:
        if (path / name).is_file():
            return path / name
    raise DataError(f"{path}: expected a folder with {' or '.join(_FOLDER_FILES)}, got neither")


def _rows(file: Path) -> Iterator[_Located]:
    suffix = file.suffix.lower()
    if suffix == ".json":
        return _json_rows(file)
    if suffix in _SEPARATORS:
        return _table_rows(file, _SEPARATORS[suffix])
    return _line_rows(file)


def _line_rows(file: Path) -> Iterator[_Located]:
    try:
        for number, row in read_rows(file):
            yield _Located(f"{file}:{number}", row)
    except RecursionError as error:
        raise DataError(f"{file}: expected rows of fields, got JSON nested too deep") from error


def _json_rows(file: Path) -> Iterator[_Located]:
    try:
        found = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file}:{error.lineno}: expected one JSON document, got {error.msg.lower()} "
            "(was it cut off? JSON Lines are read from .jsonl files)"
        ) from error
    except (RecursionError, ValueError) as error:
        raise DataError(f"{file}: expected a list of chunks, got JSON with {error}") from error
    items = found.get("chunks") if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise DataError(f'{file}: expected a list of chunks or {{"chunks": [...]}}, got neither')
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            raise DataError(f"{file}: item {number}: expected an object, got {_short(item)}")
        yield _Located(f"{file}: item {number}", item)


def _table_rows(file: Path, separator: str) -> Iterator[_Located]:
    text = read_text(file)
    previous_limit = csv.field_size_limit(_FIELD_CHARS)
    try:
        rows = list(_parsed_table(file, text, separator))
    finally:
        csv.field_size_limit(previous_limit)
    yield from rows


def _parsed_table(file: Path, text: str, separator: str) -> Iterator[_Located]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 0
    try:
        columns = reader.fieldnames or []
        line = reader.line_num
        for cells in reader:
            where = f"{file}:{line + 1}"
            line = reader.line_num
            if None in cells or None in cells.values():
                raise DataError(f"{where}: expected {len(columns)} fields, got more or fewer")
            yield _Located(where, _typed(cells))
    except csv.Error as error:
        raise DataError(f"{file}:{line + 1}: expected a complete row, got {error}") from error


def _typed(cells: Mapping[str, str]) -> Row:
    """Give the native fields that are no text the type that a table cannot express."""
    row: Row = {name: cell for name, cell in cells.items() if cell or name not in _NATIVE_ONLY}
    for field in ("start", "end"):
        cell = cells.get(field, "")
        if cell.isascii() and cell.isdecimal():
            row[field] = int(cell)
    path = cells.get("heading_path", "")
    if path.startswith("["):
        try:
            row["heading_path"] = json.loads(path)
        except ValueError:
            row["heading_path"] = [path]
    elif path:
        row["heading_path"] = path.split(" > ")
    return row


def _shape(located: _Located) -> _Shape:
    """Recognise the shape of the first row."""
    names = located.row.keys()
    if names >= _NEEDED and (names <= _NATIVE or names & _NATIVE_ONLY):
        return _Shape(native=True, chunk_id="chunk_id", document="doc_id", text="text")
    chunk_id = _first(_IDS, names)
    text = _first(_TEXTS, names)
    if not chunk_id or not text:
        found = ", ".join(sorted(map(str, names))) or "nothing"
        raise DataError(
            f"{located.where}: fields: expected one of {_SHAPES}, got {found[: 2 * _SHOWN]}"
        )
    return _Shape(native=False, chunk_id=chunk_id, document=_first(_DOCUMENTS, names), text=text)


def _first(names: Iterable[str], present: Iterable[str]) -> str:
    return next((name for name in names if name in present), "")


def _native(located: _Located) -> Chunk:
    row = located.row
    checked = {
        **row,
        "chunk_id": _id(located, "chunk_id"),
        "doc_id": _id(located, "doc_id"),
        "text": _text(located, "text"),
    }
    chunk = _chunk(located, checked)
    if chunk.end and chunk.end - chunk.start != len(chunk.text):
        raise DataError(
            f"{located.where}: end: expected {chunk.start + len(chunk.text)} "
            f"(start and the length of text), got {chunk.end}"
        )
    return chunk


def _foreign(located: _Located, shape: _Shape) -> Chunk:
    row = located.row
    title = str(row.get("title") or "").strip()
    chunk_id = _id(located, shape.chunk_id)
    # BEIR corpora hold documents that are a title and nothing else.
    title_only = bool(title) and row.get(shape.text) == ""
    text = title if title_only else _text(located, shape.text)
    fields = {
        "chunk_id": chunk_id,
        "doc_id": _document(located, shape) or chunk_id,
        "text": text,
        "heading_path": (title,) if title and not title_only else (),
    }
    return _chunk(located, fields)


def _document(located: _Located, shape: _Shape) -> str:
    if shape.document:
        return _id(located, shape.document)
    metadata = located.row.get("metadata")
    source = metadata.get("source") if isinstance(metadata, dict) else None
    return source if isinstance(source, str) else ""


def _chunk(located: _Located, fields: Mapping[str, object]) -> Chunk:
    try:
        return Chunk.model_validate(fields)
    except ValidationError as error:
        if error.errors()[0]["type"] == "extra_forbidden":
            extra = error.errors()[0]["loc"][0]
            known = ", ".join(Chunk.model_fields)
            raise DataError(f"{located.where}: {extra}: expected one of {known}") from error
        raise DataError(f"{located.where}: {_expected(error)}") from error


def _expected(error: ValidationError) -> str:
    return explain(error).replace("input should be", "expected", 1)


def _id(located: _Located, field: str) -> str:
    found = located.row.get(field)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if isinstance(found, str) and found.strip():
        return found
    raise DataError(f"{located.where}: {field}: expected an id, got {_got(located, field)}")


def _text(located: _Located, field: str) -> str:
    found = located.row.get(field)
    if isinstance(found, str) and found.strip():
        return found
    raise DataError(f"{located.where}: {field}: expected text, got {_got(located, field)}")


def _got(located: _Located, field: str) -> str:
    return _short(located.row[field]) if field in located.row else "nothing"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
