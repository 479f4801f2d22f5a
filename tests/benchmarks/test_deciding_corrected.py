"""The benchmark of decisions that people's labels correct."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from ragforge.measures.sequential import DecidingPairs

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N_QUERIES = 40


@pytest.fixture(scope="module")
def deciding_corrected():
    """The benchmark, which is a script and in no package, as are those it takes from."""
    names = ("calibration", "deciding", "deciding_corrected")
    if not (BENCHMARKS / "deciding_corrected.py").exists():
        pytest.skip("benchmarks are not shipped")
    for name in names:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    yield module
    for name in names:
        del sys.modules[name]


@pytest.fixture
def pairs():
    """Of 40 queries with 15 pairs each; run A has the better ones."""
    generator = np.random.default_rng(1)
    n = N_QUERIES * 15
    features = np.stack([np.ones(n), generator.random(n), generator.random(n) < 0.5], axis=1)
    return DecidingPairs(
        np.repeat(np.arange(N_QUERIES), 15),
        generator.uniform(0.1, 1, n) * generator.choice([-1.0, 1.0], n),
        features,
        generator.random(n),
        N_QUERIES,
    )


@pytest.fixture
def people(pairs):
    """Human grades, higher for what run A has."""
    uniform = np.random.default_rng(2).random(len(pairs.weights))
    return np.minimum(4 * uniform * np.where(pairs.weights < 0, 1.1, 0.8), 3).astype(np.intp)


def test_labels_on_all_pairs_give_the_difference_of_all_human_grades(
    deciding_corrected, pairs, people
):
    """Whatever the judge says."""
    graded = deciding_corrected.Graded(
        np.arange(len(people)), 3 - people, np.ones(len(pairs.weights))
    )
    found = deciding_corrected.corrected(
        pairs, people, graded, len(people), np.random.default_rng(0)
    )

    assert found.difference == pytest.approx(float(pairs.weights @ people) / N_QUERIES, abs=1e-12)
    assert found.half == pytest.approx(0, abs=1e-12)
    assert found.n_labels == len(people)


def test_a_wrong_judge_of_a_part_of_the_pairs_moves_nothing(deciding_corrected, pairs, people):
    """Both draws are weighted: with one of them the mean would lie far off."""
    truth = float(pairs.weights @ people) / N_QUERIES
    judged = np.where(pairs.weights > 0, 3, 0)
    p = np.minimum(1, 0.7 * np.abs(pairs.weights))
    estimates, holds = [], []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        drawn = np.flatnonzero(generator.random(len(p)) < p)
        graded = deciding_corrected.Graded(drawn, judged[drawn], p[drawn])
        found = deciding_corrected.corrected(pairs, people, graded, 100, generator)
        estimates.append(found.difference)
        holds.append(abs(found.difference - truth) <= found.half)

    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - truth) < 3 * error
    assert 3 * error < abs(truth) / 4
    assert np.mean(holds) > 0.9
