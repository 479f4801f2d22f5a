"""How far intervals over queries like these are planned too narrow, and what makes up for it.

    python benchmarks/planned_widths.py --qrels QRELS --run RUN … --confusion CONFUSION.json
    python benchmarks/planned_widths.py --qrels PEOPLE --judged MODEL --simulated-runs 6 …

`calibrate plan` knows of a pair what people mean by its grade on other sets. On a set that people
graded as a whole the variance of a measure over queries is held against the one that it plans, by
two runs at a time and all labels. "grades" is the width planned if the pairs of a query had nothing
in common beyond their grades, over the real one; "planned" is the width by the shares in
`planning.py`, over it. The last line has the shares that fit this set, by least squares.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from calibration import (
    DISCOUNTS,
    N_GRADES,
    Judging,
    Truth,
    generators,
    judges_of,
    read_truth,
    retrieved_only,
    two_runs,
    values_of,
    weights_of,
)

from ragforge.calibration.expected import expected_values, expected_variances
from ragforge.calibration.planning import ALIKE_IN_QUERY, ALIKE_IN_RUN
from ragforge.measures import parse_measure
from ragforge.measures.checked_samples import Floats

THRESHOLD = 2


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", default=[])
    parser.add_argument("--judged", type=Path, help="qrels of a real judge")
    parser.add_argument("--confusion", type=Path, help="tables of how judges erred")
    parser.add_argument("--simulated-runs", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.keep_relevant, options.ndcg_repeat = 1.0, 0
    truth = retrieved_only(read_truth(options))
    print("| judge | measure | of | grades | planned |")
    print("| --- | --- | --- | --- | --- |")
    rows = []
    for name, judge in judges_of(truth, options.confusion):
        for measure in DISCOUNTS:
            for of in ("level", "difference"):
                row = mean_terms(truth, judge, measure, options, is_difference=of == "difference")
                rows.append(row / row[0])
                planned = row[1] + ALIKE_IN_QUERY * row[2] + ALIKE_IN_RUN * row[3]
                cells = [f"{np.sqrt(term / row[0]):.2f}" for term in (row[1], planned)]
                print(f"| {name} | {measure} | {of} | {' | '.join(cells)} |", flush=True)
    terms = np.array(rows)
    (in_query, in_run), *_ = np.linalg.lstsq(terms[:, 2:], 1 - terms[:, 1], rcond=None)
    print(f"\nfits this set: {in_query:.2f} of a query, {in_run:.2f} of a run")


def mean_terms(
    truth: Truth, judge: Judging, measure: str, options: argparse.Namespace, *, is_difference: bool
) -> Floats:
    """Return four variances over queries, shape (4,), each the mean over couples of runs.

    The real one, the one by grades alone, and what a query and a run would add if all that grades
    leave open were theirs.
    """
    parsed = parse_measure(measure)
    means = expected_values(parsed, THRESHOLD)
    variances = expected_variances(parsed, THRESHOLD)
    found = []
    for generator in generators(options):
        a, b = two_runs(truth, generator)
        judged = judge(generator, truth, truth.ranks[a])
        assert judged.max() <= N_GRADES
        weights = weights_of(truth, a, b, measure, is_difference=is_difference)
        missed = weights * np.sqrt(variances[judged])
        real = _by_query(truth, weights * values_of(truth, measure)).var(ddof=1)
        known = _by_query(truth, weights * means[judged]).var(ddof=1)
        alone = float((missed**2).sum()) / truth.n_queries
        in_query = (_by_query(truth, missed) ** 2).mean()
        in_run = (_by_query(truth, np.abs(missed)) ** 2).mean()
        found.append([real, known + alone, in_query, in_run])
    return np.mean(found, axis=0)


def _by_query(truth: Truth, values: Floats) -> Floats:
    return np.bincount(truth.queries, weights=values, minlength=truth.n_queries)


if __name__ == "__main__":
    main()
