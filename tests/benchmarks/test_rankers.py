import importlib.util
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rankers():
    """The benchmark, which is a script and in no package."""
    path = Path(__file__).parents[2] / "benchmarks" / "rankers.py"
    if not path.exists():
        pytest.skip("benchmarks are not shipped")
    spec = importlib.util.spec_from_file_location("rankers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_thresholds_find_the_steps_that_people_took(rankers):
    """Grades that follow a score are given back by it."""
    scores = np.linspace(0, 1, 400)
    people = np.searchsorted((0.3, 0.5, 0.8), scores, side="right")

    assert rankers.fitted(scores, people) == pytest.approx((0.3, 0.5, 0.8), abs=0.03)


def test_no_query_is_graded_by_thresholds_that_saw_it(rankers):
    """Else a fit of chance would look like agreement."""
    draw = np.random.default_rng(0)
    ids = [f"q{at % 10}" for at in range(400)]
    grades = rankers.cross_validated(draw.random(400), draw.integers(0, 4, 400), ids)

    assert len(grades) == 400
    assert abs(np.corrcoef(grades, draw.integers(0, 4, 400))[0, 1]) < 0.2
