from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.distributions import student_sf
from ragforge.measures.rates import Slope, slope

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
