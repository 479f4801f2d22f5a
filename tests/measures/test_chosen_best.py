"""What any two of several runs differ by, where the best of them is picked by the same values."""

import numpy as np
import pytest

from ragforge.measures.chosen_best import largest_difference, largest_of
from ragforge.measures.comparing import RunPair, compare_with_chosen
from ragforge.measures.strata import Design


@pytest.mark.parametrize(("n_runs", "z"), [(12, 4.622 / 2**0.5), (20, 5.012 / 2**0.5)])
def test_independent_runs_have_the_level_of_tukey(n_runs, z):
    """Golden values: the studentized range at 5 % with unlimited degrees of freedom."""
    found = largest_difference(np.eye(n_runs).tolist())

    assert float(np.quantile(found.draws, 0.95)) == pytest.approx(z, rel=0.01)


def test_the_level_is_the_p_value_that_is_corrected_to_alpha():
    """An interval and a p value of one comparison must speak of one chance."""
    found = largest_difference(np.eye(12).tolist())

    assert found.corrected(found.level(0.05)) == pytest.approx(0.05, abs=0.001)


def test_two_runs_are_one_comparison():
    """Whichever of the two is ahead, there is one difference."""
    found = largest_difference(np.random.default_rng(0).random((2, 30)).tolist())

    assert (found.level(0.05), found.corrected(0.03)) == (0.05, 0.03)


def test_runs_with_the_same_values_count_once():
    """Ten overlaps that retrieve the same are no ten chances."""
    a, b = np.random.default_rng(0).random((2, 30)).tolist()
    found = largest_difference([a, *[b] * 10])

    assert found.level(0.05) == pytest.approx(0.05, abs=0.003)


def test_runs_that_depend_on_each_other_take_less_than_their_number():
    """All differences of one stranger are nearly the same difference."""
    rng = np.random.default_rng(0)
    alike = rng.random(60)
    stranger = rng.random(60)
    runs = [stranger, *(alike + 0.01 * rng.random(60) for _ in range(2))]

    assert largest_difference([run.tolist() for run in runs]).level(0.05) > 0.05 / 3


def test_of_few_queries_each_difference_counts_alone():
    """How values depend on each other is not known from five of them."""
    found = largest_difference(np.random.default_rng(0).random((4, 5)).tolist())

    assert (found.level(0.06), found.corrected(0.01)) == (0.01, pytest.approx(0.06))


def test_queries_that_a_run_lacks_are_left_out():
    """It has no value there that could depend on others."""
    rng = np.random.default_rng(0)
    runs = [dict(zip(range(30), rng.random(30).tolist(), strict=True)) for _ in range(3)]
    runs[0].pop(0)
    shared = [[run[key] for key in range(1, 30)] for run in runs]

    assert largest_of(runs).level(0.05) == largest_difference(shared).level(0.05)


def test_queries_of_a_sample_count_by_what_they_stand_for():
    """The means that are compared are of the whole set."""
    rng = np.random.default_rng(0)
    runs = [{f"q{i:02}": value for i, value in enumerate(rng.random(30))} for _ in range(3)]
    strata = {f"q{i:02}": "a" if i < 15 else "b" for i in range(30)}
    design = Design({**strata, **{f"r{i}": "b" for i in range(60)}})
    weights = [1 / 3 if i < 15 else 5 / 3 for i in range(30)]
    times = [[v * w for v, w in zip(run.values(), weights, strict=True)] for run in runs]

    assert largest_of(runs, design).level(0.05) == pytest.approx(
        largest_difference(times).level(0.05), abs=1e-4
    )


def test_the_extremes_of_equal_runs_are_told_apart_in_one_of_twenty_sets():
    """The best of 24 and the worst of them are picked from 276 pairs: 200 sets, 5 % are meant."""
    rng = np.random.default_rng(1)
    sets = [sorted(rng.random((24, 60)).tolist(), key=sum) for _ in range(200)]
    found = [
        compare_with_chosen([RunPair("a", "b", "P", runs[-1], runs[0])], largest_difference(runs))
        for runs in sets
    ]

    assert 2 <= sum(item.winner == "A" for [item] in found) <= 16
