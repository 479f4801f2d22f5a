"""Which pairs people should label."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.label_sampling import (
    label_allocation,
    label_order,
    label_sample,
    label_sizes,
    label_strata,
)

WEIGHTS = np.repeat([0.0, 0.2, 0.6, 1.0], 50)
JUDGED = np.tile(np.arange(4), 50).astype(np.intp)


def draw(n: int, *, ideal: bool = False) -> np.ndarray:
    """Return the pairs of a sample of n."""
    strata = label_strata(WEIGHTS, JUDGED, 4)
    sizes = label_sizes(WEIGHTS, JUDGED, 4, ideal=ideal)
    places = np.random.default_rng(1).random(len(WEIGHTS))
    return label_sample(strata, places, label_allocation(strata, sizes, n))


def test_a_small_sample_lies_within_a_large_one():
    """Labels that are there stay useful when more are wanted."""
    assert set(draw(30)) <= set(draw(60)) <= set(draw(120))


def test_a_sample_has_as_many_pairs_as_asked_for():
    """The plan says what it costs."""
    assert [len(draw(n)) for n in (30, 60, 120)] == [30, 60, 120]


def test_pairs_that_decide_nothing_are_not_labelled():
    """People's time goes to pairs that weigh something."""
    assert WEIGHTS[draw(100)].min() == 0.2


def test_the_ideal_ranking_asks_for_some_of_the_others():
    """nDCG divides by what was not retrieved too."""
    others = int((WEIGHTS[draw(100, ideal=True)] == 0).sum())

    assert 2 * 4 <= others < 25


def test_heavy_pairs_are_likelier():
    """A pair at the top moves DCG more than one at rank ten."""
    counts = [int((WEIGHTS[draw(60)] == weight).sum()) for weight in (0.2, 0.6, 1.0)]

    assert counts[0] < counts[1] < counts[2]


def test_all_pairs_are_drawn_where_there_are_no_more():
    """A census is a sample too."""
    assert len(draw(1000)) == int((WEIGHTS > 0).sum())


def test_pairs_of_one_weight_are_one_class():
    """Of P@k all pairs weigh alike; parting them would thin out the grades."""
    weights = np.full(40, 0.1)

    assert set(label_strata(weights, JUDGED[:40], 4)) == {0, 1, 2, 3}


def test_a_sample_below_two_of_each_stratum_is_refused():
    """One label alone shows no spread."""
    with pytest.raises(UsageError, match="expected at least 24 pairs"):
        draw(20)


@pytest.mark.parametrize("n", [30, 60, 120])
def test_every_beginning_of_the_order_is_a_sample(n):
    """Whoever stops half way has labelled a sample, too."""
    strata = label_strata(WEIGHTS, JUDGED, 4)
    sizes = label_sizes(WEIGHTS, JUDGED, 4, ideal=False)
    places = np.random.default_rng(1).random(len(WEIGHTS))

    order = label_order(strata, sizes, places, 150)

    assert set(order[:n]) == set(draw(n))
