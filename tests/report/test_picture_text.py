import pytest

from ragforge.measures.intervals import Ends
from ragforge.report.page.charts import Chart, Line, Point
from ragforge.report.page.deltas import Delta, Deltas
from ragforge.report.page.interval_rows import IntervalRow, IntervalRows
from ragforge.report.page.markup import element
from ragforge.report.page.picture import Panel, Picture
from ragforge.report.picture_text import ASCII, BLOCKS, picture_text

DRAWN = element("svg")


def shown(shows, *, width=44, marks=BLOCKS, notes=()):
    """Return the lines of a picture with one chart."""
    panel = Panel("caption", DRAWN, 10, shows=shows)
    return picture_text(Picture("Title", "told", [[panel]], notes), width, marks).split("\n")


def differences(*diffs):
    items = [Delta(f"q{n}", 0.0, diff) for n, diff in enumerate(sorted(diffs))]
    return Deltas("old", "new", items, "nDCG@10")


def test_queries_are_counted_by_how_much_they_differ():
    """Whether a mean is of many small steps or of few large ones is what a mean does not say."""
    lines = shown(differences(0.6, 0.1, 0.1, 0.04, 0.0, 0.0, 0.0, -0.3))

    assert lines == [
        "Title",
        "",
        "queries by how much higher B is",
        "  beyond +0.5 █████████▍ 1",
        " +0.2 to +0.5 0",
        "+0.05 to +0.2 ██████████████████▋ 2",
        "   0 to +0.05 █████████▍ 1",
        "     the same ████████████████████████████ 3",
        "   0 to -0.05 0",
        "-0.05 to -0.2 0",
        " -0.2 to -0.5 █████████▍ 1",
        "  beyond -0.5 0",
        "new is worse in 1 query, better in 4 and the",
        "same in 3.",
    ]


def test_a_bar_is_there_for_what_is_there():
    """One query of thousands is not none."""
    lines = shown(differences(*[0.0] * 3000, 0.6))

    assert lines[3] == "  beyond +0.5 ▏ 1"


def test_intervals_stand_on_one_axis_with_the_line_of_no_difference():
    """Which of them leave it out is seen without reading a number."""
    rows = [
        IntervalRow("easy (10)", "", 0.2, Ends(0.1, 0.3)),
        IntervalRow("hard (5)", "", -0.1, None, is_second=True),
    ]

    lines = shown(IntervalRows("k", "t", rows, has_zero=True), width=52)

    assert lines[2:] == [
        "caption",
        "easy (10)     ┊   ─────●──── +0.200 [+0.100, +0.300]",
        "hard (5)  ○   ┊              -0.100",
        "          -0.1           0.3",
    ]


def test_means_over_time_are_a_sparkline_a_run():
    """What a night changed is told in a line, on one scale for all runs."""
    lines = [
        Line("dense", 0, [Point(0, 0.4), Point(1, 0.5), Point(3, 0.8)]),
        Line("bm25", 1, [Point(3, 0.6)]),
        Line("bm25", 1, [Point(0, 0.4), Point(3, 0.6)], is_dotted=True),
    ]

    drawn = shown(Chart("k", "t", "d", lines, [(0, "11-01")], [0.4, 0.6, 0.8]))

    assert drawn[3:] == [
        "dense ▁▃ █ 0.400 to 0.800",
        "bm25     ▅ 0.600 to 0.600",
        "4 evaluations; ▁ is 0.4, █ is 0.8",
    ]


def swept():
    """A chart of quality against tokens, as a sweep has it."""
    lines = [
        Line("200 characters", 0, [Point(500, 0.7), Point(1000, 0.8)]),
        Line("500 characters, overlap 100", 1, [Point(500, 0.6), Point(1000, 0.8)]),
        Line("its own size", 2, []),
    ]
    ticks = [(0, "0"), (500, "500"), (1000, "1,000")]
    names = ("tokens in the prompt, mean", "EvidenceR")
    return Chart("k", "t", "d", lines, ticks, [0.6, 0.7, 0.8], has_dots=True, axis_names=names)


def test_points_of_a_sweep_stand_between_two_axes_a_letter_a_line():
    """Which size finds more for the same tokens is seen in the terminal that swept."""
    assert shown(swept(), width=36)[2:] == [
        "caption",
        "EvidenceR",
        "0.8 ┊                              *",
        "    ┊",
        "    ┊",
        "0.7 ┊               a",
        "    ┊",
        "    ┊",
        "0.6 ┊               b",
        "     0              500        1,000",
        "          tokens in the prompt, mean",
        "a 200 characters; b 500 characters,",
        "overlap 100; * several",
    ]


@pytest.mark.parametrize("shows", [differences(0.6, -0.1), swept(), IntervalRows("k", "t", [
    IntervalRow("r", "", 0.5, Ends(0.4, 0.6)), IntervalRow("s", "", 0.5, None, is_second=True),
])])  # fmt: skip
def test_an_encoding_without_blocks_is_drawn_on_too(shows):
    """A log of a CI service or an old console shows escapes in their place otherwise."""
    assert "\n".join(shown(shows, marks=ASCII)).isascii()


def test_what_text_cannot_draw_is_left_out_and_notes_are_wrapped():
    """A scatter has its bars beside it; nobody reads a difference without who graded."""
    assert shown(None, width=20, notes=["Graded by offline-rules, a baseline."]) == [
        "Title",
        "Graded by",
        "offline-rules, a",
        "baseline.",
    ]


def test_names_of_data_cannot_steer_a_terminal():
    """A slice is named by what somebody put in a file."""
    rows = [IntervalRow("\x1b[31mred", "", 0.5, None)]

    assert "\x1b" not in "\n".join(shown(IntervalRows("k", "t", rows)))
