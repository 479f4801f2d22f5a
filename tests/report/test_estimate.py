from ragforge.report.estimate import Estimate, counts, estimate, with_n
from ragforge.report.shown import MISSING


def test_failures_widen_the_bounds_and_leave_the_mean():
    """A failure is never a value, and it is never hidden."""
    assert estimate([1.0, 0.0, None, None]) == Estimate(0.5, 2, 2, 0.25, 0.75)


def test_all_failed_has_no_mean():
    """Nothing is known then, and 0 would claim the opposite."""
    assert estimate([None, None]) == Estimate(None, 0, 2, 0.0, 1.0)
    assert str(estimate([None, None])) == MISSING


def test_nothing_has_no_mean_and_no_bounds():
    """The mean of nothing is not 0."""
    assert estimate([]) == Estimate(None, 0, 0, None, None)


def test_bounds_are_printed_only_where_something_failed():
    """Bounds that equal the mean are noise."""
    assert str(estimate([0.5, 1.0])) == "0.750"
    assert str(estimate([0.5, None])) == "0.500 [0.250, 0.750]"


def test_absent_values_widen_the_bounds_like_failures_and_are_none():
    """What nobody tried to get is unknown, but it did not fail."""
    assert estimate([1.0, None], n_absent=2) == Estimate(1.0, 1, 1, 0.25, 1.0, n_absent=2)
    assert estimate([], n_absent=3) == Estimate(None, 0, 0, 0.0, 1.0, n_absent=3)


def test_mean_over_a_part_says_of_how_many():
    """n alone does not show that most of the set is missing."""
    assert with_n(estimate([0.0], n_absent=7)) == "0.000 [0.000, 0.875] (n 1 of 8)"
    assert counts(estimate([0.0, None], n_absent=7)) == "n 1 of 9, 1 failed"
    assert counts(estimate([0.0, None])) == "n 1, 1 failed"
