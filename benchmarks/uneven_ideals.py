"""Which run nDCG names where queries differ in how much relevant text they have.

    python benchmarks/uneven_ideals.py
    python benchmarks/uneven_ideals.py --repeat 100 --seed 1

Sets of 60 queries with 25 pairs each. In some queries several texts are relevant, of which run A
finds most and run C a part; in the others one is, which C ranks first and A lower. So A leads in
DCG, and C may lead in nDCG. The judge calls a tenth of the other texts relevant.

"refused" is how often the labels are hardly of the model of the divisor, "holds" how often an
interval over these queries holds what people found, where not refused. "wrong" is how often the
worse run by nDCG wins: its interval over queries like these leaves 0 out, and DCG shows the same
run. "by DCG" is how often it would win if DCG alone decided.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from calibration import N_GRADES, K, Truth, labelled, run_weights, sample, strata_of

from ragforge.errors import UsageError
from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import CorrectedMean, corrected_mean
from ragforge.measures.corrected_ndcg import (
    RunDiscounts,
    divisors,
    ideal_dcg,
    ndcg_difference,
    refuse_misfit,
)
from ragforge.measures.distributions import student_quantile
from ragforge.measures.grade_model import GradedPool, fit_grades

N_QUERIES: Final = 60
N_PAIRS: Final = 25


class Outcome(NamedTuple):
    """What one sample of labels came to."""

    is_refused: bool
    holds: bool
    is_wrong: bool
    is_wrong_by_dcg: bool


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--labels", type=int, nargs="+", default=(200, 400), metavar="N")
    options = parser.parse_args()
    print("| queries with several | relevant texts | n | refused | holds | by DCG | wrong |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_rich, n_relevant, n in product((10, 20, 30), (3, 6, 10), options.labels):
        drawn = []
        for i in range(options.repeat):
            generator = np.random.default_rng([options.seed, i])
            drawn.append(outcome(uneven_set(n_rich, n_relevant, generator), n, generator))
        print(f"| {n_rich} | {n_relevant} | {n} | {row(drawn)} |", flush=True)


def row(drawn: list[Outcome]) -> str:
    """Return the shares of a row."""
    taken = [each.holds for each in drawn if not each.is_refused]
    refused, by_dcg, wrong = (
        f"{np.mean(column):.2f}"
        for column in (
            [each.is_refused for each in drawn],
            [each.is_wrong_by_dcg for each in drawn],
            [each.is_wrong for each in drawn],
        )
    )
    return " | ".join([refused, f"{np.mean(taken):.2f}" if taken else "-", by_dcg, wrong])


def uneven_set(n_rich: int, n_relevant: int, generator: np.random.Generator) -> Truth:
    """Return a set in which the first queries have several relevant texts, and the others one."""
    grades, of_a, of_c = (np.zeros((N_QUERIES, N_PAIRS), dtype=np.intp) for _ in range(3))
    of_a += K
    of_c += K
    for query in range(N_QUERIES):
        if query < n_rich:
            grades[query, :n_relevant] = 3
            n_a, n_c = generator.choice([7, 8, 8, 9]), generator.choice([3, 4, 5])
            a = [*range(n_a), *range(10, 20 - n_a)]
            c = [15, 16, 17, *range(n_c), *range(18, 25 - n_c)]
        else:
            grades[query, 0] = 3
            a = [*range(10, 10 + generator.choice([1, 2, 2, 2])), 0, *range(13, 20)]
            c = [0, *range(11, 20)]
        of_a[query, a[:K]] = np.arange(len(a[:K]))
        of_c[query, c[:K]] = np.arange(len(c[:K]))
    flat = grades.ravel()
    judged = np.where(flat > 0, flat, generator.choice([0, 1, 3], flat.size, p=(0.5, 0.4, 0.1)))
    queries = np.repeat(np.arange(N_QUERIES), N_PAIRS)
    ranks = {"a": of_a.ravel(), "c": of_c.ravel()}
    return Truth("uneven", queries, flat, ranks, N_QUERIES, judged)


def outcome(truth: Truth, n: int, generator: np.random.Generator) -> Outcome:
    """Return what a sample of labels on a set comes to."""
    assert truth.judged is not None
    of_a, of_c = (run_weights(truth, run, "DCG@10") for run in "ac")
    heaviest = np.maximum(of_a, of_c)
    strata = strata_of(heaviest, truth.judged)
    chosen = sample(heaviest, truth.judged, strata, n, generator, ideal=True)
    known = np.full(len(truth.grades), -1, dtype=np.intp)
    known[chosen] = truth.grades[chosen]
    features = np.hstack(
        [np.eye(N_GRADES + 1)[truth.judged][:, 1:], (heaviest > 0)[:, None], heaviest[:, None]]
    )
    model = fit_grades(GradedPool(truth.queries, features, known, N_QUERIES, N_GRADES))
    runs = RunDiscounts(of_a, of_c)
    by = divisors(model, runs, K, generator)

    def corrected(weights: Floats) -> CorrectedMean:
        pairs = labelled(truth, weights, truth.judged, chosen, "DCG@10", generator, strata)
        return corrected_mean(pairs)

    apart = of_a - of_c
    dcg = corrected(apart)
    divided = corrected(apart * by.by_query[truth.queries])
    found = ndcg_difference(corrected(of_a), corrected(of_c), dcg, by, divided)
    ideal = ideal_dcg(truth.queries, truth.grades, N_QUERIES, N_GRADES, K)
    true = float(np.mean(np.bincount(truth.queries, apart * truth.grades) / ideal))
    half = student_quantile(0.975, found.degrees) * found.error
    wide = student_quantile(0.975, found.wide_degrees) * (found.wide_error or 0.0)
    low, high = dcg.interval("queries like these")
    by_dcg = (low > 0 or high < 0) and dcg.value * found.value > 0 and found.value * true < 0
    try:
        refuse_misfit(model, runs, K, generator)
    except UsageError:
        return Outcome(True, False, False, by_dcg)
    wrong = by_dcg and abs(found.value) > max(wide, half)
    return Outcome(False, abs(found.value - true) <= half, wrong, by_dcg)


if __name__ == "__main__":
    main()
