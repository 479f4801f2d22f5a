"""What a difference of means could be where values are missing."""

from itertools import product

import pytest

from ragforge.measures.comparing import RunPair, compare_pairs
from ragforge.measures.intervals import Ends
from ragforge.measures.missing_values import mean_difference_bounds, stays_worse
from ragforge.measures.strata import Design

A = {"q1": 0.2, "q2": 0.4, "q3": 0.9}
B = {"q1": 0.5, "q2": 0.1}


def test_nothing_missing_leaves_nothing_open():
    """Bounds around a known difference would only confuse."""
    assert mean_difference_bounds(A, A, A.keys()) is None


@pytest.mark.parametrize("design", [None, Design({"q1": "x", "q2": "x", "q3": "y", "q4": "y"})])
def test_bounds_are_the_extremes_over_every_value_that_is_missing(design):
    """One side may lack a value, or both."""
    asked = ["q1", "q2", "q3", "q4"]
    found = mean_difference_bounds(A, B, asked, design)
    weights = dict(zip(asked, design.stratified(asked).weights, strict=True)) if design else {}
    means = []
    for a4, b3, b4 in product((0.0, 0.3, 1.0), repeat=3):
        of_a, of_b = {**A, "q4": a4}, {**B, "q3": b3, "q4": b4}
        differences = {key: of_b[key] - of_a[key] for key in asked}
        means.append(sum(differences[key] * weights.get(key, 0.25) for key in asked))

    assert (found.low, found.high) == pytest.approx((min(means), max(means)))


def test_without_a_common_value_all_is_open():
    """Nothing was compared."""
    assert mean_difference_bounds({}, {}, ["q1", "q2"]) == Ends(-1.0, 1.0)


def test_worse_is_what_no_missing_value_could_save():
    """Failures must not make a loser."""
    [worse] = compare_pairs([RunPair("a", "b", "RR", [1.0] * 20, [0.0, 0.1] * 10)])
    [better] = compare_pairs([RunPair("a", "b", "RR", [0.0, 0.1] * 10, [1.0] * 20)])

    assert stays_worse(worse, None)
    assert stays_worse(worse, Ends(-0.9, -0.1))
    assert not stays_worse(worse, Ends(-0.9, 0.0))
    assert not stays_worse(better, None)
    assert not stays_worse(None, None)
