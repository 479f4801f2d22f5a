"""Intervals of bounded values that allow for what nobody saw."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.errors import UsageError
from ragforge.measures import evaluate
from ragforge.measures.intervals import Ends, mean_interval
from ragforge.measures.unseen_values import (
    allowing_for_unseen,
    bounded_interval,
    difference_interval,
    interval_by_measure,
)

NDCG = np.random.default_rng(5).beta(2.5, 1.2, 70)


def at_least(k, n, share):
    """Return the probability of k or more of n."""
    return sum(comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(k, n + 1))


@pytest.mark.parametrize(("k", "n"), [(24, 25), (49, 50), (3, 25), (20, 40), (980, 1000)])
def test_of_zeros_and_ones_it_is_that_of_clopper_and_pearson(k, n):
    """At its low end so many ones have a probability of 2.5 %, at its high end so few have."""
    found = bounded_interval([1] * k + [0] * (n - k))

    assert at_least(k, n, found.low) == pytest.approx(0.025, abs=1e-8)
    assert 1 - at_least(k + 1, n, found.high) == pytest.approx(0.025, abs=1e-8)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999, 0.999999])
def test_all_ones_may_come_from_a_share_below_one(level):
    """Twenty-five of twenty-five do not show that there is no other query."""
    found = bounded_interval([1.0] * 25, level)

    assert (found.low, found.high) == pytest.approx((((1 - level) / 2) ** (1 / 25), 1.0))


def test_equal_values_between_the_bounds_have_width_on_both_sides():
    """By hand: 0.025 ** (1 / 30) of the queries are surely 0.5, the others anything."""
    known = 0.025 ** (1 / 30)
    found = bounded_interval([0.5] * 30)

    assert (found.low, found.high) == pytest.approx((known / 2, 1 - known / 2))


def test_values_that_are_nearly_all_equal_are_nearly_as_uncertain():
    """One 0.5 among ones must not make them surer than ones alone."""
    found = bounded_interval([1.0] * 28 + [0.5])

    assert found.low < bounded_interval([1.0] * 29).low
    assert found.low < mean_interval([1.0] * 28 + [0.5]).low - 0.05


def test_an_ordinary_spread_keeps_the_usual_interval():
    """Guarding against what the values rule out would cost queries for nothing."""
    found, usual = bounded_interval(NDCG), mean_interval(NDCG)

    assert (found.low, found.high) == (usual.low, usual.high)


def test_thousands_of_distinct_values_are_guarded_too():
    """Values that crowd near 1 leave room for a rare 0 however many digits they have."""
    values = 1 - np.random.default_rng(5).random(3000) / 1e4
    found = bounded_interval(values)

    assert found.low == pytest.approx(0.025 ** (1 / 3000), abs=1e-3)


def test_a_share_of_one_in_twenty_is_held_by_the_low_end():
    """Of 25 queries with a true mean of 0.95, all are right 28 times in 100: no proof of it."""
    rights = np.random.default_rng(3).binomial(25, 0.95, 400).tolist()
    ends = {k: bounded_interval([1] * k + [0] * (25 - k)).low for k in set(rights)}

    assert np.mean([ends[k] > 0.95 for k in rights]) <= 0.025


@pytest.mark.slow
def test_rare_middling_values_are_held_by_the_low_end():
    """Nine in ten have 1, the others 0.5 or 0: BCa is above their mean 7 times in 100."""
    generator = np.random.default_rng(3)
    draws = generator.choice([1.0, 0.5, 0.0], (400, 25), p=[0.9, 0.05, 0.05])
    lows = [bounded_interval(draw).low for draw in draws]

    assert np.mean([low > 0.925 for low in lows]) <= 0.025


@pytest.mark.slow
@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]) | st.floats(0, 1), min_size=2))
def test_it_holds_the_mean_and_stays_within_the_bounds(values):
    """Whatever the values, an interval that leaves their mean out is none."""
    found = bounded_interval(values)

    assert 0 <= found.low <= found.mean <= found.high <= 1
    assert found.low < found.high


def test_values_beyond_the_bounds_are_refused():
    """The guard would be no guard for them."""
    with pytest.raises(UsageError, match=r"expected values in \[0, 1\]"):
        bounded_interval([0.0, 2.0])


@pytest.mark.parametrize("values", [[], [0.5]])
def test_fewer_than_two_values_have_no_ends(values):
    """One query tells nothing about others."""
    assert bounded_interval(values).low is None


@pytest.mark.parametrize("measure", ["DCG@10", "NumRet"])
def test_equal_values_of_a_measure_without_bounds_have_no_ends(measure):
    """Nothing tells how far others lie."""
    found = interval_by_measure(measure, [3.0, 3.0, 3.0])

    assert (found.mean, found.low, found.high) == (3.0, None, None)


def test_scores_allow_for_what_nobody_saw():
    """What evaluate prints is what a gate decides on."""
    qrels = {f"q{n}": {"d": 1} for n in range(30)}
    found = evaluate(qrels, {query: ["d"] for query in qrels}, ["Success@5"]).interval("Success@5")

    assert found.low == pytest.approx(0.025 ** (1 / 30))


def test_differences_with_an_ordinary_spread_keep_the_wider_of_both():
    """The guard must not take the power away from most comparisons."""
    found = np.random.default_rng(2).normal(0.05, 0.15, 43).clip(-1, 1)
    student = mean_interval(found, 0.95, "student")

    assert difference_interval(found, 0.95, bounded=True) == difference_interval(
        found, 0.95, bounded=False
    )
    assert difference_interval(found, 0.95, bounded=True).low <= student.low


@pytest.mark.parametrize("better", [[1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.5]])
def test_a_worse_value_of_few_never_lifts_an_end(better):
    """A gate would let the worse run pass: 1 and 0.5 had the low end 0.5, 1 and 1 have 0.158."""
    worse = [*better[:-1], better[-1] / 2]

    of_better, of_worse = bounded_interval(better), bounded_interval(worse)

    assert of_worse.low < of_better.low
    assert of_worse.high <= of_better.high


def test_estimates_that_hardly_spread_allow_for_what_nobody_saw():
    """Two queries with the same difference do not make a winner, whoever graded them."""
    alike, none = np.array([2.0, 2.0]), Ends(2.0, 2.0)

    found = allowing_for_unseen(alike, none, Ends(-2.0, 2.0), 0.95)

    at_most_one = difference_interval(alike / 2, 0.95, bounded=True)
    assert (found.low / 2, found.high) == pytest.approx((at_most_one.low, 2.0))


def test_estimates_with_an_ordinary_spread_keep_their_ends():
    """Estimates from a sample may lie beyond what a value can be, and show that they spread."""
    values = np.random.default_rng(3).normal(0.4, 0.4, 43)
    usual = Ends(0.3, 0.5)

    assert allowing_for_unseen(values, usual, Ends(0.0, 1.0), 0.95) == usual
