import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.errors import DataError
from ragforge.files.formats.review_sheet import (
    SheetRow,
    escaped_cell,
    plain_cell,
    read_sheet,
    write_sheet,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def sheet_row(**fields):
    empty = dict.fromkeys(SheetRow.__dataclass_fields__, "")
    return SheetRow(**{**empty, "query_id": "q1", "revision": "1", **fields})


@given(TEXT)
def test_escaped_cell_comes_back_exactly(text):
    """Reviewers must see, and the set must keep, what was written."""
    assert plain_cell(escaped_cell(text)) == text


@given(st.sampled_from("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"), TEXT)
def test_no_cell_starts_as_a_formula(sign, text):
    """A question about =HYPERLINK(…) must not run in a reviewer's spreadsheet."""
    assert escaped_cell(sign + text)[0] == "'"


@given(st.lists(TEXT, min_size=1, max_size=4))
def test_whole_sheet_comes_back_exactly(tmp_path_factory, texts):
    """Quotes, line breaks and separators in a corpus must not shift the cells."""
    path = tmp_path_factory.mktemp("sheet") / "review.csv"
    write_sheet(path, [sheet_row(query=text, evidence=text) for text in texts])

    raw = path.read_bytes().decode("utf-8-sig")
    cells = list(csv.DictReader(io.StringIO(raw, newline="")))

    assert [plain_cell(cell["query"]) for cell in cells] == texts
    assert [plain_cell(cell["evidence"]) for cell in cells] == texts


@given(TEXT)
def test_decisions_come_back_without_the_blanks_around(tmp_path_factory, text):
    """A note of a person is kept word by word."""
    path = tmp_path_factory.mktemp("sheet") / "review.csv"
    write_sheet(path, [sheet_row(decision="approve", note=f"a{text}z")])

    assert [row.note for row in read_sheet(path)] == [f"a{text}z"]


def test_sheet_starts_with_a_mark_that_spreadsheets_know(tmp_path):
    """Without it they read UTF-8 as Latin-1 and send back other letters."""
    path = tmp_path / "review.csv"
    write_sheet(path, [sheet_row(query="Größe?")])

    assert path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_sheet_saved_with_semicolons_is_read(tmp_path):
    """That is how a German spreadsheet saves it."""
    path = tmp_path / "review.csv"
    path.write_text("query_id;revision;decision;note\nq1;2;Approve;'=fine\n", encoding="utf-8")

    [row] = read_sheet(path)

    assert (row.query_id, row.revision, row.decision, row.note) == ("q1", 2, "approve", "=fine")
    assert row.shown_query is None


def test_saved_page_is_read_as_it_is(tmp_path):
    """In JSON an apostrophe is part of the text."""
    path = tmp_path / "review.json"
    rows = [{"query_id": "q1", "revision": 1, "decision": "edit", "new_query": "'=SUM?"}]
    path.write_text(json.dumps(rows), encoding="utf-8")

    assert [row.new_query for row in read_sheet(path)] == ["'=SUM?"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is empty: no decision"),
        (b"query_id,revision,decision\n", "holds no row"),
        (b"PK\x03\x04\x00\x00", "is binary"),
        ("query_id,revision,decision\nq1,1,é\n".encode("latin-1"), "is not UTF-8"),
        ("query_id,revision,decision\n".encode("utf-16"), "is UTF-16"),
        (b"query_id,decision\nq1,approve\n", "needed are query_id, revision, decision"),
        (b"query_id,revision,decision\nq1,one,approve\n", "revision: expected a whole number"),
        (b"query_id,revision,decision\n,1,approve\n", "query_id: expected an id"),
        (b"query_id,revision,decision,random\nq1,1,edit,si\n", "random: expected random or nothi"),
        (b'query_id,revision,decision\n"q1,1,approve\n', "is no line of a table"),
        (b"query_id,revision,decision\nq1,1\n", "expected 3 cells as in the header, got 2"),
        (b"<!DOCTYPE html>\n<p>\n", "has none of the shapes"),
    ],
)
def test_faulty_sheet_is_refused_with_its_place(tmp_path, raw, message):
    """Half a sheet taken in would count for the wrong queries."""
    path = tmp_path / "review.csv"
    path.write_bytes(raw)

    with pytest.raises(DataError, match=re.escape(message)):
        read_sheet(path)


def test_a_text_with_nul_comes_back_from_a_sheet(tmp_path):
    """Readers of tables refuse the whole file for it, and one query would hold up all decisions."""
    path = tmp_path / "review.csv"
    write_sheet(path, [sheet_row(query="one\x00two", decision="approve")])

    [decision] = read_sheet(path)

    assert (decision.decision, decision.shown_query) == ("approve", "one\ufffdtwo")
