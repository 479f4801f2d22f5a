from itertools import islice

import pytest

from ragforge.corpus.formats import UnreadableError
from ragforge.corpus.row_documents import TableRow, read_table_rows
from ragforge.errors import DataError


def rows(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_table_rows(path))


def test_row_without_an_id_is_named_by_its_number(tmp_path):
    """A row must be found again by eye."""
    assert rows(tmp_path / "a.csv", "kind,fee\nopened,10 %\n\nnew,0\n") == [
        TableRow("1", "", "kind: opened\nfee: 10 %"),
        TableRow("2", "", "kind: new\nfee: 0"),
    ]


def test_id_and_title_columns_are_known_in_any_case(tmp_path):
    """Spreadsheets write Id and Title."""
    [row] = rows(tmp_path / "a.tsv", "Title\tId\nOak\tx7\n")

    assert row == TableRow("x7", "Oak", "Title: Oak\nId: x7")


@pytest.mark.parametrize(
    "text",
    ["\ufeffa,b\n1,2\n", "a;b\n1;2\n", "a,b\r\n1,2\r\n", '"a","b"\n"1","2"\n', "a,b\n1,2"],
)
def test_what_spreadsheets_write_is_read(tmp_path, text):
    """Marks, semicolons, quotes and line ends differ by program."""
    assert rows(tmp_path / "a.csv", text) == [TableRow("1", "", "a: 1\nb: 2")]


def test_line_ends_in_a_cell_are_kept(tmp_path):
    """Descriptions have paragraphs."""
    assert rows(tmp_path / "a.csv", 'text,n\n"one\n\ntwo",\n')[0].text == "text: one\n\ntwo"


@pytest.mark.parametrize("text", ["1,2\n3,4\n", "12.5,name\n1,2\n"])
def test_table_without_a_header_is_unreadable(tmp_path, text):
    """Values without names say nothing."""
    with pytest.raises(UnreadableError, match="expected names of columns in the first line, got"):
        rows(tmp_path / "a.csv", text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a,b\n1,\xff\n", r"a\.csv:2: byte 2 \(0xff\) is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16"),
        (b"a,b\n1,2,3\n", r"a\.csv:2: expected 2 cells as in the header, got 3"),
        (b"id,b\n7,2\n7,3\n", r"a\.csv:3: id '7' comes twice"),
        (b"", "is empty"),
    ],
)
def test_broken_table_is_a_data_error(tmp_path, text, message):
    """A corpus that ends in the middle of a table must not look whole."""
    with pytest.raises(DataError, match=message):
        rows(tmp_path / "a.csv", text)


def test_rows_come_before_the_table_is_read(tmp_path):
    """A table may be larger than the memory."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,b\n" + b"".join(b"%d,x\n" % n for n in range(200_000)) + b"broken,\xff\n")

    first = [row.name for row in islice(read_table_rows(path), 3)]

    assert first == ["0", "1", "2"]
