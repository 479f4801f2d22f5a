"""Whether a judge still grades as it did."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.drift import ALPHA, drift


def queries(n):
    return [f"q{i // 2}" for i in range(n)]


def noisy(generator, habits, n):
    """Draw what a judge with a temperature says of each pair, by its habits with that pair."""
    return [
        None if (said := int(generator.choice(5, p=habit))) == 4 else said for habit in habits[:n]
    ]


def test_a_judge_that_repeats_itself_does_not_drift():
    """The usual case at temperature 0 must be silent."""
    grades = [0, 1, 2, 3] * 10

    found = drift(queries(40), grades, grades, grades)

    assert found.found == ()
    assert (found.same, found.one_off, found.more_off, found.shift) == (40, 0, 0, 0.0)


def test_a_lenient_turn_is_a_shift():
    """A new model behind the same name that is kinder moves all measures up."""
    first = [0, 1, 2, 2] * 10
    now = [1, 1, 3, 3] * 10

    found = drift(queries(40), first, first, now)

    assert found.found == ("shift", "scatter")
    assert (found.same, found.one_off) == (10, 30)
    assert found.shift == pytest.approx(0.75)
    assert found.interval.low == pytest.approx(0.75 - 2.093 * 0.0574, abs=1e-3)


def test_a_scrambled_judge_is_found_though_its_mean_stays():
    """Grades that go up and down alike leave every mean, and no agreement."""
    first = [0, 1, 2, 3] * 10
    now = [1, 0, 3, 2] * 10

    found = drift(queries(40), first, first, now)

    assert found.found == ("scatter",)
    assert found.shift == 0.0


def test_a_judge_that_refuses_more_is_found():
    """What fails has no grade, so grades alone would never show it."""
    first = [0, 1, 2, 3] * 10

    found = drift(queries(40), first, first, [None] * 10 + first[10:])

    assert found.found == ("failures",)
    assert (found.n_failed_first, found.n_failed_now, found.n_pairs) == (0, 10, 30)


def test_noise_that_was_there_at_first_is_no_drift():
    """A judge with a temperature that flips a third of its grades did so before."""
    first, again = [1, 2, 1] * 14, [1, 1, 1] * 14
    now = [2, 2, 1] * 7 + [0, 2, 1] * 7

    found = drift(queries(42), first, again, now)

    assert found.found == ()
    assert found.noise == pytest.approx(1 / 3)


@pytest.mark.parametrize("concentration", [0.1, 1.0])
def test_a_steady_judge_alarms_in_no_more_than_one_of_twenty(concentration):
    """A gate that cries wolf is switched off."""
    generator = np.random.default_rng(7)
    alarms = 0
    for _ in range(1000):
        habits = generator.dirichlet([concentration] * 5, size=40)
        first, again, now = (noisy(generator, habits, 40) for _ in range(3))
        alarms += bool(drift(queries(40), first, again, now).found)

    assert alarms / 1000 <= ALPHA + 0.01


def test_no_pair_at_all_says_nothing():
    """Nothing is known of nothing."""
    found = drift([], [], [], [])

    assert (found.found, found.shift, found.interval, found.noise) == ((), None, None, None)


def test_lengths_must_agree():
    """A grade of another pair would be taken for a drift."""
    with pytest.raises(UsageError, match="for each pair"):
        drift(["q"], [1], [1], [])
