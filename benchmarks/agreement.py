"""How often the intervals of `calibrate report` hold the agreement that they are about.

    python benchmarks/agreement.py --qrels QRELS --confusion CONFUSION.json --repeat 1000
    python benchmarks/agreement.py --qrels PEOPLE --judged MODEL --repeat 1000

The queries of a set that people graded as a whole are taken for all queries there are. Each judge
grades them once; then sets of queries are drawn with replacement, and the interval of each figure
is held against its value over all queries. Judges are drawn as in `calibration.py`, or are a file
of a real one. "undefined" is how many sets there are for which a figure has no interval; what
stands behind "x" is the mean width of the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from calibration import N_GRADES, Integers, Truth, judges_of, read_truth

from ragforge.measures.grader_agreement import Grader, agree
from ragforge.measures.intervals import ClusteredInterval


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--judged", type=Path, help="qrels of a real judge")
    parser.add_argument("--confusion", type=Path, help="tables of how judges erred")
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--queries", type=int, nargs="+", default=(10, 25, 50), metavar="N")
    parser.add_argument("--judge", action="append", help="of those there are; all if not given")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    truth = read_truth(
        argparse.Namespace(**vars(options), run=[], simulated_runs=1, keep_relevant=1.0)
    )
    print(
        "| judge | figure | value | "
        + " | ".join(f"holds, {n} queries" for n in options.queries)
        + " |"
    )
    print("| --- | --- | --- | " + " | ".join("---" for _ in options.queries) + " |")
    for name, judge in judges_of(truth, options.confusion):
        if name in ("useless", "favours run A") or name not in (options.judge or [name]):
            continue
        judged = judge(np.random.default_rng(options.seed), truth, next(iter(truth.ranks.values())))
        print_judge(name, truth, judged, options)


def print_judge(name: str, truth: Truth, judged: Integers, options: argparse.Namespace) -> None:
    """Print a row for each figure of one judge."""
    rows = [np.flatnonzero(truth.queries == query) for query in range(truth.n_queries)]
    rows = [row[judged[row] < N_GRADES] for row in rows]
    expected = figures(truth, judged, rows)
    held = {n: dict.fromkeys(expected, 0) for n in options.queries}
    lost = {n: dict.fromkeys(expected, 0) for n in options.queries}
    widths = {n: dict.fromkeys(expected, 0.0) for n in options.queries}
    for n in options.queries:
        for repeat in range(options.repeat):
            generator = np.random.default_rng([options.seed, n, repeat])
            drawn = figures(truth, judged, [rows[at] for at in generator.integers(0, len(rows), n)])
            for figure, true in expected.items():
                found = drawn.get(figure)
                if found is None or found.low is None or found.high is None:
                    lost[n][figure] += 1
                else:
                    held[n][figure] += found.low <= true.value <= found.high
                    widths[n][figure] += found.high - found.low
    for figure, true in expected.items():
        cells = []
        for n in options.queries:
            there = options.repeat - lost[n][figure]
            share = "-"
            if there:
                share = f"{held[n][figure] / there:.3f} x {widths[n][figure] / there:.3f}"
            cells.append(share + (f" ({lost[n][figure]} undefined)" if lost[n][figure] else ""))
        print(f"| {name} | {figure} | {true.value:.3f} | {' | '.join(cells)} |", flush=True)


def figures(
    truth: Truth, judged: Integers, rows: list[Integers]
) -> Mapping[str, ClusteredInterval]:
    """Return the figures of a judge on the pairs of some queries, each drawn as one of its own."""
    taken = np.concatenate(rows)
    names = np.repeat([f"q{at}" for at in range(len(rows))], [len(row) for row in rows])
    people, grades = truth.grades[taken].tolist(), judged[taken].tolist()
    return agree(names.tolist(), people, [Grader("judge", grades)]).graders[0].figures


if __name__ == "__main__":
    main()
