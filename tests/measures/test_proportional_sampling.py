import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.errors import UsageError
from ragforge.measures.proportional_sampling import inclusion_probabilities, systematic_draw


@pytest.mark.parametrize(
    ("sizes", "n", "expected"),
    [
        ([1, 1, 1, 1], 2, [0.5, 0.5, 0.5, 0.5]),
        # Of 10, two draws: 1 has 2/10, 4 has 8/10, 5 has 10/10 and so is certain; what is left
        # shares one draw by 1 to 4.
        ([1, 4, 5], 2, [0.2, 0.8, 1.0]),
        # 8 is certain; the other two share what is left.
        ([1, 8, 1], 2, [0.5, 1.0, 0.5]),
        ([3, 1], 2, [1.0, 1.0]),
        ([3, 1], 9, [1.0, 1.0]),
        ([3, 1], 0, [0.0, 0.0]),
        ([], 3, []),
    ],
)
def test_probabilities_by_hand(sizes, n, expected):
    """A weight is one over such a probability: a wrong one moves every mean."""
    assert inclusion_probabilities(sizes, n).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("sizes", "n"), [([1, 0], 1), ([1, -1], 1), ([1, float("inf")], 1)])
def test_sizes_that_cannot_be_are_refused(sizes, n):
    """Nothing could be drawn in proportion to them."""
    with pytest.raises(UsageError, match="expected sizes above 0"):
        inclusion_probabilities(sizes, n)


def test_a_draw_by_hand():
    """Ends at .5, 1, 1.5, 2; the points .25 and 1.25 lie in the first and in the third."""
    assert systematic_draw(np.array([0.5, 0.5, 0.5, 0.5]), 0.25).tolist() == [0, 2]


@given(
    st.lists(st.integers(1, 1000), min_size=1, max_size=60),
    st.integers(0, 70),
    st.floats(0, 1, exclude_max=True),
)
def test_as_many_are_drawn_as_asked_for_and_none_twice(sizes, n, start):
    """Two hundred are two hundred."""
    drawn = systematic_draw(inclusion_probabilities(sizes, n), start).tolist()

    assert len(set(drawn)) == len(drawn) == min(n, len(sizes))


def test_each_is_drawn_as_often_as_its_probability_says():
    """Over all starts, which are uniform; else the recorded weights would be wrong."""
    probabilities = np.array([0.25, 1.0, 0.5, 0.75, 0.5])
    times = np.zeros(5)

    for step in range(1000):
        times[systematic_draw(probabilities, (step + 0.5) / 1000)] += 1

    assert (times / 1000).tolist() == probabilities.tolist()
