"""Routing doubtful pairs to a dear judge."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.routing import routed


def test_a_doubt_that_knows_where_it_errs_buys_most_of_the_gain_with_few_calls():
    """Otherwise nobody would route."""
    generator = np.random.default_rng(1)
    human = generator.integers(0, 4, size=400)
    wrong = generator.random(400) < 0.2
    cheap = np.where(wrong, (human + 2) % 4, human)

    found = routed([f"q{n // 10}" for n in range(400)], human, cheap, human, wrong.astype(float))

    kappas = {each.name: each.figures["kappa"].value for each in found.graders}
    assert list(kappas) == ["100%", "50%", "30%", "20%", "10%", "0%"]
    assert kappas["100%"] == 1.0
    assert kappas["30%"] == 1.0
    assert kappas["0%"] < 0.8
    assert found.graders[-1].beyond_first["kappa"].low > 0


def test_lengths_must_agree():
    """A doubt about another pair would route the wrong one."""
    with pytest.raises(UsageError, match="for each pair"):
        routed(["q"], [1], [1], [1], [])
