import re

import pytest

from ragforge.evaluating.summary import summarise
from ragforge.report.page.deltas import (
    MOST_BARS,
    MOST_LISTED,
    MOST_POINTS,
    Delta,
    Deltas,
    delta_chart,
    deltas_of,
    scatter,
)


@pytest.fixture
def found(many_queries):
    """The differences of a run that found all at rank 2 from one that found all at rank 1."""
    base, new = summarise(many_queries(4)).table.records.runs
    return deltas_of(base, new, "nDCG@10")


def test_the_greatest_loss_comes_first(found):
    """A list of regressions is read from its top."""
    assert [item.query_id for item in found.items] == ["q0000", "q0001", "q0002", "q0003"]
    assert found.items[0].diff == pytest.approx(1 / 1.584962500721156 - 1)


def test_differences_are_counted_in_words(found):
    """The chart is for the eye; its counts are for all."""
    assert found.in_words() == "new is worse in 4 queries, better in 0 and the same in 0."


def test_losses_hang_below_the_line_and_gains_stand_above_it():
    """Red and green alone would tell nothing to many."""
    items = [Delta("q1", 1.0, 0.5), Delta("q2", 0.5, 0.5), Delta("q3", 0.0, 0.5)]

    chart = delta_chart(Deltas("a", "b", items, "nDCG@10"), "k").code

    assert 'class="worse" x="49.4" y="73.0"' in chart
    assert 'class="better" x="277.4" y="8.0"' in chart
    assert chart.count("<rect") == 2


def test_a_chart_of_many_queries_keeps_its_size_and_both_ends():
    """50,000 bars are no chart, and megabytes of a page."""
    items = [Delta(f"q{n}", 0.0, n / 50_000 - 0.5) for n in range(50_000)]

    chart = delta_chart(Deltas("a", "b", items, "nDCG@10"), "k").code

    assert chart.count("<rect") <= MOST_BARS
    assert "-0.50" in chart


def test_points_above_the_diagonal_are_those_in_which_b_is_better(found):
    """A scatter that is turned round names the wrong winner."""
    items = [Delta("q1", 0.2, 0.9), Delta("q2", 0.9, 0.2)]

    drawn = scatter(Deltas("a", "b", items, "nDCG@10"), {"q1": "One?"}, "k").code

    better, worse = (drawn.split(f'class="{tone}" ')[1] for tone in ("better", "worse"))
    place = re.compile(r'cx="([\d.]+)" cy="([\d.]+)"')
    (x1, y1), (x2, y2) = (map(float, place.search(text).groups()) for text in (better, worse))
    assert x1 < x2
    assert y1 < y2
    assert 'href="#q=q1"' in drawn
    assert "One?: A 0.200, B 0.900" in drawn


def test_a_scatter_of_many_queries_keeps_its_size():
    """50,000 points are a blot."""
    items = [Delta(f"q{n}", n / 50_000, 0.5) for n in range(50_000)]

    assert scatter(Deltas("a", "b", items, "nDCG@10"), {}, "k").code.count("<circle") == MOST_POINTS


@pytest.fixture
def thousands():
    """Differences of 3,000 queries, from a loss of 0.5 to a gain of 0.5."""
    items = [Delta(f"q{n:04}", 0.5, n / 2999) for n in range(3000)]
    return Deltas("a", "b", items, "nDCG@10")


def test_queries_that_moved_most_always_have_a_point(thousands):
    """Whoever looks for a query of the list of losses among the points has to find it."""
    drawn = scatter(thousands, {}, "k").code

    listed = [*thousands.items[:MOST_LISTED], *thousands.items[-MOST_LISTED:]]
    assert [item.query_id for item in listed if f'href="#q={item.query_id}"' not in drawn] == []
    assert drawn.count("<circle") == MOST_POINTS


def test_bars_of_many_queries_begin_and_end_with_those_that_moved_most(thousands):
    """The greatest loss first, as the caption says."""
    heights = re.findall(r'<rect[^>]* height="([\d.]+)"', delta_chart(thousands, "k").code)

    assert heights[:3] == ["65.0", "65.0", "64.9"]
    assert heights[-3:] == ["64.9", "65.0", "65.0"]
    assert len(heights) == MOST_BARS


def test_charts_of_many_queries_say_how_many_they_draw(thousands):
    """A point a query would be 3,000 of them."""
    among = "of 3,000 queries, the largest differences among them"

    assert thousands.points_in_words() == f"400 {among}"
    assert thousands.bars_in_words() == f"176 {among}"
    assert f"176 {among}" in delta_chart(thousands, "k").code
    assert f"400 {among}" in scatter(thousands, {}, "k").code


def test_charts_of_few_queries_draw_them_all(found):
    """What is complete needs no number."""
    assert found.points_in_words() == "one point a query"
    assert found.bars_in_words() == "one bar a query"
