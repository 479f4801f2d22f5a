"""Queries of users that generated ones are to be like: of a file, and of the set's own log."""

import json
from collections.abc import Iterator
from pathlib import Path

from ragforge.errors import DataError
from ragforge.files.dataset import Dataset


def real_queries(dataset: Dataset, like: str) -> tuple[str, ...]:
    """Return the queries of users, each once, in the order of the file, then of the set.

    Args:
        dataset: Whose log may have been imported; need not exist.
        like: Path of a file: JSON Lines of strings or of objects with `query` or `question`, or
            plain text, a query a line; "" for none.

    Raises:
        DataError: The file cannot be read, or holds no query.
    """
    found = list(_of_file(Path(like))) if like else []
    if like and not found:
        raise DataError(f"{like}: holds no query")
    found += [item.query for item in dataset.real_queries()]
    return tuple(dict.fromkeys(found))


def _of_file(path: Path) -> Iterator[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text: {error.reason} at {error.start}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text.startswith(("{", '"')):
            text = _of_json(text, f"{path}:{number}")
        if text:
            yield text


def _of_json(line: str, where: str) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: is no JSON: {error}") from error
    found = row if isinstance(row, str) else row.get("query", row.get("question"))
    if not isinstance(found, str):
        raise DataError(f"{where}: expected a text under query, got {found!r:.80}")
    return found.strip()
