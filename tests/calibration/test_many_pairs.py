"""A hundred thousand pairs."""

import tracemalloc

import numpy as np

from ragforge.calibration.population import LabelPopulation, Question, Unit
from ragforge.calibration.sampling import strata_of
from ragforge.measures.label_sampling import label_order, label_sizes
from ragforge.records import Provenance, SampledRun

N = 100_000
_MOST_BYTES = 300 * 2**20


def test_a_hundred_thousand_pairs_are_drawn_from_in_little_memory():
    """A log of production has as many; a laptop draws from it."""
    tracemalloc.start()
    made = population()
    strata, weights = strata_of(made), made.weights()

    sizes = label_sizes(weights, made.judged, 4, ideal=False)
    order = label_order(strata, sizes, made.digests(0).places, 400)

    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(order.tolist())) == 400
    assert most < _MOST_BYTES


def population():
    """Return pairs of 6,250 queries in memory."""
    generator = np.random.default_rng(0)
    levels = {("P@10", run): generator.choice([0.0, 0.1], N) for run in ("a", "b")}
    return LabelPopulation(
        Question(("a", "b"), ("P@10",)),
        tuple(f"q{q:05}" for q in range(N // 16)),
        tuple(Unit(f"q{i // 16:05}", f"c{i:06}", f"{i:064x}", ()) for i in range(N)),
        np.arange(N) // 16,
        generator.integers(0, 5, N),
        levels,
        Provenance(kind="llm"),
        tuple(SampledRun(name=run, rankings_sha256="0" * 64) for run in ("a", "b")),
        "0" * 64,
        0,
        dict.fromkeys(("a", "b"), np.ones(N // 16, dtype=bool)),
        {"a": 0, "b": 0},
        0,
    )
