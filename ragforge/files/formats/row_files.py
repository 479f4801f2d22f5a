"""Files of rows: the objects of JSON and JSON Lines, the lines of tables with a header."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragforge.deferred import csv, pattern
from ragforge.errors import DataError
from ragforge.files.field_names import (
    QUERY,
    QUERY_ID_OF_PAIR,
    ROWS,
    TEXT,
    Field,
    goes_by,
    normal_name,
)
from ragforge.files.row import Row, examples, load_json, make_row
from ragforge.files.source_files import Line, Source, delimiter_of, is_separator_line
from ragforge.files.text import decode, shown

if TYPE_CHECKING:
    import jsonlines

_CELL_CHARS = 2**31 - 1
"""The csv module refuses cells above 128 KiB unless told otherwise, for the whole process."""
_JSON_SIGN = pattern(r'"(?>(?:[^"\\]|\\.)*)"?|[\[\]{}\n]')
_TABLE_FAULTS = {
    "unexpected end of data": ", as a quote that opens in this row is never closed",
    "',' expected after '\"'": "; within quotes, a quote is written twice",
    "';' expected after '\"'": "; within quotes, a quote is written twice",
    "'\t' expected after '\"'": "; within quotes, a quote is written twice",
}
"""What the csv module says, and what it means to who wrote the file."""
_LIKELY_WRONG = ("plausible_answers",)
"""Of questions of SQuAD: answers that only look right."""
_TOO_DEEP = "is nested too deeply; expected a few levels of lists and objects, got hundreds"


def read_rows_of(
    source: Source,
    shapes: Iterable[str],
    *,
    by_query: str = "",
    under: Field = ROWS,
    verbatim: tuple[Field, ...] = (),
) -> Iterator[Row]:
    """Yield the rows of a file that holds nothing but rows.

    Args:
        source: JSON Lines, JSON (a list, an object with a list under `queries` or the like, or
            one row), or a table whose first line names its columns.
        shapes: Examples of what is accepted, for the message.
        by_query: The field that the values of a JSON object {query id: list or object} stand for;
            "" where such a file is not accepted.
        under: The names under which a JSON object may hold the list.
        verbatim: Fields whose cells in a table keep the blanks around them.

    Raises:
        DataError: The file holds something else, or no row.
    """
    match source.kind:
        case "jsonl":
            return read_json_lines(source.path, source.lines)
        case "columns":
            return read_table(source, verbatim)
        case "json":
            document = read_document(source)
            rows = _document_rows(source.path, document, under)
            if rows is None and by_query:
                rows = _rows_by_query(source.path, document, by_query)
            if rows is None:
                raise unknown_shape(source.path, shapes)
            return iter(rows)


def read_labelled_rows(source: Source, shapes: Iterable[str], field: Field) -> Iterator[Row]:
    """Yield the rows of a file, or of a JSON object by id whose values say something of each id.

    Args:
        source: As for `read_rows_of`.
        shapes: Likewise.
        field: What a value stands for that is a list, or an object without a field of that kind.

    Raises:
        DataError: As for `read_rows_of`.
    """
    if source.kind != "json":
        yield from read_rows_of(source, shapes)
        return
    document = read_document(source)
    rows = _document_rows(source.path, document, ROWS)
    if rows is not None:
        yield from rows
        return
    if not isinstance(document, dict):
        raise unknown_shape(source.path, shapes)
    for key, value in document.items():
        where = f"{source.path}: {shown(key)}"
        is_record = isinstance(value, Mapping) and any(
            isinstance(item, list | Mapping | str) for item in value.values()
        )
        yield make_row(where, {**value, "id": key} if is_record else {"id": key, field.name: value})


def read_json_lines(path: Path, lines: Iterable[Line]) -> Iterator[Row]:
    """Yield a row for each line that is not blank.

    Raises:
        DataError: A line is not one whole JSON object.
    """
    import jsonlines  # Half of what reading a TREC file would import.

    at = 0

    def texts() -> Iterator[str]:
        nonlocal at
        for number, line in lines:
            at = number
            text = decode(line, f"{path}:{number}")
            if text.strip():
                yield text

    reader = jsonlines.Reader(texts(), loads=load_json)
    while True:
        try:
            fields = reader.read(type=dict)
        except EOFError:
            return
        except (jsonlines.InvalidLineError, RecursionError) as error:
            raise DataError(f"{path}:{at}: {_broken_line(error)}") from error
        yield make_row(f"{path}:{at}", fields)


def _broken_line(error: "jsonlines.InvalidLineError | RecursionError") -> str:
    """Return in words what is wrong with a line."""
    if isinstance(error, RecursionError):
        return _TOO_DEEP
    if isinstance(error.__cause__, json.JSONDecodeError):
        return f"is not one complete JSON object: {shown(error.line)}"
    if error.__cause__ is not None:
        return str(error.__cause__)
    return f"expected a JSON object, got {shown(load_json(error.line))}"


def read_document(source: Source) -> object:
    """Return the document in a JSON file; a list of objects where it holds one object a line.

    Raises:
        DataError: It is neither.
    """
    lines = list(source.lines)
    text = decode(b"".join(line for _, line in lines), str(source.path))
    try:
        return load_json(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and source.first.startswith("{"):
            return list(read_json_lines(source.path, lines))
        raise DataError(f"{source.path}:{error.lineno}: is not whole JSON: {error.msg}") from error
    except RecursionError as error:
        raise DataError(f"{source.path}:{_deepest_line(text)}: {_TOO_DEEP}") from error
    except ValueError as error:
        raise DataError(f"{source.path}: {error}") from error


def _deepest_line(text: str) -> int:
    deepest = depth = 0
    line = number = 1
    for sign in _JSON_SIGN.finditer(text):
        if sign[0] == "\n":
            number += 1
        elif sign[0] in "[{":
            depth += 1
            if depth > deepest:
                deepest, line = depth, number
        elif sign[0] in "]}":
            depth -= 1
    return line


def _document_rows(path: Path, document: object, under: Field) -> list[Row] | None:
    """Return the rows of what `read_document` returned; None where it is no list of rows.

    Raises:
        DataError: An item of the list is no object.
    """
    if isinstance(document, list):
        return _item_rows(str(path), document)
    if not isinstance(document, dict):
        return None
    for name, value in document.items():
        if goes_by(name, under) and _is_list_of_objects(value):
            where = f"{path}: {name}"
            return _rows_of_squad(where, value) or _item_rows(where, value)
    names = {normal_name(name) for name, value in document.items() if isinstance(value, str | int)}
    known = (*QUERY_ID_OF_PAIR.accepted, *QUERY.accepted, *TEXT.accepted)
    if any(normal_name(name) in names for name in known):
        return [make_row(str(path), document)]
    return None


def _rows_of_squad(where: str, articles: list[Mapping[str, Any]]) -> list[Row]:
    """Return the questions of articles, as SQuAD is published; none where that is not their form.

    They come as datasets of Hugging Face have them. Test sets leave `answers` out: that is not to
    say that there is none.
    """
    rows = []
    try:
        for number, article in enumerate(articles, start=1):
            for paragraph in article["paragraphs"]:
                beside = {name: article[name] for name in ("title",) if article.get(name)}
                beside["context"] = paragraph["context"]
                for asked in paragraph["qas"]:
                    place = f"{where}: item {number}, {shown(asked['question'])}"
                    said = {k: v for k, v in asked.items() if k not in _LIKELY_WRONG}
                    if asked.get("answers") is not None or asked.get("is_impossible"):
                        answers = asked.get("answers") or ()
                        said["answers"] = {"text": [answer["text"] for answer in answers]}
                    rows.append(make_row(place, {**beside, **said}))
    except (KeyError, TypeError, AttributeError):
        return []
    return rows


def read_table(source: Source, verbatim: tuple[Field, ...] = ()) -> Iterator[Row]:
    """Yield the lines of a table behind its header, each under the number of its first line.

    Blanks around a cell do not count, but in the columns of the verbatim fields.

    Raises:
        DataError: A line has more or fewer cells than the header, or a quoted cell has no end.
    """
    header: list[str] = []
    kept: set[str] = set()
    for number, cells in _numbered_cells(source):
        values = [cell.strip() for cell in cells]
        if not any(values) or (not header and is_separator_line("".join(values))):
            continue
        where = f"{source.path}:{number}"
        if not header:
            header = values
            _check_header(where, header)
            kept = {name for name in header if any(goes_by(name, field) for field in verbatim)}
            continue
        if len(values) != len(header):
            raise DataError(
                f"{where}: expected {len(header)} cells as in the header, got {len(values)}"
                f"{_quote_hint(cells) or _delimiter_hint(source, len(values) - len(header))}"
            )
        row = dict(zip(header, values, strict=True))
        if kept:
            row |= {name: cell for name, cell in zip(header, cells, strict=True) if name in kept}
        yield make_row(where, row, is_of_table=True)


def _quote_hint(cells: list[str]) -> str:
    """Return what to look for where a cell runs over several lines; "" where none does."""
    n_lines = max(cell.count("\n") for cell in cells) + 1
    return f"; a cell in quotes runs over {n_lines} lines: is a quote missing?" * (n_lines > 1)


def _delimiter_hint(source: Source, n_more: int) -> str:
    """Return what to do where a line has more cells than the header; "" where it has fewer."""
    sign = delimiter_of(source.first)
    return f"; a cell that holds {sign!r} stands in quotes" * (n_more > 0 and sign != "\t")


def unknown_shape(where: Path | str, shapes: Iterable[str]) -> DataError:
    """Return the error that shows what would have been accepted."""
    return DataError(f"{where}: has none of the shapes accepted:{examples(shapes)}")


def none_found(where: Path | str, what: str) -> DataError:
    """Return the error about a file in which there is nothing to read."""
    return DataError(f"{where}: holds no {what}; expected at least one")


def _numbered_cells(source: Source) -> Iterator[tuple[int, list[str]]]:
    path = source.path
    reader = csv.reader(
        (decode(line, f"{path}:{number}") for number, line in source.lines),
        delimiter=delimiter_of(source.first),
        strict=True,
    )
    while True:
        number = reader.line_num + 1
        previous = csv.field_size_limit(_CELL_CHARS)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            hint = _TABLE_FAULTS.get(str(error), "")
            raise DataError(f"{path}:{number}: is no line of a table: {error}{hint}") from error
        finally:
            csv.field_size_limit(previous)
        if cells is None:
            return
        yield number, cells


def _check_header(where: str, header: list[str]) -> None:
    name, count = Counter(header).most_common(1)[0]
    if count > 1:
        raise DataError(f"{where}: column {shown(name)} comes twice")


def _is_list_of_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value[:1])


def _rows_by_query(path: Path, document: object, field: str) -> list[Row] | None:
    if not isinstance(document, dict):
        return None
    if not all(isinstance(value, list | dict) for value in document.values()):
        return None
    return [
        make_row(f"{path}: {shown(query_id)}", {"id": query_id, field: value})
        for query_id, value in document.items()
    ]


def _item_rows(where: str, items: list[object]) -> list[Row]:
    rows = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, Row):
            rows.append(item)
        elif isinstance(item, dict):
            rows.append(make_row(f"{where}: item {number}", item))
        else:
            raise DataError(f"{where}: item {number}: expected an object, got {shown(item)}")
    return rows
