"""Exports: JSON Lines in which each row is a document with an id and a text."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ragforge.errors import DataError
from ragforge.files.fields import Row
from ragforge.files.lines import open_source
from ragforge.files.names import Field
from ragforge.files.rows import read_json_lines

RowFormat = Literal["markdown", "rst", "text", "html"]

ID: Final = Field("id", ("id", "doc_id", "document_id", "_id", "url", "uri"))
BODY: Final = Field("text", ("text", "content", "contents", "page_content", "body"))
TITLE: Final = Field("title", ("title", "name", "subject", "heading"))
FORMAT: Final = Field("format", ("format", "mime_type", "content_type"))
DELETED: Final = Field("deleted", ("deleted", "is_deleted", "_deleted"))
DELETED_AT: Final = Field("deleted_at", ("deleted_at",))
FORMS: Final[dict[str, RowFormat]] = {
    "text": "text",
    "text/plain": "text",
    "plain": "text",
    "markdown": "markdown",
    "md": "markdown",
    "text/markdown": "markdown",
    "rst": "rst",
    "text/x-rst": "rst",
    "html": "html",
    "text/html": "html",
}
"""What a row may say of the form of its text."""

_YES: Final = (True, 1, "1", "true", "t", "yes", "y")
_NO: Final = (None, False, 0, "", "0", "false", "f", "no", "n")


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """A document of an export; its title is "" where it has none."""

    name: str
    title: str
    text: str
    format: RowFormat


class Export:
    """An export, read once when it is made: what is wrong with it shows before the first row.

    Of a later row that says `deleted`, it follows that an earlier one of its id is gone; a row
    after that brings it back. Ids are held in memory, texts are not.

    Args:
        path: JSON Lines, packed with gzip where the name says so.

    Raises:
        DataError: It cannot be read, is empty, or a row is no document: it has no id or no field
            with a text, or its id came before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._deleted_in: dict[str, int] = {}
        there: set[str] = set()
        for number, row in self._given():
            name = row.identifier(ID)
            if _is_deleted(row):
                there.discard(name)
                self._deleted_in[name] = number
                continue
            if name in there:
                raise DataError(
                    f"{row.where}: id {name!r} comes twice; expected one row for each id"
                )
            there.add(name)
            _document(row, name)

    def rows(self) -> Iterator[ExportedRow]:
        """Yield the documents in the order of the file, without those that are deleted."""
        for number, row in self._given():
            name = row.identifier(ID)
            if number > self._deleted_in.get(name, 0):
                yield _document(row, name)

    def _given(self) -> Iterator[tuple[int, Row]]:
        source = open_source(self._path, "rows")
        return enumerate(read_json_lines(self._path, source.lines), start=1)


def form_of(value: object) -> RowFormat | None:
    """Return the form that a row says its text has, plain text where it says nothing."""
    if value is None:
        return "text"
    return FORMS.get(str(value).partition(";")[0].strip().lower())


def deleted(value: object) -> bool | None:
    """Return what a field says of whether its row is deleted; None where that is not plain."""
    told = value.strip().lower() if isinstance(value, str) else value
    return told in _YES if told in (*_YES, *_NO) else None


def _document(row: Row, name: str) -> ExportedRow:
    row.require(BODY)
    form = form_of(row.get(FORMAT))
    if form is None:
        raise row.wrong(FORMAT, f"one of {', '.join(FORMS)}", row.get(FORMAT))
    title = row.optional_text(TITLE) or ""
    return ExportedRow(name, title, row.optional_text(BODY) or "", form)


def _is_deleted(row: Row) -> bool:
    if row.get(DELETED_AT) is not None:
        return True
    found = deleted(row.get(DELETED))
    if found is None:
        raise row.wrong(DELETED, "true or false", row.get(DELETED))
    return found
