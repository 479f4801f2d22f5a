from math import inf, nan

import numpy as np
import pytest

from ragforge.errors import DataError, UsageError
from ragforge.measures.checked_samples import differences, is_constant, lattice_cells, sample


@pytest.mark.parametrize(
    "values", [[0.5, nan], [inf], [1, -1e101], ["good"], [None], [[1, 2], [3]], [[0.5]], 3.0]
)
def test_values_that_are_no_numbers_are_refused(values):
    """One NaN would make every statistic NaN, without a word of where it came from."""
    with pytest.raises(DataError, match="values: "):
        sample(values)


def test_the_message_says_which_value_is_wrong():
    """A column has thousands."""
    with pytest.raises(DataError, match=r"baseline: value 2: expected a finite number .* got nan"):
        differences([0, 1, nan], [0, 1, 1])


def test_lengths_must_agree():
    """Values of other queries would be paired with one another."""
    with pytest.raises(UsageError, match="got 2 for the baseline and 3 for the candidate"):
        differences([0, 1], [0, 1, 1])


def test_float_noise_is_no_difference():
    """0.1 + 0.2 against 0.3 is a tie and not a win."""
    assert differences([0.3, 0.5], [0.1 + 0.2, 0.75]).tolist() == [0.0, 0.25]


def test_arguments_are_left_as_they_are():
    """The caller's column goes into other statistics."""
    baseline, candidate = np.array([0.3, 0.5]), np.array([0.1 + 0.2, 0.5])

    differences(baseline, candidate)

    assert candidate.tolist() == [0.1 + 0.2, 0.5]


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([0.0, 1.0, 1.0], 1),
        ([0.0, 0.2, 0.4, 1.0], 5),
        ([0.0, 0.30000000000000004, 0.1], 3),
        ([3, 5, 20], 20),
        ([1 / rank for rank in range(1, 11)], 2520),
        ([0.1, 0.2357, 0.71828182845], None),
        ([1 / 5039, 1 / 5038, 1.0], None),
    ],
)
def test_lattices_are_found(offsets, expected):
    """On them the statistics are exact."""
    assert lattice_cells(np.array(offsets, dtype=float)) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], False), ([2.0], True), ([0.3, 0.1 + 0.2], True), ([0.0, 1e-200], False)],
)
def test_constant_values_are_told(values, expected):
    """A spread of float noise divides to an enormous t."""
    assert is_constant(np.array(values, dtype=float)) is expected
