"""The benchmark of planned widths."""

import importlib.util
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def planned_widths():
    """The benchmark, which is a script and in no package, as is the one it takes from."""
    names = ("calibration", "planned_widths")
    if not (BENCHMARKS / "planned_widths.py").exists():
        pytest.skip("benchmarks are not shipped")
    for name in names:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    yield module
    for name in names:
        del sys.modules[name]


def test_queries_that_are_easy_or_hard_spread_more_than_grades_tell(planned_widths):
    """All relevant or none: a judge that gives one grade knows nothing of it."""
    n, depth = 40, 10
    queries = np.repeat(np.arange(n), depth)
    ranks = np.tile(np.arange(depth), n)
    truth = planned_widths.Truth(
        "made up", queries, 3 * (queries % 2), {"a": ranks, "b": ranks[::-1]}, n, None
    )
    options = Namespace(seed=0, repeat=2, ndcg_repeat=0)

    real, by_grades, _, _ = planned_widths.mean_terms(
        truth, lambda _, of, __: np.ones_like(of.grades), "P@10", options, is_difference=False
    )

    assert real == pytest.approx(0.25 * n / (n - 1))
    assert by_grades < real / 5
