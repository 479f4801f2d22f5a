from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measures.resampling import resampled_ends

from ragforge.errors import DataError, UsageError
from ragforge.measures.intervals import (
    ClusteredInterval,
    Ends,
    clustered_interval,
    clusters,
    mean_distribution,
    mean_interval,
    percentile_interval,
    resampled_times,
)

relaxed = settings(deadline=None, max_examples=50)

VALUES = [0.40, 0.50, 0.61, 0.97, 0.30, 0.63, 0.79, 0.16, 0.70, 0.80, 0.45, 0.49]
METHODS = ["bca", "percentile", "student"]
methods = st.sampled_from(METHODS)
shares = st.lists(st.integers(0, 10).map(lambda tenths: tenths / 10), min_size=2, max_size=40)
reals = st.lists(st.floats(0, 1).map(lambda x: round(x, 9)), min_size=2, max_size=40)
columns = shares | reals


def enumerated(values, p):
    """Return the least mean of a resample that is not exceeded with a probability of `p`."""
    means = sorted(sum(drawn) / len(values) for drawn in product(values, repeat=len(values)))
    return next(m for n, m in enumerate(means, start=1) if n / len(means) >= p - 1e-12)


# scipy.stats.bootstrap((VALUES,), numpy.mean, n_resamples=9999, rng=numpy.random.default_rng(7)).
@pytest.mark.parametrize(
    ("method", "low", "high"),
    [
        ("bca", 0.4425, 0.6908333333333333),
        ("percentile", 0.44083333333333335, 0.6883333333333334),
    ],
)
def test_resampled_intervals_equal_scipy(method, low, high):
    """The same seed draws the same resamples."""
    found = resampled_ends(VALUES, 7, method=method)

    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


def test_student_interval_equals_scipy():
    """scipy.stats.t.interval(0.95, 11, mean, sem) of scipy 1.17.1."""
    found = mean_interval(VALUES, method="student")

    assert (found.low, found.high) == pytest.approx((0.42091302321802676, 0.7124203101153066))


def test_successes_are_binomial():
    """Of ten coins: P(at most 1) is 0.0107, P(at most 2) is 0.0547."""
    found = mean_interval([0, 1] * 5, method="percentile")

    assert (found.low, found.high) == pytest.approx((0.2, 0.8), abs=1e-15)


@pytest.mark.parametrize("values", [[0, 0.5, 1, 1, 0.5], [0.2, 0.2, 0.9], [3, 0, 17, 5, 5]])
@pytest.mark.parametrize("p", [0.011, 0.026, 0.13, 0.3, 0.77, 0.98])
def test_quantiles_on_a_lattice_equal_those_of_all_resamples(values, p):
    """Every one of the n ** n resamples counts, none is drawn."""
    found = mean_distribution(np.array(values, dtype=float)).quantile(p)

    assert found == pytest.approx(enumerated(values, p), abs=1e-12)


@pytest.mark.parametrize("p", [0.011, 0.026, 0.13, 0.3, 0.77, 0.98])
def test_quantiles_off_the_lattice_are_as_fine_as_the_grid(p):
    """Values of nDCG lie anywhere; few queries are the hard case, since their means are sparse."""
    values = [0.1237, 0.5501, 0.98765, 0.3333, 0.7071]

    found = mean_distribution(np.array(values)).quantile(p)

    assert found == pytest.approx(enumerated(values, p), abs=1e-4)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_one_far_value_does_not_blur_the_rest(scale):
    """With one outlier the mean is nearly Poisson: 0, 1, 2 … copies of it, each a narrow peak."""
    values = np.append(np.linspace(0, 0.001, 399), 1.0) * scale

    found = mean_interval(values, method="percentile")

    # The outlier is left out of 37 % of the resamples, and drawn at most three times in 98 %.
    assert found.low == pytest.approx(scale * 0.000475, rel=0.05)
    assert found.high == pytest.approx(scale * (3 / 400 + 0.0005), rel=0.05)


@pytest.mark.parametrize("n", [200, 20_000])
def test_distribution_keeps_mean_and_variance(n):
    """Splitting values over a grid adds variance, which must be taken out again."""
    values = np.random.default_rng(3).beta(0.8, 0.6, n)

    found = mean_distribution(values)

    mean = float((found.points * found.mass).sum())
    assert mean == pytest.approx(values.mean(), abs=1e-12)
    variance = float(((found.points - mean) ** 2 * found.mass).sum())
    assert variance == pytest.approx(values.var() / n, rel=1e-8)


def test_ideal_interval_is_the_limit_of_resampling():
    """With 200,000 resamples the noise of an end is some 0.006 standard errors."""
    values = np.random.default_rng(5).beta(0.8, 0.6, 100)
    error = values.std() / sqrt(100)

    for method in ("bca", "percentile"):
        ideal = mean_interval(values, method=method)
        drawn = resampled_ends(values, 1, method=method, n_resamples=200_000)

        assert (ideal.low, ideal.high) == pytest.approx((drawn.low, drawn.high), abs=error / 30)


def test_large_samples_become_normal():
    """All methods are one where the central limit theorem holds."""
    values = np.random.default_rng(6).random(100_000)
    reach = 1.959963984540054 * values.std() / sqrt(100_000)

    for method in METHODS:
        found = mean_interval(values, method=method)
        expected = (values.mean() - reach, values.mean() + reach)
        assert (found.low, found.high) == pytest.approx(expected, abs=reach / 300)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_intervals_hold_the_true_mean_as_often_as_they_say(method):
    """Of 400 samples of 60 queries 380 should; the bounds are four standard deviations wide."""
    generator = np.random.default_rng(11)
    intervals = [mean_interval(generator.beta(2, 1, 60), method=method) for _ in range(400)]

    held = sum(found.low <= 2 / 3 <= found.high for found in intervals)

    assert 362 <= held <= 396


@relaxed
@given(columns, methods)
def test_interval_contains_the_mean(values, method):
    """A mean outside of its own interval cannot be explained to anybody."""
    found = mean_interval(values, method=method)

    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9


@relaxed
@given(columns, methods, st.floats(0.5, 0.9))
def test_a_wider_level_contains_the_narrower(values, method, level):
    """More confidence costs width."""
    narrow = mean_interval(values, level, method)
    wide = mean_interval(values, level + 0.09, method)

    assert wide.low <= narrow.low + 1e-9
    assert narrow.high <= wide.high + 1e-9


@relaxed
@given(columns, methods, st.randoms(use_true_random=False))
def test_order_of_queries_makes_no_difference(values, method, random):
    """Not even in the last bit: same data, same verdict."""
    shuffled = random.sample(values, len(values))

    assert mean_interval(shuffled, method=method) == mean_interval(values, method=method)


@relaxed
@given(shares, methods)
def test_mirrored_values_have_the_mirrored_interval(values, method):
    """A share of hits and a share of misses tell the same."""
    found = mean_interval(values, method=method)
    mirrored = mean_interval([1 - value for value in values], method=method)

    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-9)


@relaxed
@given(shares, methods, st.sampled_from([0.001, 3.0, 1000.0]), st.sampled_from([-2.0, 0.0, 5.0]))
def test_other_units_give_the_same_interval(values, method, factor, shift):
    """Percent or share, counts or DCG."""
    found = mean_interval(values, method=method)
    other = mean_interval([factor * value + shift for value in values], method=method)

    expected = (factor * found.low + shift, factor * found.high + shift)
    assert (other.low, other.high) == pytest.approx(expected, abs=1e-9 * max(1, factor))


@relaxed
@given(columns, st.sampled_from(["bca", "percentile"]))
def test_bootstrap_intervals_stay_within_the_values(values, method):
    """An nDCG of 1.02 is no upper end."""
    found = mean_interval(values, method=method)

    assert min(values) <= found.low <= found.high <= max(values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (None, None, None)),
        ([0.5], (0.5, None, None)),
        ([0.0, 0.0], (0.0, 0.0, 0.0)),
        ([0.3, 0.1 + 0.2, 0.3], (0.3, 0.3, 0.3)),
    ],
)
def test_degenerate_values_have_defined_intervals(method, values, expected):
    """A report of one query must not crash, nor show NaN."""
    found = mean_interval(values, method=method)

    assert (found.mean, found.low, found.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("values", [[0.0, 1e-300], [-1e100, 1e100], [1e-12, 1.0, 1.0, 1.0]])
@pytest.mark.parametrize("method", METHODS)
def test_extreme_values_raise_no_warning(values, method):
    """Warnings are errors here, and NaN fails the comparison."""
    found = mean_interval(values, method=method)

    assert found.low <= found.mean <= found.high


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_interval([0, 1], 1.0),
        lambda: mean_interval([0, 1], 0.9999999),
        lambda: mean_interval([0, 1], method="bac"),
    ],
)
def test_settings_that_cannot_be_taken_are_refused(call):
    """A typing mistake must not choose another method."""
    with pytest.raises(UsageError, match=r"expected|there are"):
        call()


def test_nan_is_refused():
    """It would spread over the whole report."""
    with pytest.raises(DataError, match="value 1"):
        mean_interval([0.5, float("nan")])


def mean_of(values):
    return lambda times: times @ np.asarray(values, dtype=float) / times.sum(axis=1)


def test_pairs_are_grouped_by_query_wherever_they_stand():
    """Files need not be sorted."""
    found = clusters(["b", "a", "b"])

    assert found.query_ids == ("a", "b")
    assert found.of_pair.tolist() == [1, 0, 1]


def test_row_0_is_the_sample_itself():
    """The value and its resamples come out of one product."""
    times = resampled_times(5, seed=1, n_resamples=50)

    assert times.shape == (51, 5)
    assert times[0].tolist() == [1, 1, 1, 1, 1]
    assert set(times.sum(axis=1)) == {5.0}


def test_same_seed_gives_the_same_interval():
    """A report must not change between two looks at it."""
    statistic = mean_of(np.random.default_rng(5).normal(size=40))

    first = clustered_interval(statistic, 40, seed=3)
    assert clustered_interval(statistic, 40, seed=3) == first
    assert clustered_interval(statistic, 40, seed=4) != first


def test_interval_of_a_mean_is_as_wide_as_theory_says():
    """1.96 standard errors to each side, for many queries of no odd shape."""
    values = np.random.default_rng(5).normal(size=400)

    found = clustered_interval(mean_of(values), 400, seed=1)

    error = values.std() / 20
    assert found.value == pytest.approx(values.mean())
    assert [found.low, found.high] == pytest.approx(
        [values.mean() - 1.96 * error, values.mean() + 1.96 * error], abs=0.15 * error
    )


def test_one_query_has_no_interval():
    """It tells nothing about others, however many pairs it has."""
    assert clustered_interval(mean_of([0.5]), 1, seed=0) == ClusteredInterval(0.5, None, None)


def test_what_has_no_value_has_no_interval():
    """NaN does not leave the arithmetic."""
    nothing = percentile_interval(np.full(11, np.nan), 5)

    assert nothing == ClusteredInterval(None, None, None, n_undefined=10)


def test_few_undefined_resamples_are_left_out_and_counted():
    """A draw without a relevant pair has no sensitivity."""
    values = np.array([0.5, *[0.5] * 96, *[np.nan] * 4])

    assert percentile_interval(values, 5) == ClusteredInterval(0.5, 0.5, 0.5, n_undefined=4)


def test_what_is_perfect_in_all_queries_may_not_be_in_others():
    """By hand: 7 of 7 is seen 1 in 40 times where 0.025 ** (1 / 7) of all queries are so."""
    values = np.array([1.0] * 101)

    found = percentile_interval(values, 7, within=Ends(-1.0, 1.0))

    assert found.high == 1.0
    assert found.low == pytest.approx(1 - 2 * (1 - 0.025 ** (1 / 7)))


def test_what_is_the_same_in_all_queries_may_not_be_in_others():
    """A judge off by one in each of three queries is not off by one for certain."""
    values = np.array([1.0] * 101)

    found = percentile_interval(values, 3, within=Ends(-3.0, 3.0))

    unseen = 1 - 0.025 ** (1 / 3)
    assert (found.low, found.high) == pytest.approx((1 - 4 * unseen, 1 + 2 * unseen))


def test_many_undefined_resamples_leave_no_interval():
    """An interval of the draws that happen to have a value is too narrow."""
    values = np.array([0.5, *[0.5] * 90, *[np.nan] * 10])

    assert percentile_interval(values, 5) == ClusteredInterval(0.5, None, None, n_undefined=10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"seed": 0, "n_resamples": 0}, "expected at least 1 resample"),
        ({"seed": 0, "level": 1.0}, "level: expected a number between 0 and 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments, message):
    """Each would give numbers that nobody asked for."""
    with pytest.raises(UsageError, match=message):
        clustered_interval(mean_of([1, 2]), 2, **arguments)


@pytest.mark.parametrize(("n_queries", "least"), [(10, 0.91), (25, 0.92)])
def test_intervals_of_few_queries_hold_a_ratio_as_often_as_they_say(n_queries, least):
    """Plain percentiles of ten queries hold it in 87 to 90 %, and were read as 95.

    Of 400 draws the share is off by 1.2 points.
    """
    generator = np.random.default_rng(5)
    n_held, n_tried = 0, 400

    for seed in range(n_tried):
        sizes = generator.integers(4, 12, n_queries).astype(float)
        rates = generator.beta(2, 3, n_queries)
        hits = generator.binomial(sizes.astype(int), rates).astype(float)
        found = clustered_interval(
            lambda times, hits=hits, sizes=sizes: (times @ hits) / (times @ sizes),
            n_queries,
            seed=seed,
            n_resamples=400,
        )
        n_held += found.low <= 0.4 <= found.high

    assert n_held / n_tried >= least


def test_ends_stay_within_what_a_statistic_can_be():
    """A sensitivity of 1.1 would be a figure of nothing."""
    values = np.array([0.9, 0.5, 0.8, 0.9, 1.0, 1.0])

    found = percentile_interval(values, 3, within=Ends(0.0, 1.0))

    assert found.high == 1.0


def test_without_one_query_in_turn_the_interval_reaches_as_far_as_the_jackknife():
    """By hand: the root of 0.02, times 4 for the slope of the logit at 1/2, times 4.3027 for t."""
    values = np.array([0.5, 0.5, 0.51, 0.49])

    found = percentile_interval(
        values, 3, within=Ends(0.0, 1.0), without_one=np.array([0.4, 0.5, 0.6])
    )

    reach = 4.3027 * 4 * 0.02**0.5
    assert found.low == pytest.approx(1 / (1 + np.exp(reach)), abs=1e-4)
    assert found.high == pytest.approx(1 / (1 + np.exp(-reach)), abs=1e-4)


def test_jackknife_near_an_end_stays_within_what_a_statistic_can_be():
    """An AUC of 0.999 of which one query is all that is wrong may be anything, but no 1.1."""
    values = np.array([0.999, 0.999, 0.998, 1.0])

    found = percentile_interval(
        values, 3, within=Ends(0.0, 1.0), without_one=np.array([0.2, 1.0, np.nan])
    )

    assert (found.low, found.high) == (pytest.approx(0.0, abs=1e-9), 1.0)


def test_jackknife_makes_no_interval_shorter():
    """Percentiles that already reach further stand."""
    values = np.array([0.5, *np.linspace(0.1, 0.9, 41)])

    found = percentile_interval(values, 9, within=Ends(0.0, 1.0), without_one=np.full(9, 0.5))

    assert found == percentile_interval(values, 9, within=Ends(0.0, 1.0))
