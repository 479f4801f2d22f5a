"""What users hold in memory, as the files that jobs read: records, data frames, documents."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from math import isnan
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeAlias

from ragforge.deferred import tempfile
from ragforge.errors import RagforgeError, UsageError
from ragforge.records.model import Model

Records: TypeAlias = Any
"""A path, an iterable of records (mappings, dataclasses, records of ragforge), or a data frame."""
Documents: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]] | Mapping[str, str]
"""One or several files, folders and origins such as s3://…; or texts by name."""
AnyRetriever: TypeAlias = Any
"""A function, plain or async, an object with a method that searches, or the name of one."""
AnySystem: TypeAlias = Any
"""A function, plain or async, an object with a method that answers, or the name of one."""
_EXAMPLE: Final = 80


def is_path(given: object) -> bool:
    """Whether a source is a file rather than what is in one."""
    return isinstance(given, str | PathLike)


def each_record(given: Records, *, with_nulls: bool = False) -> Iterator[dict[str, Any]]:
    """Yield records as mappings, one at a time; those of a data frame row by row.

    Args:
        given: Records or a data frame.
        with_nulls: Whether a value that is missing is kept as null: its column is there.

    Raises:
        UsageError: Something in it is no record.
    """
    from ragforge.files.formats.python_objects import collected

    plain = _with_nulls if with_nulls else _plain
    given = collected(given)
    if hasattr(given, "iter_rows"):  # polars
        yield from map(plain, given.iter_rows(named=True))
        return
    if hasattr(given, "itertuples") and hasattr(given, "columns"):  # pandas
        names = [str(name) for name in given.columns]
        for row in given.itertuples(index=False, name=None):
            yield plain(dict(zip(names, row, strict=True)))
        return
    if hasattr(given, "to_pylist"):  # pyarrow
        yield from map(plain, given.to_pylist())
        return
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise UsageError(
            f"records: expected a path, an iterable of records or a data frame, got "
            f"{type(given).__name__}"
        )
    for number, item in enumerate(given, start=1):
        yield plain(_mapping(item, number))


@contextmanager
def as_file(given: Records, stem: str = "given", *, with_nulls: bool = False) -> Iterator[Path]:
    """Lend a file that holds what is given; a path is lent as it is.

    Args:
        given: Path, records or data frame; records are written one by one, and errors name their
            rows.
        stem: What a file is called that is written; messages and records may name it.
        with_nulls: As for `each_record`.
    """
    if is_path(given):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory(prefix="ragforge-") as place:
        path = Path(place, f"{stem}.jsonl")
        with path.open("w", encoding="utf-8") as stream:
            stream.writelines(
                json.dumps(record, ensure_ascii=True, default=_json) + "\n"
                for record in each_record(given, with_nulls=with_nulls)
            )
        try:
            yield path
        except RagforgeError as error:
            error.args = (by_rows(str(error), path),)
            raise


def by_rows(text: str, path: Path) -> str:
    """Return a text about a lent file as one about what was given: nobody can open the file."""
    return text.replace(f"{path}: ", "given: ").replace(f"{path}:", "given, row ")


@contextmanager
def as_optional_file(given: Records | None) -> Iterator[Path | None]:
    """Lend a file as `as_file` does, None where nothing is given."""
    if given is None:
        yield None
        return
    with as_file(given) as path:
        yield path


@contextmanager
def as_documents(given: Documents | None) -> Iterator[list[str | Path]]:
    """Lend documents as files and origins that a corpus can be read from.

    Args:
        given: One or several paths and origins, or texts by name such as `{"faq.md": "# …"}`.

    Raises:
        UsageError: A name leads out of the set of documents.
    """
    if given is None:
        yield []
    elif isinstance(given, str):
        yield [given]
    elif isinstance(given, PathLike):
        yield [Path(given)]
    elif not isinstance(given, Mapping):
        yield [item if isinstance(item, str) else Path(item) for item in given]
    else:
        with tempfile.TemporaryDirectory(prefix="ragforge-") as place:
            for name, text in given.items():
                path = Path(place, "documents", _inside(str(name)))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            yield [Path(place, "documents")]


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise UsageError(f"documents: {name!r:.80}: expected a name such as guides/faq.md")
    return path if path.suffix else path.with_name(f"{path.name}.md")


def _is_pydantic(item: Any) -> bool:  # noqa: ANN401  # whatever the user has
    """Whether an object is a model of the user's own, who has imported pydantic then."""
    known = sys.modules.get("pydantic")
    return known is not None and isinstance(item, known.BaseModel)


def _mapping(item: Any, number: int) -> Mapping[str, Any]:  # noqa: ANN401  # likewise
    if isinstance(item, Mapping):
        return item
    if isinstance(item, Model) or _is_pydantic(item):
        values: Mapping[str, Any] = item.model_dump(mode="json", by_alias=True)
        return values
    if is_dataclass(item) and not isinstance(item, type):
        return asdict(item)
    if hasattr(item, "_asdict"):
        return dict(item._asdict())
    raise UsageError(
        f"record {number}: expected a mapping with named fields, got {repr(item)[:_EXAMPLE]}"
    )


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without what frames spell a missing value with."""
    return {name: value for name, value in _listed(record) if not _is_missing(value)}


def _with_nulls(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with null for what frames spell a missing value with."""
    return {name: None if _is_missing(value) else value for name, value in _listed(record)}


def _listed(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record, with lists for the arrays that Parquet files come with."""
    for name, value in record.items():
        yield str(name), value.tolist() if hasattr(value, "tolist") else value


def _is_missing(value: object) -> bool:
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float) and isnan(value)
    )


def _json(value: Any) -> object:  # noqa: ANN401  # of numpy, most likely
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            found: object = getattr(value, method)()
            return found
    if isinstance(value, set | frozenset | tuple):
        return sorted(value)
    raise UsageError(f"records: expected plain values, got {type(value).__name__}")
