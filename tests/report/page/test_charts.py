import re

import pytest

from ragforge.report.page.charts import (
    Chart,
    Line,
    Mark,
    Point,
    Scale,
    legend,
    line_chart,
    round_range,
)


@pytest.fixture
def chart():
    """Make a chart of some lines, each with two points that have intervals."""

    def make(count, **fields):
        points = [Point(0, 0.2, 0.1, 0.3), Point(1, 0.6, 0.5, 0.7)]
        lines = [Line(f"run {n}", n, points) for n in range(count)]
        given = {"x_ticks": [(0, "a"), (1, "b")], "y_ticks": (0.0, 1.0), **fields}
        return line_chart(Chart("key", "Title", "In words", lines, **given)).code

    return make


def test_chart_has_its_title_and_its_data_in_words(chart):
    """Who cannot see the lines is to have what they say."""
    found = chart(1)

    assert 'role="img" aria-labelledby="key-t key-d"' in found
    assert '<title id="key-t">Title</title><desc id="key-d">In words</desc>' in found


def test_lines_differ_by_their_dashes_as_well(chart):
    """Colour alone tells nothing to one reader in twelve, and to no printer in black."""
    assert re.findall(r'class="drawn tone-\d (dash-\d)"', chart(3)) == [
        "dash-0",
        "dash-1",
        "dash-2",
    ]


@pytest.mark.parametrize(("n_lines", "n_bands"), [(1, 1), (3, 3), (4, 0)])
def test_bands_are_drawn_as_long_as_they_can_be_told_apart(chart, n_lines, n_bands):
    """Six bands on top of each other are a grey field."""
    assert chart(n_lines).count("<polygon") == n_bands


def test_marks_stand_at_their_place(chart):
    """A step in a line is explained by what changed there."""
    found = chart(1, marks=[Mark(1, "7")])

    assert re.search(r'<text class="label change" x="360.0" y="9"><tspan>7</tspan></text>', found)


def test_names_in_a_legend_are_data():
    """A run may be called anything."""
    assert "<b>" not in legend([Line("<b>", 0, [])]).code


def test_values_go_in_a_straight_line_between_the_ends():
    """A chart whose distances are not those of the values misleads."""
    assert Scale(0, 10, 100, 200).place(2.5) == 125


def test_a_scale_of_one_value_puts_it_in_the_middle():
    """One evaluation is no reason to divide by 0."""
    assert Scale(3, 3, 0, 10).place(3) == 5


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ((0.0, 0.97), (0.0, 0.25, 0.5, 0.75, 1.0)),
        ((0.52, 0.71), (0.5, 0.55, 0.6, 0.65, 0.7, 0.75)),
        ((0.6,), (0.6, 0.62)),
        ((0.0, 0.0), (0.0, 0.025)),
    ],
)
def test_marks_are_round_and_enclose_the_values(values, marks):
    """An axis is read by its marks, and a point beside it is lost."""
    assert round_range(values) == pytest.approx(marks)
