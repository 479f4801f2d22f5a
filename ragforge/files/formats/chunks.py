"""Ready-made chunk files, taken as they are: JSON Lines, JSON, CSV, TSV and BEIR folders."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.field_names import CHUNK_ROWS, DOCUMENT, ID_OF_CHUNK, METADATA, TEXT, TITLE
from ragforge.files.formats.row_files import none_found, read_rows_of
from ragforge.files.record_files import explain
from ragforge.files.row import Row, examples, load_json, make_row
from ragforge.files.source_files import Source, has_header, open_source
from ragforge.files.text import shown
from ragforge.records import Chunk, id_in_set
from ragforge.records.model import pydantic

SHAPES: Final = (
    "a dataset's chunks.jsonl: {chunk_id, doc_id, text, heading_path, start, end}",
    'JSON Lines, a JSON list or {"chunks": [...]} of {id, document, text}, {id, text}, '
    "{chunkId, docId, content} or {chunk_id, document_id, page_content, metadata: {source}}",
    "a BEIR folder: corpus.jsonl with {_id, title, text}",
    "CSV or TSV with a header: id,document,text",
)
_NATIVE = frozenset(Chunk.model_fields)
_NATIVE_ONLY = frozenset(("heading_path", "start", "end"))
_NEEDED = frozenset(("chunk_id", "doc_id", "text"))
_FOLDER_FILES = ("chunks.jsonl", "corpus.jsonl")


def read_chunks(path: Path) -> Iterator[Chunk]:
    """Yield the chunks of a file, in its order; the first row decides which shape all rows have.

    Foreign rows may have further fields, native rows may not. Numbers are taken as ids. A row
    without a document is a document of its own, a title becomes the heading path. Offsets of
    foreign rows are not taken: what they count is not known. An id that looks like one of a text
    that is no chunk is another one in the set, see `id_in_set`. `.gz` and `.zst` are unpacked.

    Args:
        path: A file of one of `SHAPES`, or with the near names that `names` lists; or a folder
            with chunks.jsonl or corpus.jsonl (BEIR).

    Raises:
        DataError: The file cannot be read, holds no chunks or has an unknown shape; a row lacks
            an id or text, has a field of a wrong type, or an id that came before. Raised when the
            row's turn comes.
    """
    file = _file(path)
    read: Callable[[Row], Chunk] | None = None
    seen: dict[str, str] = {}
    for row in _rows(open_source(file, "chunks")):
        read = read or _reader(row)
        chunk = read(row)
        first = seen.setdefault(chunk.chunk_id, row.where)
        if first != row.where:
            once = f"an id that is used once (first in {first})"
            raise row.wrong(ID_OF_CHUNK, once, chunk.chunk_id)
        yield chunk
    if not seen:
        raise none_found(file, "chunks")


def _file(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in _FOLDER_FILES:
        if (path / name).is_file():
            return path / name
    raise DataError(f"{path}: expected a folder with {' or '.join(_FOLDER_FILES)}, got neither")


def _rows(source: Source) -> Iterator[Row]:
    if source.kind == "columns" and not has_header(source, (ID_OF_CHUNK, TEXT)):
        raise _unknown_shape(str(source.path), f"a table headed {shown(source.first)}")
    rows = read_rows_of(source, SHAPES, under=CHUNK_ROWS, verbatim=(TEXT,))
    return map(_typed, rows) if source.kind == "columns" else rows


def _typed(line: Row) -> Row:
    """Give the native fields of a table what its cells cannot express: absence and lists."""
    cells = {name: cell for name, cell in line.given.items() if cell or name not in _NATIVE_ONLY}
    path = cells.get("heading_path")
    if isinstance(path, str):
        cells["heading_path"] = _titles(path)
    return make_row(line.where, cells)


def _titles(cell: str) -> object:
    if not cell.startswith("["):
        return cell.split(" > ")
    try:
        return load_json(cell)
    except (ValueError, RecursionError):
        return [cell]


def _reader(row: Row) -> Callable[[Row], Chunk]:
    """Return what reads the rows of a file with this first row."""
    names = row.given.keys()
    if names >= _NEEDED and (names <= _NATIVE or names & _NATIVE_ONLY):
        return _native
    if not row.has(ID_OF_CHUNK) or not row.has(TEXT):
        raise _unknown_shape(row.where, f"the fields {row.names()}")
    return _part if row.has(DOCUMENT) else _whole


def _unknown_shape(where: str, found: str) -> DataError:
    return DataError(f"{where}: expected one of these shapes, got {found}:{examples(SHAPES)}")


def _native(row: Row) -> Chunk:
    needed = {
        "chunk_id": row.identifier(ID_OF_CHUNK),
        "doc_id": row.identifier(DOCUMENT),
        "text": row.text(TEXT),
    }
    chunk = _chunk(row, {**row.given, **needed})
    if chunk.end and not chunk.has_offsets:
        expected = chunk.start + len(chunk.text) + sum(length for _, length in chunk.hidden)
        raise DataError(
            f"{row.where}: end: expected {expected} (start and the length of text, with what is "
            f"hidden), got {chunk.end}"
        )
    return chunk


def _part(row: Row) -> Chunk:
    return _foreign(row, row.identifier(ID_OF_CHUNK), row.identifier(DOCUMENT))


def _whole(row: Row) -> Chunk:
    chunk_id = row.identifier(ID_OF_CHUNK)
    metadata = row.get(METADATA)
    source = metadata.get("source") if isinstance(metadata, dict) else None
    return _foreign(row, chunk_id, source if isinstance(source, str) and source else chunk_id)


def _foreign(row: Row, chunk_id: str, doc_id: str) -> Chunk:
    title = str(row.get(TITLE) or "").strip()
    # BEIR corpora hold documents that are a title and nothing else.
    title_only = bool(title) and row.get(TEXT) == ""
    fields = {
        "chunk_id": chunk_id,
        "doc_id": doc_id,
        "text": title if title_only else row.text(TEXT),
        "heading_path": (title,) if title and not title_only else (),
    }
    return _chunk(row, fields)


def _chunk(row: Row, fields: Mapping[str, object]) -> Chunk:
    try:
        chunk = Chunk.model_validate(fields)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            known = ", ".join(Chunk.model_fields)
            raise DataError(f"{row.where}: {first['loc'][0]}: expected one of {known}") from error
        expected = explain(error).replace("input should be", "expected", 1)
        raise DataError(f"{row.where}: {expected}") from error
    names = {"chunk_id": id_in_set(chunk.chunk_id), "doc_id": id_in_set(chunk.doc_id)}
    is_same = names["chunk_id"] == chunk.chunk_id and names["doc_id"] == chunk.doc_id
    return chunk if is_same else chunk.model_copy(update=names)
