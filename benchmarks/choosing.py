"""How often one of several equally good runs is called worse than the one that came out first.

    python benchmarks/choosing.py --runs 8,24 --queries 40,100 --repeat 400

"chosen" is `compare_with_chosen`, by which a sweep holds configurations against the best of them;
"holm" is Holm over the comparisons with it, as if it had been named before. "independent" finds a
quote by chance alone, "dependent" as hard as the query is, "alike" has runs that differ in a tenth
of the queries. At most 5 % are meant. "told apart" is how often one that is worse by 0.3 is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

import numpy as np

from ragforge.measures.chosen_best import largest_difference
from ragforge.measures.comparing import RunPair, compare_pairs, compare_with_chosen

Values = np.ndarray
MEAN: Final = 0.6
WORSE: Final = 0.3


def independent(rng: np.random.Generator, n_runs: int, n: int) -> Values:
    """Return values of 0 and 1, by run and query."""
    return (rng.random((n_runs, n)) < MEAN).astype(float)


def dependent(rng: np.random.Generator, n_runs: int, n: int) -> Values:
    """Return shares of three quotes, which are as hard to find for all."""
    return rng.binomial(3, rng.beta(0.9, 0.6, n), (n_runs, n)) / 3


def alike(rng: np.random.Generator, n_runs: int, n: int) -> Values:
    """Return values of 0 and 1 of runs that agree on most queries."""
    own = independent(rng, n_runs, n)
    return np.where(rng.random((n_runs, n)) < 0.1, own, independent(rng, 1, n))


WAYS: Final = (independent, dependent, alike)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", default="8,24")
    parser.add_argument("--queries", default="40,100")
    parser.add_argument("--repeat", type=int, default=400)
    options = parser.parse_args()
    print("| values | runs | queries | chosen | holm | told apart, chosen | holm |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for way in WAYS:
        for n_runs in map(int, options.runs.split(",")):
            for n in map(int, options.queries.split(",")):
                cells = [f"{share:.1%}" for share in shares(way, n_runs, n, options.repeat)]
                print(f"| {way.__name__} | {n_runs} | {n} | {' | '.join(cells)} |", flush=True)


def shares(
    way: Callable[[np.random.Generator, int, int], Values], n_runs: int, n: int, repeat: int
) -> list[float]:
    """Return how often an equal run is worse, and one that is worse is told apart."""
    rng = np.random.default_rng(0)
    found = np.zeros(4)
    for _ in range(repeat):
        values = way(rng, n_runs, n)
        found[:2] += is_any_worse(values)
        values[-1] *= rng.random(n) >= WORSE / MEAN
        found[2:] += is_last_worse(values)
    return [float(share) for share in found / repeat]


def is_any_worse(values: Values) -> list[bool]:
    """Return whether a run is worse than the first: by what any two differ by, and by Holm."""
    runs = sorted(values.tolist(), key=sum, reverse=True)
    by_chance, pairs = largest_difference(runs), [pair(runs[0], run) for run in runs[1:]]
    # The greatest differences have the least p values but for ties: a few are enough.
    chosen = compare_with_chosen(pairs[-3:], by_chance)
    return [any(one.winner == "A" for one in found) for found in (chosen, compare_pairs(pairs))]


def is_last_worse(values: Values) -> list[bool]:
    """Return whether the last run is worse than the first of all."""
    *others, last = values.tolist()
    best, *rest = sorted(others, key=sum, reverse=True)
    by_chance = largest_difference([best, last, *rest])
    chosen = compare_with_chosen([pair(best, last)], by_chance)
    holm = compare_pairs([pair(best, run) for run in (last, *rest)])
    return [chosen[0].winner == "A", holm[0].winner == "A"]


def pair(a: list[float], b: list[float]) -> RunPair:
    """Return two runs."""
    return RunPair("a", "b", "EvidenceR", a, b)


if __name__ == "__main__":
    main()
