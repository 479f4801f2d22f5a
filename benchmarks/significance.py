"""Measure the statistics of `ragforge.measures` beside scipy and ranx.

Run it with a Python that has ragforge's numpy, naming one that has scipy, ranx and pandas:

    python benchmarks/significance.py --peers-python /path/to/peers/bin/python

Each figure is the least of several calls in a process of its own, after one call to warm up; the
tools of a row take turns within one run, since other work on the machine slows them all alike.
Imports are not counted. The last table says how often intervals at 95 % hold the true mean.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
N_QUERIES = (200, 1_000, 6_980)
TURNS = 2
WARM_UP_AND_CALLS = (1, 5)
SLOW_S = 1.0
"""A call that takes longer is not repeated in the same turn."""

Column = np.ndarray
Call = Callable[[Column, Column], object]


class Row(NamedTuple):
    """Tools that compute the same; the first is ragforge's, the others are compared with it."""

    name: str
    tools: tuple[str, ...]


ROWS = (
    Row("randomisation, 10,000", ("flips", "ranx fisher", "scipy permutation_test")),
    Row("interval of a mean, BCa", ("ideal BCa", "scipy bootstrap BCa")),
    Row("interval, percentile", ("ideal percentile", "scipy bootstrap percentile")),
    Row("the same, P@5", ("ideal BCa, P@5", "scipy bootstrap BCa, P@5")),
    Row("randomisation, P@5", ("exact, P@5", "ranx fisher, P@5", "scipy permutation_test, P@5")),
    Row("paired t", ("t", "scipy ttest_rel")),
    Row("Wilcoxon", ("signed ranks", "scipy wilcoxon")),
)
PEERS = ("ranx", "scipy")


def main() -> None:
    """Print the tables, or, called with a tool, its time."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tool:
        print(json.dumps(measure(options.tool, options.n)))
        return
    print_times(options.peers_python)
    print_coverage()


def print_times(peers_python: str) -> None:
    """Print milliseconds and ratios, one line for each row and number of queries."""
    print(f"{'':24} {'n':>6}  {'ragforge':>10}")
    for row in ROWS:
        for n in N_QUERIES:
            ours, *others = fastest(row, n, peers_python)
            cells = [
                f"{tool}: {seconds * 1e3:,.2f} ms = {seconds / ours:,.3g}x"
                for tool, seconds in zip(row.tools[1:], others, strict=True)
            ]
            print(f"{row.name:24} {n:>6}  {ours * 1e3:>7.2f} ms  {'; '.join(cells)}", flush=True)


def fastest(row: Row, n: int, peers_python: str) -> list[float]:
    """Return the least seconds of each tool of a row."""
    least = [float("inf")] * len(row.tools)
    for _ in range(TURNS):
        for index, tool in enumerate(row.tools):
            python = peers_python if tool.startswith(PEERS) else sys.executable
            command = [python, str(Path(__file__)), "--tool", tool, "--n", str(n)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            least[index] = min(least[index], json.loads(done.stdout))
    return least


def measure(tool: str, n: int) -> float:
    """Return the least seconds that a tool takes."""
    baseline, candidate = grades_of_five(n) if tool.endswith("P@5") else ndcg(n)
    call = (peer_tools if tool.startswith(PEERS) else own_tools)()[tool.removesuffix(", P@5")]
    warm_up, calls = WARM_UP_AND_CALLS
    least = float("inf")
    for turn in range(warm_up + calls):
        start = perf_counter()
        call(baseline, candidate)
        seconds = perf_counter() - start
        if turn >= warm_up or seconds > SLOW_S:
            least = min(least, seconds)
        if seconds > SLOW_S:
            break
    return least


def ndcg(n: int) -> tuple[Column, Column]:
    """Make values on no lattice, between 0 and 1, with a true difference of some 0.01."""
    generator = np.random.default_rng(n)
    baseline = generator.beta(0.8, 0.6, n)
    return baseline, np.clip(baseline + generator.normal(0.01, 0.1, n), 0, 1)


def grades_of_five(n: int) -> tuple[Column, Column]:
    """Make values of a measure such as P@5."""
    generator = np.random.default_rng(n)
    baseline = generator.integers(0, 6, n)
    return baseline / 5, np.clip(baseline + generator.integers(-1, 2, n), 0, 5) / 5


def own_tools() -> dict[str, Call]:
    """Return ragforge's tools by name."""
    sys.path.insert(0, str(ROOT))
    from ragforge.measures.intervals import mean_interval
    from ragforge.measures.paired import randomisation_test, signed_rank_test, t_test

    def flips(a: Column, b: Column) -> object:
        return randomisation_test(a, b, seed=1, n_permutations=10_000)

    return {
        "flips": flips,
        "exact": flips,
        "ideal BCa": lambda _, b: mean_interval(b, method="bca"),
        "ideal percentile": lambda _, b: mean_interval(b, method="percentile"),
        "t": t_test,
        "signed ranks": signed_rank_test,
    }


def peer_tools() -> dict[str, Call]:
    """Return the others' tools by name."""
    from ranx.statistical_tests.fisher_randomization_test import fisher_randomization_test
    from scipy import stats

    def bootstrap(method: str) -> Call:
        return lambda _, b: stats.bootstrap((b,), np.mean, n_resamples=9_999, method=method, rng=1)

    def permutation(a: Column, b: Column) -> object:
        return stats.permutation_test(
            (a, b),
            lambda x, y, axis: np.mean(x - y, axis=axis),
            permutation_type="samples",
            n_resamples=9_999,
            vectorized=True,
            rng=1,
        )

    return {
        "ranx fisher": lambda a, b: fisher_randomization_test(a, b, n_permutations=10_000),
        "scipy permutation_test": permutation,
        "scipy bootstrap BCa": bootstrap("BCa"),
        "scipy bootstrap percentile": bootstrap("percentile"),
        "scipy ttest_rel": stats.ttest_rel,
        "scipy wilcoxon": lambda a, b: stats.wilcoxon(b - a),
    }


def populations() -> Iterator[tuple[str, float, Callable[[np.random.Generator, int], Column]]]:
    """Yield kinds of values with their true mean."""
    yield "nDCG-like, mean 0.57", 0.8 / 1.4, lambda g, n: g.beta(0.8, 0.6, n)
    yield "success rate 0.7", 0.7, lambda g, n: (g.random(n) < 0.7).astype(float)
    yield "success rate 0.9", 0.9, lambda g, n: (g.random(n) < 0.9).astype(float)
    yield (
        "differences, 70 % ties",
        0.015,
        lambda g, n: np.where(g.random(n) < 0.7, 0, g.normal(0.05, 0.3, n)),
    )


def print_coverage() -> None:
    """Print how often intervals at 95 % hold the true mean, in 1,000 samples."""
    sys.path.insert(0, str(ROOT))
    from ragforge.measures.intervals import Method, mean_interval

    methods: tuple[Method, ...] = ("bca", "percentile", "student")
    print(f"\n{'95 % intervals that hold':24} {'n':>6}  " + "  ".join(f"{m:>10}" for m in methods))
    for name, mean, draw in populations():
        for n in (20, 50, 200):
            generator = np.random.default_rng(n)
            held = dict.fromkeys(methods, 0)
            for _ in range(1_000):
                values = draw(generator, n)
                for method in methods:
                    found = mean_interval(values, method=method)
                    held[method] += found.low - 1e-9 <= mean <= found.high + 1e-9
            shares = "  ".join(f"{held[method] / 10:>8.1f} %" for method in methods)
            print(f"{name:24} {n:>6}  {shares}", flush=True)


if __name__ == "__main__":
    main()
