from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.distributions import student_sf
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import (
    Difference,
    Rate,
    Slope,
    difference_of_means,
    least_share,
    mean_rate,
    slope,
    wilson_interval,
)

relaxed = settings(deadline=None, max_examples=50)
values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=30)
missing = st.integers(0, 20)


def test_bounds_take_what_failed_at_its_worst_and_at_its_best():
    """Two of four values are 1; two more failed and one was never tried: 2 / 7 to 5 / 7."""
    found = mean_rate([1, 1, 0, 0], n_failed=2, n_absent=1)

    assert (found.mean, found.bounds) == (0.5, Ends(2 / 7, 5 / 7))
    assert (found.n, found.n_failed, found.n_absent) == (4, 2, 1)


def test_no_values_at_all_have_no_mean_and_no_bounds():
    """1.0 for no data would be a perfect score for a system that was never asked."""
    assert mean_rate([]) == Rate(None, None, None, 0)


def test_failures_alone_have_bounds_only():
    """All that is known then is that the mean lies in [0, 1]."""
    assert mean_rate([], n_failed=3) == Rate(None, None, Ends(0.0, 1.0), 0, 3)


def test_four_values_have_no_interval():
    """The bootstrap of so few is far too short: 0.49 and 0.50 would seem to settle it."""
    assert mean_rate([0.49, 0.5, 0.49, 0.5]).interval is None
    assert mean_rate([0.49, 0.5, 0.49, 0.5, 0.5]).interval is not None


def test_all_correct_is_not_certain_to_stay_so():
    """Five of five: Clopper and Pearson give 0.4782 to 1, where resamples know only 1."""
    found = mean_rate([1.0] * 5).interval

    assert (found.low, found.high) == pytest.approx((0.4781762, 1.0), abs=1e-7)


def test_all_half_right_may_lie_on_both_sides():
    """Those that were not seen may be 0 as well as 1."""
    share = least_share(8)

    found = mean_rate([0.5] * 8).interval

    assert (found.low, found.high) == pytest.approx((0.5 * share, 1 - 0.5 * share))


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_values_beyond_a_rate_are_refused(value):
    """The bounds would be wrong for them."""
    with pytest.raises(UsageError, match=r"expected values in \[0, 1\]"):
        mean_rate([0.5, value])


def test_a_value_that_is_no_number_is_refused():
    """NaN must not come out, so it must not go in."""
    with pytest.raises(DataError, match="finite"):
        mean_rate([0.5, float("nan")])


@relaxed
@given(values, missing, missing)
def test_bounds_hold_the_mean_and_stay_in_range(listed, n_failed, n_absent):
    """What is known of the whole cannot exclude what is known of a part."""
    found = mean_rate(listed, n_failed, n_absent)

    if found.bounds is not None:
        assert 0 <= found.bounds.low <= found.bounds.high <= 1
        assert found.mean is None or found.bounds.low - 1e-12 <= found.mean
        assert found.mean is None or found.mean <= found.bounds.high + 1e-12
    assert found.interval is None or 0 <= found.interval.low <= found.interval.high <= 1


def test_difference_joins_the_intervals_by_square_and_add():
    """Newcombe's method 10, with the intervals of the two means."""
    first, second = [1.0, 1.0, 0.0, 1.0, 0.5], [0.0, 0.5, 0.0, 1.0, 0.0]
    a, b = mean_rate(first), mean_rate(second)

    found = difference_of_means(first, second)

    assert found.mean == pytest.approx(-0.4)
    reach = sqrt((b.mean - b.interval.low) ** 2 + (a.interval.high - a.mean) ** 2)
    assert found.interval.low == pytest.approx(-0.4 - reach)


def test_difference_of_two_perfect_groups_is_not_certain():
    """Six of six in both groups say little about either."""
    found = difference_of_means([1.0] * 6, [1.0] * 6)

    assert found == Difference(0.0, Ends(least_share(6) - 1, 1 - least_share(6)))


@pytest.mark.parametrize(("first", "second"), [([], [0.5] * 5), ([0.5] * 5, [1.0] * 4)])
def test_difference_needs_five_values_in_each_group(first, second):
    """Four queries say next to nothing about others."""
    assert difference_of_means(first, second) is None


@relaxed
@given(values, values)
def test_difference_stays_in_range(first, second):
    """Means in [0, 1] cannot be further apart than 1."""
    found = difference_of_means(first, second)

    assert found is None or -1 <= found.interval.low <= found.mean <= found.interval.high <= 1


def test_the_interval_is_wilsons():
    """The figures are those of Newcombe 1998, Statistics in Medicine 17(8), table I."""
    found = wilson_interval(81, 263)

    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_rows_of_newcombe_come_out(k, n, low, high):
    """A published table is a check that no code of this house can share an error with."""
    found = wilson_interval(k, n)

    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_all_of_all_reaches_one():
    """Rounding must not leave the end of the scale out."""
    assert wilson_interval(7, 7).high == 1.0


def test_nothing_has_no_interval():
    """A share of nothing is not 0."""
    assert wilson_interval(0, 0) is None


def test_more_than_all_is_refused():
    """A counting error must not become an interval."""
    with pytest.raises(ValueError, match="expected 0 to 3, got 4"):
        wilson_interval(4, 3)


points = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), max_size=12)


def test_slope_and_p_of_five_points():
    """Sxy = 8, Sxx = 10, residuals 3.6: t = 0.8 / sqrt(0.12) = 2.3094 with 3 degrees of freedom."""
    found = slope([1, 2, 3, 4, 5], [2, 1, 4, 3, 5])

    assert found.slope == pytest.approx(0.8)
    assert found.p == pytest.approx(2 * student_sf(0.8 / sqrt(0.12), 3))
    assert found.p == pytest.approx(0.104088, abs=1e-6)


def test_a_straight_line_leaves_nothing_to_chance():
    """Without any scatter no other slope will do."""
    found = slope([1, 2, 3, 4], [2, 4, 6, 8])

    assert (found.slope, found.p) == (2.0, 0.0)


def test_equal_scores_have_no_slope():
    """That all is the same is no trend."""
    assert slope([1, 2, 3], [0.5, 0.5, 0.5]) == Slope(0.0, 1.0, 3)


@pytest.mark.parametrize(("x", "y"), [([], []), ([1, 2], [0, 1]), ([3, 3, 3], [0, 1, 0])])
def test_too_few_or_equal_lengths_have_none(x, y):
    """Two points always lie on a line, and points above each other on none."""
    assert slope(x, y) == Slope(None, None, len(x))


def test_lists_of_different_lengths_are_refused():
    """Pairs would slip by one."""
    with pytest.raises(UsageError, match="2 x and 1 y"):
        slope([1, 2], [1])


def test_a_length_that_is_no_number_is_refused():
    """The logarithm of an empty answer is none."""
    with pytest.raises(DataError, match="finite"):
        slope([1, float("-inf"), 2], [0, 0, 1])


@settings(deadline=None, max_examples=50)
@given(points)
def test_p_is_a_probability_and_blind_to_direction(listed):
    """Longer is not judged by another measure than shorter."""
    x, y = [a for a, _ in listed], [b for _, b in listed]
    found, mirrored = slope(x, y), slope(x, [-value for value in y])

    assert found.p is None or 0 <= found.p <= 1
    assert found.p == (None if mirrored.p is None else pytest.approx(mirrored.p))
