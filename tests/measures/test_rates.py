from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Difference, Rate, difference_of_means, least_share, mean_rate

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
