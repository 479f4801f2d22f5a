import re

import pytest

from ragforge.evaluating.summary import summarise
from ragforge.report.page.deltas import (
    MOST_BARS,
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
    return deltas_of(base, new)


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

    chart = delta_chart(Deltas("a", "b", items), "k").code

    assert 'class="worse" x="49.4" y="73.0"' in chart
    assert 'class="better" x="277.4" y="8.0"' in chart
    assert chart.count("<rect") == 2


def test_a_chart_of_many_queries_keeps_its_size_and_both_ends():
    """50,000 bars are no chart, and megabytes of a page."""
    items = [Delta(f"q{n}", 0.0, n / 50_000 - 0.5) for n in range(50_000)]

    chart = delta_chart(Deltas("a", "b", items), "k").code

    assert chart.count("<rect") <= MOST_BARS
    assert "-0.50" in chart


def test_points_above_the_diagonal_are_those_in_which_b_is_better(found):
    """A scatter that is turned round names the wrong winner."""
    items = [Delta("q1", 0.2, 0.9), Delta("q2", 0.9, 0.2)]

    drawn = scatter(Deltas("a", "b", items), {"q1": "One?"}, "k").code

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

    assert scatter(Deltas("a", "b", items), {}, "k").code.count("<circle") == MOST_POINTS
