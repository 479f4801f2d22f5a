import pytest

from ragforge.evaluating.summary import summarise
from ragforge.report.page.comparison import MOST_BARS, Delta, Deltas, delta_chart, deltas_of


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
    assert "\u22120.50" in chart
