"""Documents out of a database: each row of a query is one."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ragforge.corpus.origins.origin import PROPER, SQL, Address, Origin, resolve_address, shown_url
from ragforge.corpus.row_documents import (
    BODY,
    DELETED,
    DELETED_AT,
    FORMAT,
    FORMS,
    ID,
    TITLE,
    deleted,
    form_of,
)
from ragforge.deferred import dataclass, pattern
from ragforge.errors import DataError, UsageError
from ragforge.files.record_files import ExternalSorter
from ragforge.files.row import make_row
from ragforge.files.text import shown
from ragforge.records.record import Record

if TYPE_CHECKING:
    import sqlite3

    from sqlalchemy import Connection, Engine

_HOW: Final = "expected sql:URL#SELECT id, title, text FROM … or sql:URL#NAME: SELECT …"
_NAMED: Final = pattern(r"\s*([A-Za-z][\w.-]*)\s*:(?!:)(.*)", re.DOTALL)
_COMMENT: Final = pattern(r"\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/", re.DOTALL)
_READS: Final = ("select", "with", "values", "table")
_SQLITE: Final = ("sqlite", "sqlite+pysqlite")
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class SqlSpec:
    """A query of a database; the name stands before the ids of its documents."""

    address: Address
    name: str
    query: str
    key: str

    @property
    def shown(self) -> str:
        """The address without user, password and query, and the name."""
        return f"{SQL}{self.address.shown}#{self.name}"


class _Row(Record):
    id: str
    title: str
    text: str
    format: str


def parse_sql(spec: str) -> SqlSpec:
    """Parse a spec.

    Raises:
        UsageError: It has no query or one that does more than read, a variable of it is not set,
            or it holds a password.
    """
    url, _, rest = spec.removeprefix(SQL).partition("#")
    if "@" in re.split(r"\s", rest.lstrip(), maxsplit=1)[0]:  # A password that holds a #.
        raise UsageError(f"{SQL}…: {PROPER}")
    address = resolve_address(url)
    named = _NAMED.fullmatch(rest)
    query = (named[2] if named else rest).strip().rstrip(";").rstrip()
    if not url or not query:
        raise UsageError(f"{SQL}{address.shown}: {_HOW}")
    at = 0
    while blank := _COMMENT.match(query, at):
        at = blank.end()
    first = re.match(r"\w*", query[at:])
    if first is None or first[0].lower() not in _READS:
        raise UsageError(f"{SQL}{address.shown}: {_HOW}, got no query that reads")
    name = named[1] if named else _database(shown_url(url if "://" in url else address.full))
    return SqlSpec(address, name, query, f"{SQL}{url}#{name}")


@contextmanager
def opened_sql(spec: SqlSpec) -> Iterator[Origin]:
    """Lend the rows of a query as one export, sorted by id.

    Rows whose column `deleted` is true, or whose `deleted_at` is set, are no documents.

    Raises:
        UsageError: SQLAlchemy or the database's driver is not installed.
        DataError: The address is none, or names a file that is missing.
    """
    engine = _engine(spec)

    def fetch(path: str, target: Path) -> str:
        with ExternalSorter(_id, target.parent) as spool:
            for row in _rows(spec, engine):
                spool.add(row)
            if not spool.count:
                raise DataError(
                    f"{spec.shown}: no row; expected documents (an empty result is taken for a "
                    "fault, not for documents that were all deleted)"
                )
            spool.write(target)
        _refuse_repeated(spec, target)
        return ""

    try:
        yield Origin({f"{spec.name}.jsonl": ""}, fetch)
    finally:
        engine.dispose()


def _database(url: str) -> str:
    """Return the name of the database that a URL without its user names; "rows" for none."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    return re.sub(r"[^\w.-]+", "-", Path(path).stem).strip(".-") or "rows"


def _id(row: _Row) -> tuple[str, ...]:
    return (row.id,)


def _engine(spec: SqlSpec) -> "Engine":
    try:
        from sqlalchemy import create_engine, make_url
        from sqlalchemy.exc import SQLAlchemyError
        from sqlalchemy.pool import NullPool
    except ImportError as error:
        raise UsageError(
            f"{spec.shown}: needs the package SQLAlchemy; pip install 'ragforge[sql]'"
        ) from error
    try:
        url = make_url(spec.address.full)
        if url.drivername in _SQLITE:
            return create_engine("sqlite://", creator=_sqlite_opener(spec, url.database or ""))
        return create_engine(url, poolclass=NullPool)
    except ImportError as error:
        raise UsageError(
            f"{spec.shown}: needs the package {error.name or 'of its driver'}, which reads such a "
            "database; for PostgreSQL: pip install 'psycopg[binary]'"
        ) from error
    except (SQLAlchemyError, ValueError) as error:
        raise DataError(f"{spec.shown}: {_reason(spec, error)}; {_HOW}") from error


def _sqlite_opener(spec: SqlSpec, database: str) -> "Callable[[], sqlite3.Connection]":
    """Return a function that opens an existing file, and only to read: SQLite would make one."""
    import sqlite3

    if not database or not Path(database).is_file():
        shown_path = spec.address.redacted(database) or "no file named"
        raise DataError(f"{spec.shown}: {shown_path}: no such file")
    name = f"file:{quote(str(Path(database).absolute()))}?mode=ro"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(name, uri=True)
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection

    return connect


def _rows(spec: SqlSpec, engine: "Engine") -> Iterator[_Row]:
    """Yield the rows as they come, some at a time."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with engine.connect() as connection:
            yield from _answered(spec, _for_reading(connection))
    except (SQLAlchemyError, OSError, UnicodeError) as error:
        raise DataError(f"{spec.shown}: {_reason(spec, error)}") from error


def _for_reading(connection: "Connection") -> "Connection":
    options: dict[str, Any] = {"stream_results": True, "yield_per": _AT_ONCE}
    if connection.dialect.name == "postgresql":
        options["postgresql_readonly"] = True
    # Without parameters a driver takes % and : as they are.
    return connection.execution_options(no_parameters=True, **options)


def _answered(spec: SqlSpec, connection: "Connection") -> Iterator[_Row]:
    with connection.exec_driver_sql(spec.query) as result:
        names = list(result.keys())
        columns = _columns(spec, names)
        for number, values in enumerate(result, start=1):
            given = dict(zip(names, values, strict=True))
            if not _is_deleted(f"{spec.shown}: row {number}", columns, given):
                yield _row(f"{spec.shown}: row {number}", columns, given)


def _columns(spec: SqlSpec, names: list[str]) -> Mapping[str, str]:
    """Return which column holds what: id, text, and those of the others that are there."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"{spec.shown}: column {twice[0]!r} comes twice; name one with AS")
    given = make_row(spec.shown, {name: name for name in names})
    given.require(ID)
    given.require(BODY)
    fields = (ID, BODY, TITLE, FORMAT, DELETED, DELETED_AT)
    return {field.name: str(given.get(field)) for field in fields if given.has(field)}


def _is_deleted(where: str, columns: Mapping[str, str], values: Mapping[str, Any]) -> bool:
    """Whether a row is kept only to say that its document is gone."""
    given = {field: values[column] for field, column in columns.items()}
    if given.get("deleted_at") is not None:
        return True
    is_deleted = deleted(given.get("deleted"))
    if is_deleted is None:
        raise DataError(
            f"{where}: {columns['deleted']}: expected true or false, got {shown(given['deleted'])}"
        )
    return is_deleted


def _row(where: str, columns: Mapping[str, str], values: Mapping[str, Any]) -> _Row:
    given = {field: values[column] for field, column in columns.items()}
    row_id = given["id"]
    if row_id is None or isinstance(row_id, bool | float | bytes) or not str(row_id).strip():
        raise DataError(f"{where}: {columns['id']}: expected an id, got {shown(row_id)}")
    for field in ("text", "title", "format"):
        value = given.get(field)
        if not isinstance(value, str) and (field == "text" or value is not None):
            hint = (
                f"; leave it out with WHERE {columns[field]} IS NOT NULL" if value is None else ""
            )
            where = f"{where} ({columns['id']} {shown(row_id)})"
            raise DataError(f"{where}: {columns[field]}: expected text, got {shown(value)}{hint}")
    if form_of(given.get("format")) is None:
        allowed = ", ".join(FORMS)
        raise DataError(f"{where}: format: expected one of {allowed}, got {shown(given['format'])}")
    return _Row(
        id=str(row_id),
        title=given.get("title") or "",
        text=given["text"],
        format=form_of(given.get("format")) or "text",
    )


def _refuse_repeated(spec: SqlSpec, path: Path) -> None:
    last = ""
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            # In JSON, no string can hold the bare quotes that end the first field.
            row_id = line.partition('","title":')[0]
            if row_id == last:
                found = _Row.model_validate_json(line).id
                raise DataError(
                    f"{spec.shown}: id {found!r} comes twice; expected one row for each document"
                )
            last = row_id


def _reason(spec: SqlSpec, error: Exception) -> str:
    """Return the driver's message without the query and the password."""
    cause = getattr(error, "orig", None) or error
    return spec.address.redacted(cause) or type(cause).__name__
