import pytest

from ragforge.errors import UsageError
from ragforge.measures.capture_recapture import TwoSamples, completeness, completeness_by_two
from ragforge.measures.intervals import Ends


def test_chunks_found_once_tell_of_those_not_found():
    """Worked by hand: five found, three of them once and one twice, by three probes."""
    found = completeness([[1, 1, 2], [1, 3]], 3)

    assert found.n_found == 5
    assert found.n_missing == pytest.approx(2 / 3 * 3 * 2 / (2 * (1 + 1)))
    assert found.share == pytest.approx(5 / 6)


def test_two_probes_tell_by_what_they_share():
    """Worked by hand: 5 x 4 / 3 - 1 chunks in all, of which five were found."""
    found = completeness_by_two([TwoSamples(3, 2, 1), TwoSamples(1, 1, 1)])

    assert (found.n_found, found.share) == (5, pytest.approx(5 / (20 / 3 - 1)))
    assert found.n_missing == pytest.approx(20 / 3 - 6)


@pytest.mark.parametrize(
    "found",
    [
        completeness([], 3),
        completeness([[], []], 3),
        completeness([[1, 1]], 1),
        completeness_by_two([TwoSamples(0, 4, 0)]),
        completeness_by_two([]),
    ],
)
def test_what_cannot_be_told_is_no_number(found):
    """One probe alone never finds anything twice, however complete it is."""
    assert (found.share, found.interval, found.n_missing) == (None, None, None)


@pytest.mark.parametrize(
    "found",
    [completeness([[3, 2]] * 10, 3), completeness_by_two([TwoSamples(2, 2, 2)] * 10)],
)
def test_ten_queries_without_a_miss_are_no_proof(found):
    """Ten of ten are seen in one of forty sets of which a third of the queries has a miss."""
    assert (found.share, found.n_missing) == (1.0, 0.0)
    assert found.interval == Ends(pytest.approx(0.025 ** (1 / 10)), 1.0)


def test_few_queries_give_no_interval():
    """Resamples of four queries are far too much alike."""
    assert completeness([[1, 2]] * 4, 2).interval is None
    assert completeness([[1, 2]] * 4 + [[]] * 9, 2).interval is None


@pytest.mark.parametrize(
    "found",
    [
        completeness([[1, 2, 3], [1, 1], [2], [], [1, 3], [2, 2]] * 3, 3),
        completeness_by_two([TwoSamples(3, 2, 1), TwoSamples(1, 2, 1), TwoSamples(0, 1, 0)] * 6),
    ],
)
def test_an_interval_holds_its_estimate(found):
    """It is about the queries: others would have shown more misses, or fewer."""
    assert 0 < found.interval.low < found.share < found.interval.high <= 1


def test_the_same_figures_come_each_time():
    """Resamples are drawn with a seed."""
    queries = [[1, 2, 3], [1, 1], [2], [1, 3], [2, 2]] * 3

    assert completeness(queries, 3) == completeness(queries, 3)
    assert completeness(queries, 3).interval != completeness(queries, 3, seed=1).interval


def test_no_probe_makes_fewer_chunks_than_were_found():
    """Two disjoint finds cannot show less than both together."""
    assert completeness_by_two([TwoSamples(5, 5, 5)]).n_missing == 0.0


def test_queries_that_are_all_alike_give_no_interval():
    """They show no spread, and so nothing of what other queries would."""
    found = completeness([[1, 2]] * 10, 2)

    assert (found.n_missing, found.interval) == (pytest.approx(0.5 * 10 * 9 / 22), None)


@pytest.mark.parametrize("count", [0, 4])
def test_a_count_beyond_the_probes_is_refused(count):
    """Such a chunk was counted wrongly, and so were others."""
    with pytest.raises(UsageError, match=f"found by {count} probes; expected 1 to 3"):
        completeness([[1], [count]], 3)


def test_more_in_both_than_in_one_is_refused():
    """The estimate would come out too low, silently."""
    with pytest.raises(UsageError, match="expected 0 to 1 chunks in both samples, got 2"):
        completeness_by_two([TwoSamples(1, 3, 2)])
