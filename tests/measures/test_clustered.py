import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.intervals import (
    ClusteredInterval,
    clustered_interval,
    clusters,
    percentile_interval,
    resampled_times,
)


def mean_of(values):
    return lambda times: times @ np.asarray(values, dtype=float) / times.sum(axis=1)


def test_pairs_are_grouped_by_query_wherever_they_stand():
    """Files need not be sorted."""
    found = clusters(["b", "a", "b"])

    assert found.query_ids == ("b", "a")
    assert found.of_pair.tolist() == [0, 1, 0]


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
