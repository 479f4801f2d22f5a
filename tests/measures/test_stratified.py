"""Intervals and tests of what a stratified sample estimates."""

from math import sqrt

import numpy as np
import pytest

from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.measures.power import detectable_by_error
from ragforge.measures.strata import Stratified
from ragforge.measures.stratified import (
    sample_difference_interval,
    sample_error,
    sample_interval,
    sample_t_p,
    scaled,
    set_error,
    set_interval,
)
from ragforge.measures.unseen_values import difference_interval, interval_by_measure

VALUES = [1.0, 0.0, 1.0, 0.5, 0.0]
DRAWN = Stratified(("a", "a", "a", "b", "b"), {"a": 6, "b": 4})
"""3 of 6 and 2 of 4: each weighs 0.2."""
MANY = [0.1 * (n % 11) for n in range(40)]
WHOLE = Stratified(("a",) * 30 + ("b",) * 10, {"a": 30, "b": 10})
PART = Stratified(("a",) * 30 + ("b",) * 10, {"a": 300, "b": 100})


def test_the_error_of_the_set_is_that_of_its_strata():
    """With 0.25 of all values: (2 · 1/3 + 0.25)/3 = 0.3056 of a, (1/8 + 0.25)/2 = 0.1875 of b.

    0.6² · 1/2 · 0.3056/3 + 0.4² · 1/2 · 0.1875/2 = 0.018333 + 0.0075.
    """
    assert set_error(VALUES, DRAWN).error == pytest.approx(sqrt(0.0183333 + 0.0075), abs=1e-6)


def test_the_degrees_of_freedom_are_those_of_satterthwaite():
    """Of 0, 1 and 0, 1 (variance 1/3 each), 0.9 and 0.1 of a set: (w₁ + w₂)² / (w₁²/2 + w₂²/2).

    w₁ = 0.81 · 88/90 and w₂ = 0.01 · 8/10, each times the same: 0.8² / (0.792²/2 + 0.008²/2).
    """
    drawn = Stratified(("a", "a", "b", "b"), {"a": 90, "b": 10})

    found = set_error([0.0, 1.0, 0.0, 1.0], drawn).degrees

    assert found == pytest.approx(0.8**2 / (0.792**2 / 2 + 0.008**2 / 2))


def test_the_error_over_queries_like_these_adds_that_of_the_set_itself():
    """The values have the variance 0.25, a set of ten so much as 0.025 more."""
    error = sqrt(0.0183333 + 0.0075 + 0.025)

    assert sample_error(VALUES, DRAWN).error == pytest.approx(error, abs=1e-6)


def test_one_value_of_a_stratum_has_the_variance_of_all():
    """0.5² · 1/2 · v for each of two, where v = 2/1 · (1/2 · 0.25 + 1/2 · 0.25) = 0.5."""
    drawn = Stratified(("a", "b"), {"a": 2, "b": 2})

    assert set_error([0.0, 1.0], drawn).error == pytest.approx(sqrt(2 * 0.25 * 0.5 * 0.5))


def test_a_sample_without_strata_has_the_usual_error():
    """s/√n: what is left of the set and the set itself add up to that."""
    drawn = Stratified(("a",) * 40, {"a": 400})
    error = np.std(MANY, ddof=1) / sqrt(40)

    assert sample_error(MANY, drawn).error == pytest.approx(error)


def test_equal_values_of_each_stratum_do_not_settle_the_mean_of_the_set():
    """Two of each of two strata say little of the other 96."""
    drawn = Stratified(("a", "a", "b", "b"), {"a": 50, "b": 50})
    found = set_interval("RR", [1.0, 1.0, 0.5, 0.5], drawn)

    assert found.high - found.low > 0.2


def test_the_whole_set_has_the_usual_interval():
    """A sample of everything is no sample."""
    assert sample_interval("nDCG@10", MANY, WHOLE) == interval_by_measure("nDCG@10", MANY, 0.95)


def test_the_whole_set_has_the_usual_interval_of_a_difference():
    """As for means."""
    found = np.array(MANY) - 0.5
    usual = difference_interval(found, 0.95, bounded=True)

    assert sample_difference_interval(found, WHOLE, 0.95, bounded=True) == usual


def test_the_mean_of_a_set_that_was_asked_whole_is_known():
    """Nothing is left to be drawn."""
    found = set_interval("nDCG@10", MANY, WHOLE)

    assert (found.low, found.high) == (found.mean, found.mean)


def test_a_sample_never_knows_more_than_as_many_queries():
    """The interval over queries like these must not shrink because there are others."""
    found, usual = sample_interval("RR", MANY, PART), interval_by_measure("RR", MANY, 0.95)

    assert found.high - found.low >= 0.97 * (usual.high - usual.low)


@pytest.mark.parametrize("values", [[1.0] * 40, [0.0] * 40])
def test_equal_values_leave_open_what_was_not_drawn(values):
    """Forty hits of 400 do not show that the other 360 are hits."""
    found = set_interval("Success@5", values, PART)

    assert found.high - found.low > 0.05


def test_the_interval_of_the_set_lies_within_that_over_queries_like_these():
    """The second allows for one thing more."""
    of_set, of_all = set_interval("RR", MANY, PART), sample_interval("RR", MANY, PART)

    assert of_all.low <= of_set.low < of_set.high <= of_all.high


def test_scaled_values_have_the_stratified_mean():
    """0.9 · 1 + 0.1 · 0.5, as sign flips need it."""
    drawn = Stratified(("a", "a", "b", "b"), {"a": 90, "b": 10})

    assert scaled([1.0, 1.0, 0.0, 1.0], drawn).mean() == pytest.approx(0.95)


def test_no_difference_has_a_p_of_1():
    """As in the paired t test."""
    assert sample_t_p(np.zeros(5), DRAWN) == 1.0


def test_a_comparison_is_of_the_set():
    """B gains 1 in a tenth of the set and loses 0.5 in the rest: -0.35, and not +0.25."""
    drawn = Stratified(("a", "a", "b", "b"), {"a": 90, "b": 10})
    pair = RunPair("A", "B", "RR", [1.0, 1.0, 0.0, 0.0], [0.5, 0.5, 1.0, 1.0], drawn=drawn)

    [found] = compare_pairs([pair])

    assert (found.mean_a, found.mean_b, found.diff) == pytest.approx((0.9, 0.55, -0.35))


def test_a_sample_shows_what_its_own_standard_error_allows():
    """One stratum weighs 0.882 by two of its ten values, so that ten queries tell as much as two.

    Ten values with the plain standard deviation 0.36 would show 0.360, within the interval.
    """
    drawn = Stratified(
        ("a",) * 2 + ("b",) * 2 + ("c",) * 2 + ("d",) * 2 + ("e",) * 2,
        {"a": 60, "b": 2, "c": 2, "d": 2, "e": 2},
    )
    better = [1.0] * 10
    [found] = compare_pairs([RunPair("x", "y", "RR", [1.0] * 2 + [1 / 7] * 8, better, drawn=drawn)])

    off = sample_error([0.0] * 2 + [6 / 7] * 8, drawn)
    assert found.interval.high - found.diff > 0.49
    assert found.power.detectable == pytest.approx(detectable_by_error(off.error, off.degrees))
    assert found.power.detectable > found.interval.high - found.diff
    assert found.power.n_for_half is None
