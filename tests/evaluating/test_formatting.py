import json
import re
from pathlib import Path

import pytest

import ragforge
from ragforge.evaluating.formatting import (
    MISSING,
    display_width,
    duration,
    escaped_json,
    excerpt,
    inert,
    number,
    numeric_column,
    one_line,
    plural,
    render_table,
    share,
    signed,
    visible,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("a\u202eb", r"a\u202eb"),
        ("a\u200bb", r"a\u200bb"),
        ("\U000e0041", r"\U000e0041"),
        ("\udc80", r"\udc80"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\u06a9\u200c\u0647", "\u06a9\u200c\u0647"),
    ],
)
def test_hidden_characters_become_visible_escapes(text, shown):
    """Text of a corpus must not steer a terminal or reorder what a reader sees."""
    assert visible(text) == shown


def test_one_line_folds_space_and_cuts_with_an_ellipsis():
    """A table cell has one line however long its text is."""
    assert one_line("a\n  b\tc" + "d" * 500, 10) == "a b cdddd…"


def test_short_text_stays_whole_on_one_line():
    """An ellipsis where nothing is cut would be a lie."""
    assert one_line("exactly10!", 10) == "exactly10!"


def test_excerpt_knows_how_much_it_left_out():
    """A cut text without a note reads like the whole."""
    assert excerpt("x" * 2000, 600).cut_note == "first 600 of 2,000 characters"
    assert excerpt("short", 600).cut_note == ""


def test_missing_values_are_dashes():
    """A value that does not exist must not look like 0."""
    assert (number(None), share(None), share(1, 0)) == (MISSING, MISSING, MISSING)


def test_counts_agree_with_their_noun():
    """A report is read by people."""
    assert (plural(1, "query", "queries"), plural(1200, "run")) == ("1 query", "1,200 runs")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.000123, "0.12 ms"),
        (0.0001, "0.10 ms"),
        (0.0012, "1.2 ms"),
        (0.00996, "10 ms"),
        (0.123, "123 ms"),
        (1.5, "1.50 s"),
    ],
)
def test_times_keep_two_significant_digits(seconds, shown):
    """A fast retriever takes some time, and "0 ms" tells two of them not apart."""
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("boom\n::error::y", "boom\n: :error::y"),
        (" \t::stop-commands::x", " \t: :stop-commands::x"),
        ("a ##[error]b", "a # #[error]b"),
        ("###[group]", "## #[group]"),
        ("##vso[task.setvariable variable=x]1", "# #vso[task.setvariable variable=x]1"),
        ("\x1b[2J\r::error::y", "\\x1b[2J\\x0d::error::y"),
    ],
)
def test_nothing_in_a_log_is_a_command(text, shown):
    """Texts of data end up in the logs of CI services, which obey some lines."""
    assert inert(text) == shown


def test_what_is_no_command_is_shown_as_it_is():
    """Names of code and headings of Markdown are full of colons and hashes."""
    text = "std::vector::at\n## [link](x) # [a]\nfoo ::bar"

    assert inert(text) == text


def test_json_with_escapes_means_the_same():
    """Who reads it with a program must get the characters that were there."""
    text = "\x9b31m \u202e \u200b \U000e0041 \x7f caf\u00e9 \\u202e"
    shown = escaped_json(json.dumps([text], ensure_ascii=False))

    assert json.loads(shown) == [text]
    assert visible(shown) == shown


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "+0.250"), (-0.25, "-0.250"), (-0.0004, "0.000"), (0.0004, "0.000"), (None, MISSING)],
)
def test_a_difference_has_a_sign_unless_it_shows_as_nothing(value, text):
    """`-0.000` makes readers ask what is wrong."""
    assert signed(value) == text


def test_numbers_with_a_sign_are_written_in_one_place():
    """One form of minus for tables, pages and pictures, and no zero with a sign."""
    package = Path(ragforge.__file__).parent
    own = re.compile(r":\+\.(?:\{\w+\}|\d)f")
    places = [
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if own.search(path.read_text(encoding="utf-8"))
    ]

    assert places == ["evaluating/formatting.py"]
