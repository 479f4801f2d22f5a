"""The benchmark of nDCG where queries differ in how much relevant text they have."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def uneven_ideals():
    """The benchmark, which is a script and in no package, as is the one it takes from."""
    names = ("calibration", "uneven_ideals")
    if not (BENCHMARKS / "uneven_ideals.py").exists():
        pytest.skip("benchmarks are not shipped")
    for name in names:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    yield module
    for name in names:
        del sys.modules[name]


def test_labels_of_uneven_queries_are_refused(uneven_ideals):
    """DCG alone would name the run that people's grades on all pairs have behind."""
    generator = np.random.default_rng(3)

    found = uneven_ideals.outcome(uneven_ideals.uneven_set(20, 10, generator), 200, generator)

    assert found.is_wrong_by_dcg
    assert found.is_refused
    assert not found.is_wrong


def test_a_row_has_the_shares_of_its_draws(uneven_ideals):
    """Intervals that were refused hold nothing."""
    refused = uneven_ideals.Outcome(True, False, False, True)
    taken = uneven_ideals.Outcome(False, True, False, False)

    assert uneven_ideals.row([refused, taken]) == "0.50 | 1.00 | 0.50 | 0.00"
