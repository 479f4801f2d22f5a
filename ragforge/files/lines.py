"""The lines of a data file, plain or gzip, and what kind of file they make.

A file is opened once and read forward, so that a pipe (`/dev/fd/63`) is as good as a file.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Literal

from ragforge.errors import DataError
from ragforge.files.text import decode

Line = tuple[int, bytes]
"""Line number, from 1, and the line with its end."""

_JSON_LINES = (".jsonl", ".ndjson")
_COLUMNS = (".csv", ".tsv", ".trec", ".qrels", ".run")
_PACKED_OTHERWISE = {".zst": "zstd -d", ".bz2": "bunzip2", ".xz": "unxz", ".zip": "unzip"}


@dataclass(frozen=True, slots=True)
class Source:
    """An opened data file."""

    path: Path
    kind: Literal["json", "jsonl", "columns"]
    first: str
    """The first line that is neither blank nor a comment, without blanks around it."""
    lines: Iterator[Line]
    """All lines, from the first; they can be read once."""


def open_source(path: Path, holds: str = "data") -> Source:
    """Open a data file and tell by suffix and first line what kind it is.

    Args:
        path: The file.
        holds: What the message about an empty file misses.

    Raises:
        DataError: The file cannot be read, is packed in another way than gzip, is binary, or holds
            nothing.
    """
    lines = read_lines(path)
    ahead: list[Line] = []
    for number, line in lines:
        ahead.append((number, line))
        first = decode(line, f"{path}:{number}").strip()
        if first and not first.startswith("#"):
            return Source(path, _kind(path, first), first, chain(ahead, lines))
    raise DataError(f"{path}: is empty: no {holds}; expected at least one line")


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file as they are, unpacked where its name ends in .gz.

    Raises:
        DataError: The file cannot be read or unpacked.
    """
    tool = _PACKED_OTHERWISE.get(path.suffix.lower())
    if tool is not None:
        raise DataError(f"{path}: {path.suffix} is not read, only .gz is; unpack it first ({tool})")
    try:
        with _open(path) as stream:
            yield from enumerate(stream, start=1)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise DataError(f"{path}: is not a whole gzip file: {error}") from error


def plain_name(path: Path) -> str:
    """Return the name of a file without folder, `.gz` and the suffix of its kind."""
    name = path.stem if path.suffix.lower() == ".gz" else path.name
    kinds = (*_JSON_LINES, *_COLUMNS, ".json", ".txt")
    return name[: name.rindex(".")] if Path(name).suffix.lower() in kinds else name


def _open(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile is an IO[bytes]
    return path.open("rb")


def _kind(path: Path, first: str) -> Literal["json", "jsonl", "columns"]:
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    suffix = name.suffix.lower()
    if suffix in _JSON_LINES:
        return "jsonl"
    if suffix == ".json":
        return "json"
    return "json" if first[0] in "[{" and suffix not in _COLUMNS else "columns"
