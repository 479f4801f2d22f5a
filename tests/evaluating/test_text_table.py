import pytest

from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.text_table import display_width, numeric_column, render_table


def test_numbers_are_right_aligned_and_words_left():
    """Digits of the same weight stand below each other, so that columns can be compared."""
    table = render_table(["run", "n"], [["bm25", "7"], ["dense", "1,200"], ["x", MISSING]])

    assert table == (
        "run        n\n"
        "─────  ─────\n"
        "bm25       7\n"
        "dense  1,200\n"
        f"x          {MISSING}"
    )  # fmt: skip


def test_wide_characters_take_two_columns():
    """Chinese text in one row must not shift the columns of that row."""
    table = render_table(["name", "n"], [["漢字", "1"], ["e\u0301te", "2"]])

    assert [display_width(line) for line in table.splitlines()] == [7, 7, 7, 7]


@pytest.mark.parametrize(
    "cell", ["0.5", "-1", "12 %", "21 ms", "0.5 [0.4, 0.6]", "1,200", "1.5e-9"]
)
def test_values_with_units_and_bounds_count_as_numbers(cell):
    """A unit does not turn a column of values into words."""
    assert numeric_column([cell, MISSING, ""])


@pytest.mark.parametrize("cell", ["3f3f3f3f", "top 5", "2 queries", ""])
def test_digests_and_words_do_not_count_as_numbers(cell):
    """Ids are read from their start."""
    assert not numeric_column([cell])


def test_control_characters_in_cells_are_escaped():
    """A run name or query must not recolour the terminal or break the line."""
    assert render_table(["q"], [["a\x1b[2Jb\nc"]]).splitlines()[-1] == r"a\x1b[2Jb c"


def test_table_without_rows_is_its_head():
    """No rows is an answer too."""
    assert render_table(["run", "n"], []) == "run  n\n───  ─"


def test_row_of_another_length_is_refused():
    """A shifted row would put values below the wrong name."""
    with pytest.raises(ValueError, match="expected 2 cells, got 1"):
        render_table(["a", "b"], [["1"]])
