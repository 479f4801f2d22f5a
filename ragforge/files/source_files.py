"""Data files as they are opened: plain, gzip or Zstandard, of which kind, and line by line."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from itertools import chain
from pathlib import Path
from sys import version_info
from types import ModuleType
from typing import IO, Literal, NamedTuple

from ragforge.errors import DataError
from ragforge.files.field_names import (
    QUERY,
    QUERY_ID,
    Field,
    holds_numbers,
    known_names,
    normal_name,
)
from ragforge.files.spreadsheets import Sheet, is_spreadsheet, table_lines
from ragforge.files.text import decode

Line = tuple[int, bytes]
"""Line number, from 1, and the line with its end."""
Group = tuple[int, list[bytes]]
"""Line number of the first, from 1, and lines with their ends."""

_JSON_LINES = (".jsonl", ".ndjson")
_COLUMNS = (".csv", ".xlsx", ".tsv", ".trec", ".qrels", ".run")
_FIRST_BYTES = 1 << 12
"""Of the first group: often it is all that is looked at, to tell what kind a file is of."""
_GROUP_BYTES = 1 << 18
LONGEST_LINE_BYTES = 100_000_000
"""Of packed files. Lines of plain ones take no more memory than the disk that their owner gave."""
_PACKED = (".gz", ".zst")
_PACKED_OTHERWISE = {".bz2": "bunzip2", ".xz": "unxz", ".zip": "unzip"}

_DELIMITERS = "\t,;|"
"""Semicolons are what spreadsheets write where the comma is the decimal sign."""


class Source(NamedTuple):
    """An opened data file."""

    path: Path
    kind: Literal["json", "jsonl", "columns"]
    first: str
    """The first line that is neither blank nor a comment, without blanks around it."""
    groups: Iterator[Group]
    """All lines, from the first, some thousands at a time, fewer at first; to be read once."""
    sheet: Sheet | None = None
    """Of a spreadsheet, which tells once all is read how its numbers were."""

    @property
    def lines(self) -> Iterator[Line]:
        """The same lines one by one."""
        return _ungrouped(self.groups)


def open_source(
    path: Path, holds: str = "data", is_number: Callable[[str], bool] = holds_numbers
) -> Source:
    """Open a data file and tell by suffix and first line what kind it is.

    Args:
        path: The file.
        holds: What the message about an empty file misses.
        is_number: Whether a column of a spreadsheet holds numbers or ids; what others show is taken
            for text.

    Raises:
        DataError: The file cannot be read, is packed in another way than gzip, is binary, or holds
            nothing.
    """
    groups: Iterator[Group]
    sheet = Sheet(is_number) if is_spreadsheet(path) else None
    if sheet is not None:
        groups = ((number, [line]) for number, line in enumerate(table_lines(path, sheet), start=1))
    else:
        groups = read_groups(path)
    ahead: list[Group] = []
    for group in groups:
        ahead.append(group)
        for number, line in _ungrouped([group]):
            first = decode(line, f"{path}:{number}").strip()
            if first and not first.startswith("#") and not is_separator_line(first):
                return Source(path, _kind(path, first), first, chain(ahead, groups), sheet)
    raise DataError(f"{path}: is empty: no {holds}; expected at least one line")


def read_groups(path: Path) -> Iterator[Group]:
    """Yield the lines of a file as they are, unpacked where its name ends in .gz or .zst.

    Raises:
        DataError: The file cannot be read or unpacked.
    """
    number, n_bytes = 1, _FIRST_BYTES
    with open_unpacked(path) as stream:
        read = _packed_lines if is_packed(path) else _plain_lines
        while lines := read(stream, n_bytes, path):
            yield number, lines
            number, n_bytes = number + len(lines), _GROUP_BYTES


def _plain_lines(stream: IO[bytes], n_bytes: int, _: Path) -> list[bytes]:
    return stream.readlines(n_bytes)


def _packed_lines(stream: IO[bytes], n_bytes: int, path: Path) -> list[bytes]:
    """Return lines as `readlines` does; one megabyte may unpack to a line of a gigabyte."""
    piece = stream.read(n_bytes)
    rest = b"" if piece.endswith(b"\n") else stream.readline(LONGEST_LINE_BYTES)
    if len(rest) == LONGEST_LINE_BYTES and not rest.endswith(b"\n"):
        raise DataError(
            f"{path}: holds a line of more than {LONGEST_LINE_BYTES:,} bytes unpacked; unpack the "
            "file first if that is right"
        )
    return BytesIO(piece + rest).readlines()


@contextmanager
def open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open the bytes of a file, unpacked where its name ends in .gz or .zst.

    Raises:
        DataError: The file cannot be read or unpacked; raised while reading, too.
    """
    suffix = path.suffix.lower()
    tool = _PACKED_OTHERWISE.get(suffix)
    if tool is not None:
        known = " and ".join(_PACKED)
        raise DataError(f"{path}: {suffix} is not read, only {known} are; unpack it first ({tool})")
    faults: tuple[type[Exception], ...] = (EOFError, *_faults_of(suffix))
    try:
        with _open(path) as stream:
            yield stream
    except faults as error:
        raise DataError(f"{path}: is not a whole {suffix} file: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def is_packed(path: Path) -> bool:
    """Whether the name of a file says that `open_unpacked` unpacks it."""
    return path.suffix.lower() in _PACKED


def unpacked_name(path: Path) -> str:
    """Return the name of a file without folder, `.gz` and `.zst`."""
    return path.stem if is_packed(path) else path.name


def plain_name(path: Path) -> str:
    """Return the name of a file without folder, packing and the suffix of its kind."""
    name = unpacked_name(path)
    kinds = (*_JSON_LINES, *_COLUMNS, ".json", ".txt")
    return name[: name.rindex(".")] if Path(name).suffix.lower() in kinds else name


def _ungrouped(groups: Iterable[Group]) -> Iterator[Line]:
    for first, lines in groups:
        yield from enumerate(lines, start=first)


def _open(path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".gz":
            import gzip  # Not for plain files: its import takes as long as reading a small one.

            return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile is an IO[bytes]
        case ".zst":
            return _zstandard().open(path, "rb")  # type: ignore[no-any-return]
        case _:
            return path.open("rb")


def _faults_of(suffix: str) -> tuple[type[Exception], ...]:
    """Return what unpacking may raise; Zstandard is imported only where a file needs it."""
    match suffix:
        case ".gz":
            import gzip
            import zlib

            return (zlib.error, gzip.BadGzipFile)
        case ".zst":
            return (_zstandard().ZstdError,)
        case _:
            return ()


def _zstandard() -> ModuleType:
    # The standard library has it from 3.14 on, under another name.
    return import_module("compression.zstd" if version_info >= (3, 14) else "backports.zstd")


def _kind(path: Path, first: str) -> Literal["json", "jsonl", "columns"]:
    suffix = Path(unpacked_name(path)).suffix.lower()
    if suffix in _JSON_LINES:
        return "jsonl"
    if suffix == ".json":
        return "json"
    return "json" if first[0] in "[{" and suffix not in _COLUMNS else "columns"


def is_separator_line(line: str) -> bool:
    """Whether a line tells a spreadsheet which sign is between the columns: `sep=;`."""
    return line[:4].lower() == "sep=" and len(line) <= len("sep=;")


def has_header(source: Source, fields: tuple[Field, ...] = (QUERY_ID, QUERY)) -> bool:
    """Whether the first line names columns: of files without, `.csv` and `.xlsx` never are.

    Args:
        source: A table.
        fields: Of which a header has to name one.
    """
    if unpacked_name(source.path).lower().endswith((".csv", ".xlsx")):
        return True
    cells = [cell.strip().strip('"') for cell in source.first.split(delimiter_of(source.first))]
    known = {normal_name(name) for field in fields for name in field.accepted}
    return len(cells) > 1 and any(normal_name(cell) in known for cell in cells)


def delimiter_of(header: str) -> str:
    """Return the character between the columns that a header names: a name may hold another."""
    return max(_DELIMITERS, key=lambda sign: (_n_known(header, sign), header.count(sign)))


def _n_known(header: str, delimiter: str) -> int:
    if delimiter not in header:
        return 0
    cells = (cell.strip().strip('"') for cell in header.split(delimiter))
    return sum(normal_name(cell) in known_names() for cell in cells)
