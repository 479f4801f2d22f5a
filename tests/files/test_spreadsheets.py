import datetime
import re
import zipfile

import pytest

from ragforge.errors import ConfigError, DataError
from ragforge.files import spreadsheets
from ragforge.files.formats.queries import read_queries
from ragforge.files.formats.row_columns import parse_columns
from ragforge.files.formats.runs import read_run


@pytest.fixture
def sheet(tmp_path):
    """Writes a sheet, and returns its path."""
    openpyxl = pytest.importorskip("openpyxl")

    def write(*rows, name="set.xlsx"):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def test_first_sheet_is_read_as_a_table(sheet):
    """Experts work in spreadsheets, and leave rows blank."""
    path = sheet(["Question", "Expected answer", None], ["Why?", 3.0], [None], ["How\nso?", "a, b"])

    found = read_queries(path, lambda text: text).queries

    assert [(item.query.query, item.query.expected_answer) for item in found] == [
        ("Why?", "3"),
        ("How\nso?", "a, b"),
    ]


def formatted(sheet, header, *cells):
    """Write a sheet with a question and further columns, and formats for cells of numbers."""
    openpyxl = pytest.importorskip("openpyxl")
    path = sheet(
        ["question", header], *([f"What is {at}?", value] for at, (value, _) in enumerate(cells))
    )
    book = openpyxl.load_workbook(path)
    for row, (_, number_format) in enumerate(cells, start=2):
        book.active.cell(row, 2).number_format = number_format
    book.save(path)
    return path


def test_an_answer_is_what_its_cell_shows(sheet):
    """Nobody who reads 50% expects a system to say 0.5."""
    path = formatted(
        sheet, "answer", (0.5, "0%"), (0.077, "0.0%"), (12.5, '"€" 0.00'), (5, "General"), (3, "0")
    )

    found = read_queries(path, str)

    answers = [item.query.expected_answer for item in found.queries]
    assert answers == ["50%", "7.7%", "€ 12.50", "5", "3"]
    assert found.left_out == (
        f"{path}: cells that are read as they show their number: 3, such as B2: '50%' for 0.5",
    )


def test_a_format_that_is_not_read_leaves_the_number_and_is_told(sheet):
    """A fraction may be what was meant."""
    found = read_queries(path := formatted(sheet, "answer", (0.5, "# ?/?"), (2, "0")), str)

    assert [item.query.expected_answer for item in found.queries] == ["0.5", "2"]
    assert found.left_out == (
        f"{path}: cells with a number in a format that is not read, of which the number is taken: "
        "1, such as B2: 0.5 in the format '# ?/?'",
    )


@pytest.mark.parametrize("header", ["doc_id", "relevant_doc_ids", "Nummer"])
def test_an_id_is_the_number_of_its_cell(sheet, header):
    """Runs and labels name it as programs do."""
    path = formatted(sheet, header, (1042, "#,##0"), (7, "000"))

    found = read_queries(
        path, str, parse_columns([f"doc_id={header}"] if header == "Nummer" else [])
    )

    assert [list(item.grades) for item in found.queries] == [["1042"], ["7"]]
    assert found.left_out == ()


def test_scores_of_a_run_are_numbers_whatever_their_cells_show(sheet):
    """A rounded score would be a tie."""
    openpyxl = pytest.importorskip("openpyxl")
    path = sheet(["query_id", "chunk_id", "score"], ["q1", "c1", 0.512], ["q1", "c2", 0.508])
    book = openpyxl.load_workbook(path)
    book.active["C2"].number_format = book.active["C3"].number_format = "0%"
    book.save(path)

    assert read_run(path).rankings == {"q1": {"c1": 0.512, "c2": 0.508}}


def test_runs_come_in_sheets_too(sheet):
    """One reader takes every kind of table."""
    path = sheet(["query_id", "chunk_id", "score"], ["q1", "c1", 2], ["q1", "c2", 1.5])

    assert read_run(path).rankings == {"q1": {"c1": 2.0, "c2": 1.5}}


def test_broken_formula_is_refused_with_its_cell(sheet):
    """An answer must not become #REF!."""
    openpyxl = pytest.importorskip("openpyxl")
    path = sheet(["question", "answer"], ["Why?", "so"])
    book = openpyxl.load_workbook(path)
    book.active["B2"].value = "#REF!"
    book.active["B2"].data_type = "e"
    book.save(path)

    with pytest.raises(DataError, match=re.escape("set.xlsx:2: cell B2 holds the error #REF!")):
        read_queries(path, str)


def test_formula_that_nobody_computed_is_refused(sheet):
    """A program wrote it; the answer became none."""
    path = sheet(["question", "answer"], ["Why?", '=CONCAT("s","o")'])

    with pytest.raises(DataError, match=r"cell B2 holds the formula .*CONCAT"):
        read_queries(path, str)


def test_day_has_no_midnight(sheet):
    """A person wrote a day, and openpyxl gives the midnight before it."""
    day = datetime.datetime.fromisoformat("2026-03-01")
    path = sheet(["question", "answer"], ["When?", day], ["At?", day.replace(hour=9)])

    answers = [item.query.expected_answer for item in read_queries(path, str).queries]
    assert answers == ["2026-03-01", "2026-03-01 09:00:00"]


def test_file_that_is_no_sheet_is_refused(tmp_path):
    """A page that says "log in first" is often saved under such a name."""
    pytest.importorskip("openpyxl")
    path = tmp_path / "set.xlsx"
    path.write_text("<html>", encoding="utf-8")

    with pytest.raises(DataError, match=r"set\.xlsx: is no whole \.xlsx file"):
        read_queries(path, str)


def test_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    """Some megabytes may unpack to any size."""
    pytest.importorskip("openpyxl")
    path = tmp_path / "set.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", b" " * 5000)
    monkeypatch.setattr(spreadsheets, "_MOST_BYTES", 4000)

    with pytest.raises(DataError, match="unpacks to 5,000 bytes; at most 4,000 are read"):
        read_queries(path, str)


def test_missing_package_says_how_to_install_it(tmp_path, monkeypatch):
    """The core does without it."""
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    path = tmp_path / "set.xlsx"
    path.write_bytes(b"PK")

    with pytest.raises(ConfigError, match=r"pip install 'ragforge\[xlsx\]'; or save it as CSV"):
        read_queries(path, str)


def test_other_spreadsheets_are_named(tmp_path):
    """ "That it is binary would not help."""
    path = tmp_path / "set.ods"
    path.write_bytes(b"PK")

    with pytest.raises(DataError, match=r"\.ods is not read; save it as \.xlsx or as CSV UTF-8"):
        read_queries(path, str)
