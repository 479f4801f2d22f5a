"""Weights of the judges of a panel."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.panel_weights import panel_weights


def graded(errors, n_queries=40, per_query=10, seed=3):
    """Draw grades of people, and of judges that are off by a normal error of such a size."""
    generator = np.random.default_rng(seed)
    n = n_queries * per_query
    people = generator.integers(0, 4, size=n)
    judges = [
        np.clip(np.rint(people + generator.normal(0, error, n)), 0, 3).astype(int).tolist()
        for error in errors
    ]
    return [f"q{i // per_query}" for i in range(n)], people.tolist(), judges


def test_a_useless_judge_gets_hardly_a_weight_and_the_gain_is_told():
    """A panel of one good judge and two that guess is better without the guesses."""
    found = panel_weights(*graded([0.4, 9.0, 9.0]))

    assert found.weights[0] > 0.8
    assert sum(found.weights) == pytest.approx(1)
    assert found.tried.graders[1].beyond_first["quadratic kappa"].low > 0


def test_judges_alike_keep_nearly_equal_weights_and_gain_nothing():
    """Weights fitted to noise must not be sold as better."""
    found = panel_weights(*graded([0.8, 0.8, 0.8]))

    assert max(found.weights) - min(found.weights) < 0.15
    assert not found.gains


def test_weights_are_never_claimed_to_gain_where_there_is_nothing_to_gain():
    """Tried on the pairs of their fit, they would be nearly each time."""
    gains = [panel_weights(*graded([0.8] * 4, 20, 5, seed)).gains for seed in range(20)]

    assert sum(gains) <= 1


@pytest.mark.parametrize(("n_queries", "n_judges"), [(9, 2), (20, 1)])
def test_too_few_queries_or_judges_are_refused(n_queries, n_judges):
    """Nothing can be kept out of the fit of nothing."""
    with pytest.raises(UsageError, match="weights of a panel"):
        panel_weights(*graded([0.5] * n_judges, n_queries))
