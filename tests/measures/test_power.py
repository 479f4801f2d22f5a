from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.distributions import normal_quantile, student_quantile
from ragforge.measures.power import (
    EffectSize,
    achieved_power,
    detectable_difference,
    effect_size,
    queries_for_distance,
    queries_needed,
    shown_chance,
    shown_difference,
    shown_distance,
)
from ragforge.measures.unseen_values import ends_by_measure

relaxed = settings(deadline=None, max_examples=30)


# 1 - nct.cdf(c, n - 1, shift) + nct.cdf(-c, n - 1, shift), c = t.ppf(1 - alpha / 2, n - 1) and
# shift = difference / sd * sqrt(n), with scipy.stats of scipy 1.17.1.
@pytest.mark.parametrize(
    ("difference", "sd", "n", "alpha", "expected"),
    [
        (0.05, 0.3, 200, 0.05, 0.6501383364555897),
        (0.1, 0.3, 50, 0.01, 0.38272901228145373),
        (-0.5, 0.3, 2, 0.05, 0.14710433068679232),
    ],
)
def test_power_equals_scipy(difference, sd, n, alpha, expected):
    """It tells whether an evaluation set can answer the question at all."""
    assert achieved_power(difference, sd, n, alpha) == pytest.approx(expected, abs=1e-12)


def test_queries_needed_equal_the_textbook():
    """Cohen's medium effect of 0.5 needs 34 pairs for a power of 0.8 (G*Power, paired t)."""
    assert queries_needed(0.5, 1.0) == 34


@relaxed
@given(st.integers(2, 5000), st.sampled_from([0.01, 0.05]), st.floats(0.1, 0.99))
def test_detectable_difference_has_the_wished_power(n, alpha, power):
    """The two functions are inverse."""
    found = detectable_difference(0.3, n, alpha, power)

    assert achieved_power(found, 0.3, n, alpha) == pytest.approx(power, abs=1e-9)


@relaxed
@given(st.floats(0.02, 2), st.floats(0.5, 0.95))
def test_queries_needed_are_the_least(difference, power):
    """One query fewer would not do."""
    n = queries_needed(difference, 0.3, power=power)

    assert achieved_power(difference, 0.3, n) >= power
    assert n == 2 or achieved_power(difference, 0.3, n - 1) < power


def test_effect_sizes_by_hand():
    """Differences 1, 2, 3: mean 2, sd 1; Hedges' factor for 2 degrees is 1 over the root of pi."""
    found = effect_size([0, 0, 0], [1, 2, 3])

    assert found == EffectSize(pytest.approx(2.0), pytest.approx(2 / 3.141592653589793**0.5), 1.0)


def test_rank_biserial_by_hand():
    """Ranks 1 and 3 speak for, rank 2 against: (4 - 2) / 6."""
    assert effect_size([0, 0, 0], [1, -2, 3]).rank_biserial == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ([], (None, None, None)),
        ([0.5], (None, None, 1.0)),
        ([0.0], (None, None, 0.0)),
        ([0.0, 0.0], (0.0, None, 0.0)),
        ([0.0, 0.0, 0.0], (0.0, 0.0, 0.0)),
        ([0.5, 0.5, 0.5], (None, None, 1.0)),
    ],
)
def test_degenerate_effects_are_defined(candidate, expected):
    """None says that there is no number, and 0 that there is no effect."""
    assert effect_size([0.0] * len(candidate), candidate) == EffectSize(*expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.1, 0.3, 1), 0.0),
        ((0.1, 0.3, 0), 0.0),
        ((0.0, 0.3, 50), 0.05),
        ((0.0, 0.0, 50), 0.05),
        ((0.1, 0.0, 50), 1.0),
        ((1e99, 1e-300, 50), 1.0),
    ],
)
def test_degenerate_power_is_defined(arguments, expected):
    """No queries show nothing, and without spread one look is enough."""
    assert achieved_power(*arguments) == expected


def test_degenerate_designs_are_defined():
    """A report says "none" instead of crashing."""
    assert detectable_difference(0.3, 1) is None
    assert detectable_difference(0.0, 50) == 0.0
    assert detectable_difference(0.3, 50, alpha=0.1, power=0.05) == 0.0
    assert queries_needed(0.1, 0.0) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: queries_needed(0.0, 0.3),
        lambda: queries_needed(0.1, -0.3),
        lambda: queries_needed(0.1, 0.3, power=1.0),
        lambda: achieved_power(nan, 0.3, 50),
        lambda: achieved_power(0.1, 0.3, 50, alpha=0.0),
        lambda: detectable_difference(nan, 50),
    ],
)
def test_designs_that_cannot_be_are_refused(call):
    """No number of queries shows a difference of 0."""
    with pytest.raises(UsageError, match="expected"):
        call()


def test_bad_values_have_no_effect_size():
    """Nor have values of other queries."""
    with pytest.raises(DataError, match="candidate: value 0"):
        effect_size([0], [nan])
    with pytest.raises(UsageError, match="same queries"):
        effect_size([0], [0, 1])


def test_a_tiny_effect_is_answered_at_once():
    """It needs billions of queries, and counting them one by one would take years."""
    assert queries_needed(1e-6, 0.2) == pytest.approx(3.14e11, rel=1e-2)


def share_shown(diffs, difference, n):
    """Return how often n queries show a difference, by weighing those seen by exp(c d)."""
    low, high = -60.0, 60.0
    for _ in range(60):
        c = (low + high) / 2
        weights = np.exp(c * (diffs - diffs.max()))
        weights /= weights.sum()
        low, high = (c, high) if weights @ diffs < difference else (low, c)
    drawn = np.random.default_rng(1).choice(diffs, (4000, n), p=weights)
    mean, spread = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    t = np.divide(mean, spread / np.sqrt(n), out=np.full(4000, np.inf), where=spread > 0)
    return np.mean(t > student_quantile(0.975, n - 1))


@pytest.mark.parametrize(
    "diffs",
    [
        np.repeat([1.0, 0.0], [2, 41]),
        np.repeat([1.0, 0.0, -1.0], [1, 40, 2]),
        np.repeat([0.25, 0.05, 0.0, -0.1], [2, 3, 36, 2]),
    ],
)
def test_what_is_shown_of_tied_queries_holds_its_power(diffs):
    """Where a recall differs in three of 43 queries, a shift of all of them tells nothing."""
    found = shown_difference(diffs)
    by_shift = detectable_difference(float(diffs.std(ddof=1)), 43)

    assert share_shown(diffs, found.difference, 43) >= 0.78
    assert share_shown(diffs, by_shift, 43) < 0.75
    assert found.n_for_half > 2 * 43


def test_what_is_shown_of_even_differences_is_as_by_the_shift():
    """Nothing changes where a difference does shift the values."""
    diffs = np.array([normal_quantile((i + 0.5) / 200) for i in range(200)])
    expected = detectable_difference(float(diffs.std(ddof=1)), 200)

    assert shown_difference(diffs).difference == pytest.approx(expected, rel=0.02)


def share_beyond(values, distance, n, measure="nDCG@10", *, below=False):
    """Return how often n values drawn from some show that their mean is so far beyond a bound."""
    draw, shown = np.random.default_rng(3), 0
    centre = float(values.mean())
    for _ in range(60):
        ends = ends_by_measure(measure, draw.choice(values, n))
        shown += ends.high <= centre + distance if below else ends.low >= centre - distance
    return shown / 60


NEAR_THE_TOP = np.array([0.6, 0.65, 0.7, *np.linspace(0.76, 0.98, 33), *[1.0] * 22])
"""nDCG@10 of 58 queries: their mean of 0.92 has a t interval of 0.03 and may be 0.06 lower."""


def of_mean(values):
    """Return the interval that a gate decides on."""
    return ends_by_measure("nDCG@10", values)


FAR_APART = np.repeat([0.0, 0.2, 0.5, 1.0], [6, 5, 12, 35])


@pytest.mark.parametrize(
    ("values", "below"),
    [
        (NEAR_THE_TOP, False),
        (NEAR_THE_TOP, True),
        (np.repeat([0.0, 1.0], [2, 56]), False),
        (FAR_APART, False),
        (FAR_APART, True),
    ],
)
def test_the_distance_that_is_shown_is_shown_in_four_of_five_samples(values, below):
    """The interval reaches further than the spread where a query that nobody saw could weigh."""
    distance = shown_distance(values, 58, of_mean, below=below)

    assert share_beyond(values, distance, 58, below=below) == pytest.approx(0.82, abs=0.15)


def test_what_the_spread_alone_would_show_is_not_shown_near_the_top():
    """It said 0.035, which none of sixty samples shows."""
    by_spread = detectable_difference(float(NEAR_THE_TOP.std(ddof=1)), 58)

    assert share_beyond(NEAR_THE_TOP, by_spread, 58) < 0.1
    assert shown_distance(NEAR_THE_TOP, 58, of_mean) > 1.7 * by_spread


def test_so_many_queries_as_are_named_show_the_distance():
    """Fewer than by the spread: the reach of one unseen query falls faster than it."""
    half = shown_distance(NEAR_THE_TOP, 58, of_mean) / 2
    n = queries_for_distance(NEAR_THE_TOP, half, of_mean)

    assert share_beyond(NEAR_THE_TOP, half, n) == pytest.approx(0.82, abs=0.15)
    assert shown_distance(NEAR_THE_TOP, round(0.9 * n), of_mean) > half


def test_the_chance_of_what_is_shown_is_its_power():
    """One is the inverse of the other."""
    distance = shown_distance(NEAR_THE_TOP, 58, of_mean, power=0.6)

    assert shown_chance(NEAR_THE_TOP, distance, of_mean) == pytest.approx(0.6, abs=0.02)
    assert shown_chance(NEAR_THE_TOP, 0.0, of_mean) < 0.03


def test_queries_without_spread_have_a_distance_too():
    """Thirty values of 1 tell of no mean above 0.88: some that nobody saw may be 0."""
    ones = np.ones(30)

    assert shown_distance(ones, 30, of_mean) == pytest.approx(1 - 0.025 ** (1 / 30))
    n = queries_for_distance(ones, 0.05, of_mean)
    assert 1 - 0.025 ** (1 / n) <= 0.05 < 1 - 0.025 ** (1 / (n - 2))
