from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.measures.intervals import Ends, corrected_shares
from ragforge.measures.rates import Rate, least_share
from ragforge.measures.verdict_ratios import Verdicts, correct_given_attempted, correct_harmonic

RATIOS = [correct_given_attempted, correct_harmonic]
relaxed = settings(deadline=None, max_examples=40)
counts = st.integers(0, 6)
verdicts = st.builds(Verdicts, counts, counts, counts, counts, counts)


def attempted_share(right, wrong, silent):
    """Return correct given attempted; None where nothing was attempted."""
    return right / (right + wrong) if right + wrong else None


def harmonic(right, wrong, silent):
    """Return the harmonic mean of correct and correct given attempted, from its definition."""
    if not right:
        return 0.0
    given_attempted, correct = right / (right + wrong), right / (right + wrong + silent)
    return 2 * correct * given_attempted / (correct + given_attempted)


def resamples(of, counted):
    """Return the value and the probability of every resample of some answers."""
    n = sum(counted)
    right, wrong, silent = (count / n for count in counted)
    return [
        (
            of(c, w, n - c - w),
            comb(n, c) * comb(n - c, w) * right**c * wrong**w * silent ** (n - c - w),
        )
        for c in range(n + 1)
        for w in range(n + 1 - c)
    ]


def quantile(distribution, p):
    """Return the least value that is not exceeded with a probability of at least `p`."""
    reached = 0.0
    for value, mass in sorted(distribution):
        reached += mass
        if reached >= p - 1e-9:
            return value
    raise AssertionError(p)


def test_ratios_of_a_set_counted_by_hand():
    """6 correct of 8 attempted of 12: 0.75, 0.5, and 2 x 0.75 x 0.5 / 1.25 = 0.6."""
    given_counts = Verdicts(6, 2, 4)

    assert correct_given_attempted(given_counts).mean == 0.75
    assert correct_given_attempted(given_counts).n == 8
    assert correct_harmonic(given_counts).mean == 0.6
    assert correct_harmonic(given_counts).n == 12


def test_bounds_of_given_attempted_take_failures_as_wrong_and_as_right():
    """3 of 4 attempted and 2 failed: 3 / 6 to 5 / 6."""
    found = correct_given_attempted(Verdicts(3, 1, 5, n_failed=1, n_absent=1))

    assert found.bounds == Ends(3 / 6, 5 / 6)


def test_bounds_of_the_harmonic_mean_take_failures_as_wrong_and_as_right():
    """c = 3, a = 4, n = 9, two failed: 6 / (6 + 11) as wrong answers, 10 / (6 + 11) as right."""
    found = correct_harmonic(Verdicts(3, 1, 5, n_failed=2))

    assert found.bounds == Ends(6 / 17, 10 / 17)


@pytest.mark.parametrize("ratio", RATIOS)
@relaxed
@given(given_counts=verdicts)
def test_no_outcome_of_the_failures_is_beyond_the_bounds(ratio, given_counts):
    """Bounds that a possible outcome breaks are none."""
    found = ratio(given_counts)
    n_open = given_counts.n_failed + given_counts.n_absent
    outcomes = [
        ratio(
            Verdicts(
                given_counts.correct + right,
                given_counts.wrong + wrong,
                given_counts.not_attempted + n_open - right - wrong,
            )
        ).mean
        for right in range(n_open + 1)
        for wrong in range(n_open + 1 - right)
    ]

    known = [outcome for outcome in [*outcomes, found.mean] if outcome is not None]
    assert all(found.bounds.low - 1e-12 <= x <= found.bounds.high + 1e-12 for x in known)


def test_nothing_attempted_has_no_share_correct_and_a_harmonic_mean_of_0():
    """Silence is no success: 0 / 0 must become neither NaN nor 1."""
    silent = Verdicts(0, 0, 5)

    assert correct_given_attempted(silent) == Rate(None, None, None, 0)
    assert correct_harmonic(silent).mean == 0.0


@pytest.mark.parametrize("ratio", RATIOS)
def test_no_answers_have_no_ratio(ratio):
    """A system that was not asked is not bad, and not good."""
    assert ratio(Verdicts(0, 0, 0)) == Rate(None, None, None, 0)
    assert ratio(Verdicts(0, 0, 0, 2)) == Rate(None, None, Ends(0.0, 1.0), 0, 2)


@pytest.mark.parametrize(
    ("ratio", "of"), [(correct_given_attempted, attempted_share), (correct_harmonic, harmonic)]
)
@pytest.mark.parametrize("counted", [(3, 2, 1), (2, 4, 0), (5, 1, 3), (2, 3, 15)])
def test_interval_is_that_of_all_resamples(ratio, of, counted):
    """BCa by its definition, over every resample; those without an attempt have no share."""
    value = of(*counted)
    found = ratio(Verdicts(*counted)).interval

    distribution = [(x, p) for x, p in resamples(of, counted) if x is not None]
    total = sum(p for _, p in distribution)
    below = sum(p * (x < value - 1e-9) + p / 2 * (abs(x - value) <= 1e-9) for x, p in distribution)
    by_definition = {
        attempted_share: [1 - value, -value, 0],
        harmonic: [2 - 2 * value, -2 * value, -value],
    }
    shares = corrected_shares(np.repeat(by_definition[of], counted), 0.95, below / total)
    expected = [quantile(distribution, share * total) for share in (shares.low, shares.high)]

    assert [found.low, found.high] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("given_counts", "expected"),
    [
        (Verdicts(6, 0, 3), Ends(least_share(6), 1.0)),
        (Verdicts(0, 6, 3), Ends(0.0, 1 - least_share(6))),
    ],
)
def test_all_attempts_alike_leave_the_interval_open(given_counts, expected):
    """Resamples of six right answers are right; other queries need not be."""
    assert correct_given_attempted(given_counts).interval == expected


def test_four_attempts_have_no_interval():
    """They tell next to nothing about other queries, however many were left out."""
    assert correct_given_attempted(Verdicts(3, 1, 9)).interval is None
    assert correct_harmonic(Verdicts(3, 1, 9)).interval is not None


@pytest.mark.parametrize("ratio", RATIOS)
@relaxed
@given(given_counts=verdicts)
def test_intervals_stay_in_range(ratio, given_counts):
    """A share beyond 1 is none."""
    found = ratio(given_counts).interval

    assert found is None or 0 <= found.low <= found.high <= 1


@pytest.mark.parametrize(
    ("ratio", "error"),
    [
        # sqrt(p (1 - p) / a), and the root of the mean square of 2 [c] - F (1 + [attempted]),
        # over its mean denominator 1.8 and sqrt(n), with F = 5 / 9.
        (correct_given_attempted, (0.625 * 0.375 / 800_000) ** 0.5),
        (correct_harmonic, (0.5 * (8 / 9) ** 2 + 0.3 * (10 / 9) ** 2 + 0.2 * (5 / 9) ** 2) ** 0.5
         / 1.8 / 1000),
    ],
)  # fmt: skip
def test_a_million_answers_are_summed_over_in_coarser_steps(ratio, error):
    """The interval of a large sample is that of the normal distribution."""
    found = ratio(Verdicts(500_000, 300_000, 200_000))

    width = found.interval.high - found.interval.low
    assert width == pytest.approx(3.92 * error, rel=0.02)
    assert found.interval.low < found.mean < found.interval.high


@relaxed
@given(st.integers(5, 60), st.integers(1, 59))
def test_without_refusals_the_share_is_binomial(n, k):
    """P(at most c of n) by the binomial formula: the low end is a quantile of it."""
    right = min(k, n - 1)
    found = correct_given_attempted(Verdicts(right, n - right, 0)).interval

    share = right / n
    binomial = [comb(n, c) * share**c * (1 - share) ** (n - c) for c in range(n + 1)]
    low = round(found.low * n)
    assert found.low * n == pytest.approx(low)
    assert sum(binomial[: low + 1]) < 0.5


@pytest.mark.parametrize("counted", [(0, 45, 1), (0, 20, 20), (0, 5, 41), (0, 46, 0)])
def test_nothing_correct_leaves_the_harmonic_mean_between_its_parts(counted):
    """A mean of two shares cannot be larger than both."""
    given_counts = Verdicts(*counted)
    found = correct_harmonic(given_counts).interval
    given_attempted = correct_given_attempted(given_counts).interval

    correct = 1 - least_share(sum(counted))
    assert correct - 1e-12 <= found.high <= given_attempted.high + 1e-12


def test_nothing_attempted_leaves_open_that_all_attempts_are_right():
    """p correct of p attempted: 2 p / (1 + p)."""
    found = correct_harmonic(Verdicts(0, 0, 9)).interval

    p = 1 - least_share(9)
    assert found == Ends(0.0, pytest.approx(2 * p / (1 + p)))
