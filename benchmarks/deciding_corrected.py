"""What people's labels on a part of the sampled pairs do for a decision by a judge who errs.

    python benchmarks/deciding_corrected.py --qrels QRELS --run RUN … --confusion CONFUSION.json

Research: a judge of `calibration.py` grades the pairs that `compare --judge-as-needed` asks for, up
to where it ends. People's labels, the qrels, are then drawn of n of the judged pairs, so that the
probability of a label is that of both draws. The difference in DCG@10 is corrected by fitted grade
means; ranks stand in for what nobody graded, fitted on the labels.

"alone" is the decision by the judge, "corrected" that by the interval over queries like these.
Both are held against the t test of all human grades: "agrees"; "wrong", a winner that is not the
one of all human grades, who may name none; "worse", a winner that has less by all human grades.
"holds" is the share of the 95 % intervals over these queries that hold the difference by all human
grades; "width" is that of those intervals. Where n is above nine tenths of the judged pairs, all of
them are labelled. "whole pool" is the same where the judge grades all pairs; "no judge" gives one
grade to all, which costs nothing; "people" are decisions as needed with people as the judge.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from calibration import Generator, Judging, Truth, judges_of, labelled, sample, strata_of
from deciding import Couple, decide, decided_by, outcome_of, read_couples, t_of

from ragforge.measures.checked_samples import Floats
from ragforge.measures.corrected import MOST_DRAWN, Integers, corrected_mean, merged
from ragforge.measures.distributions import student_quantile
from ragforge.measures.sequential import DecidingPairs

MEASURE = "DCG@10"


class Graded(NamedTuple):
    """The pairs that a judge graded, and with which probability each was drawn."""

    drawn: Integers
    judged: Integers
    probabilities: Floats


class Corrected(NamedTuple):
    """The difference by people's labels, B minus A, and two half widths."""

    difference: float
    half: float
    """Of the interval over these queries."""
    wide_half: float
    """Over queries like these."""
    n_labels: int

    @property
    def outcome(self) -> str:
        """Who wins."""
        if abs(self.difference) <= self.wide_half:
            return "tie"
        return "b" if self.difference > 0 else "a"


class Case(NamedTuple):
    """One decision."""

    share: float
    full: str
    """Who wins by all human grades."""
    better: str
    """Who has more by all human grades, by chance or not."""
    truth: float
    alone: str
    corrected: Corrected


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--confusion", type=Path, required=True, help="tables of how judges erred")
    parser.add_argument("--labels", type=int, nargs="+", default=(100, 200), metavar="N")
    parser.add_argument("--judge", action="append", help="of those there are; all if not given")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    couples = list(read_couples(options.qrels, options.run))
    judges = dict(judges_of(_truth(couples[0]), options.confusion))
    print("| judge | judged of the pool | labels | alone: agrees | wrong | worse ", end="")
    print("| corrected: agrees | wrong | worse | holds | width |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print(_people_row(couples, options.repeat), flush=True)
    chosen = {name: judges[name] for name in options.judge or judges}
    for name, judge in {"no judge": _all_alike, **chosen}.items():
        cases: dict[tuple[int, bool], list[Case]] = {}
        for couple, seed in product(couples, range(options.repeat)):
            for design, case in _cases(couple, judge, options.labels, seed):
                cases.setdefault(design, []).append(case)
        for (_, is_whole), row in cases.items():
            if is_whole or name != "no judge":
                print(f"| {name}{', whole pool' * is_whole} | {_cells(row)} |", flush=True)


def _people_row(couples: Sequence[Couple], repeat: int) -> str:
    labels, agrees = [], []
    for couple in couples:
        full = outcome_of(t_of(couple, MEASURE), couple.n_queries)
        for seed in range(repeat):
            found, n_judged, _ = decide(couple, MEASURE, seed)
            labels.append(n_judged)
            agrees.append(found == full)
    return f"| people | - | {np.mean(labels):.0f} | {np.mean(agrees):.1%} | | | | | | | |"


def _cases(
    couple: Couple, judge: Judging, labels: Sequence[int], seed: int
) -> Iterator[tuple[tuple[int, bool], Case]]:
    """Yield what comes of each number of labels, as needed and by the whole pool."""
    generator = np.random.default_rng([seed, 3])
    judged = judge(generator, _truth(couple), couple.ranks[seed % 2])
    active = np.flatnonzero(couple.weights(MEASURE))
    people = couple.grades[active]
    t, m = t_of(couple, MEASURE), couple.n_queries
    decision, decided = decided_by(couple, MEASURE, seed, judged.astype(float))
    whole = outcome_of(t_of(replace(couple, grades=judged), MEASURE), m)
    truth = float((decision.pairs.weights * people).sum()) / m
    for n, is_whole in product(labels, (False, True)):
        p = np.ones(len(active)) if is_whole else decision.probabilities
        drawn = np.flatnonzero(decision.pairs.places < p)
        graded = Graded(drawn, judged[active][drawn], p[drawn])
        yield (
            (n, is_whole),
            Case(
                1.0 if is_whole else decision.n_judged / len(judged),
                outcome_of(t, m),
                "b" if t > 0 else "a",
                truth,
                whole if is_whole else decided.outcome,
                corrected(decision.pairs, people, graded, n, generator),
            ),
        )


def corrected(
    pairs: DecidingPairs, people: Integers, graded: Graded, n: int, generator: Generator
) -> Corrected:
    """Return the difference by n labels on pairs that the judge graded.

    Args:
        pairs: That decide, N of them.
        people: Their human grades, shape (N,): of pairs that get no label they are not looked at.
        graded: Those that were drawn for the judge.
        n: Labels.
        generator: Draws the labels.
    """
    drawn, judged, p = graded
    truth = Truth("", pairs.queries[drawn], people[drawn], {}, pairs.n_queries, None)
    weights = pairs.weights[drawn] / p
    n = n if n <= MOST_DRAWN * len(drawn) else len(drawn)
    strata = strata_of(weights, judged)
    chosen = sample(weights, judged, strata, n, generator)
    among = labelled(truth, weights, judged, chosen, MEASURE, generator, strata)
    is_labelled = ~np.isnan(among.values)
    strata = merged(among.strata, is_labelled)
    sizes = np.bincount(strata) / np.bincount(strata[is_labelled], minlength=strata.max() + 1)
    # Inverse of the probability of a label, where the judge has graded.
    times = sizes[strata[chosen]]
    by_rank = _by_rank(pairs.features, drawn[chosen], among.values[chosen], times / p[chosen])
    beyond = replace(
        among,
        values=among.values - by_rank[drawn],
        priors=among.priors - float(by_rank[drawn].mean()),
    )
    found = corrected_mean(beyond)
    by_query = found.by_query + np.bincount(
        pairs.queries, pairs.weights * by_rank, minlength=pairs.n_queries
    )
    m = pairs.n_queries
    missed = weights[chosen] * beyond.values[chosen]
    of_judged = float((times * (1 - p[chosen]) * missed**2).sum()) / m**2
    error = sqrt(found.error**2 + of_judged)
    degrees = n - 5
    wide_error = sqrt(float(by_query.var(ddof=1)) / m * (n - 1) / degrees)
    return Corrected(
        float(by_query.mean()),
        student_quantile(0.975, degrees) * error,
        student_quantile(0.975, m - 1) * wide_error,
        n,
    )


def _by_rank(features: Floats, labelled_at: Integers, values: Floats, times: Floats) -> Floats:
    """Return what ranks let expect of each pair, by least squares on the labels."""
    root = np.sqrt(times)
    fitted, *_ = np.linalg.lstsq(
        features[labelled_at] * root[:, np.newaxis], values * root, rcond=None
    )
    found: Floats = features @ fitted
    return found


def _all_alike(_generator: Generator, truth: Truth, _ranks: Integers) -> Integers:
    return np.zeros_like(truth.grades)


def _truth(couple: Couple) -> Truth:
    return Truth(couple.name, couple.queries, couple.grades, {}, couple.n_queries, None)


def _cells(cases: Sequence[Case]) -> str:
    share = f"{np.mean([case.share for case in cases]):.1%}"
    alone = _shares([(case.alone, case) for case in cases])
    labels = np.mean([case.corrected.n_labels for case in cases])
    holds = [abs(c.corrected.difference - c.truth) <= c.corrected.half + 1e-9 for c in cases]
    width = np.mean([2 * case.corrected.half for case in cases])
    found = _shares([(case.corrected.outcome, case) for case in cases])
    cells = [share, f"{labels:.0f}", *alone, *found, f"{np.mean(holds):.1%}", f"{width:.2f}"]
    return " | ".join(cells)


def _shares(decided: Sequence[tuple[str, Case]]) -> list[str]:
    """Return how often decisions agree, name a wrong winner, and the worse run."""
    cells = (
        [outcome == case.full for outcome, case in decided],
        [outcome not in ("tie", case.full) for outcome, case in decided],
        [outcome not in ("tie", case.better) for outcome, case in decided],
    )
    return [f"{np.mean(each):.1%}" for each in cells]


if __name__ == "__main__":
    main()
