from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.runs import Estimate, counts, with_counts, with_interval
from ragforge.measures.intervals import Ends

FAILED_HALF = Estimate(0.5, 1, 1, 0.25, 0.75)


def test_all_failed_has_no_mean():
    """Nothing is known then, and 0 would claim the opposite."""
    assert str(Estimate(None, 0, 2, 0.0, 1.0)) == MISSING


def test_bounds_are_printed_only_where_something_failed():
    """Bounds that equal the mean are noise."""
    assert str(Estimate(0.75, 2, 0, 0.75, 0.75)) == "0.750"
    assert str(FAILED_HALF) == "0.500 [0.250, 0.750]"


def test_a_mean_says_what_is_behind_it():
    """One of two queries failed: n alone would not show it."""
    assert with_counts(FAILED_HALF) == "0.500 [0.250, 0.750] (n 1, 1 with failures)"
    assert with_counts(Estimate(0.75, 2, 0, 0.75, 0.75)) == "0.750"
    assert counts(FAILED_HALF, "with failures") == "n 1, 1 with failures"
    assert counts(Estimate(0.75, 2, 0, 0.75, 0.75)) == "n 2"


def test_interval_and_bounds_are_told_apart():
    """One is of queries like these, the other of what failed: both in one bracket would mislead."""
    found = Estimate(0.5, 9, 1, 0.4, 0.6, Ends(0.3, 0.7))

    assert with_interval(found) == "0.500 (0.300 to 0.700) [0.400, 0.600]"
