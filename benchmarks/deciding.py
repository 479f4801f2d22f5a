"""How few judged pairs decide which of two runs is better, and how often that is wrong.

    python benchmarks/deciding.py --qrels QRELS --run RUN --run RUN …
    python benchmarks/deciding.py … --repeat 200              # the figures of the documents

The qrels are the judge; what they do not hold is grade 0. Pairs of runs are "far" where a t test on
all pairs gives |t| of at least 4, "mid" where it names another winner, "close" where it names none.
"used" is the share of the pool (both top k) that was judged; "agrees" how often the decision is
that of the whole pool; "opposite" how often it names the other run. "null" swaps the runs of each
query by a coin: how often a winner is named, beside a t test of the same swaps.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from ragforge.files.formats.qrels import read_qrels
from ragforge.files.formats.runs import read_run
from ragforge.measures.checked_samples import Floats
from ragforge.measures.distributions import student_sf
from ragforge.measures.sequential import (
    DecidedDifference,
    DecidingPairs,
    SequentialDecision,
    shares_for,
)

K: Final = 10
MEASURES: Final = ("DCG@10", "P@10")
DISCOUNTS: Final = {"P@10": np.full(K, 1 / K), "DCG@10": 1 / np.log2(np.arange(2, K + 2))}


@dataclass(frozen=True, slots=True)
class Couple:
    """Two runs on one pool."""

    name: str
    queries: np.ndarray
    ranks: np.ndarray
    """Shape (2, N), K where a run does not have the pair in its top K."""
    grades: np.ndarray
    n_queries: int

    def weights(self, measure: str, signs: Floats | None = None) -> Floats:
        """Return what each pair weighs in B minus A; signs swap the runs of queries."""
        padded = np.append(DISCOUNTS[measure], 0.0)
        found: Floats = padded[self.ranks[1]] - padded[self.ranks[0]]
        return found if signs is None else found * signs[self.queries]

    def values(self, measure: str) -> Floats:
        """Return the value of each pair."""
        found: Floats = (
            (self.grades >= 2).astype(float) if measure == "P@10" else self.grades.astype(float)
        )
        return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    couples = list(read_couples(options.qrels, options.run))
    print("| measure | pairs of runs | A judged | used | agrees | opposite |")
    print("| --- | --- | --- | --- | --- | --- |")
    for measure in MEASURES:
        for kind in ("far", "mid", "close"):
            chosen = [c for c in couples if kind_of(t_of(c, measure)) == kind]
            for before in (False, True):
                print(_row(measure, kind, chosen, before, options), flush=True)
    print("\n| measure | null winners | t test on the same swaps |\n| --- | --- | --- |")
    for measure in MEASURES:
        print(_null_row(measure, couples, options), flush=True)


def _row(
    measure: str, kind: str, couples: Sequence[Couple], before: bool, options: argparse.Namespace
) -> str:
    used, agrees, opposite = [], [], []
    for couple in couples:
        full = outcome_of(t_of(couple, measure), couple.n_queries)
        for seed in range(options.seed, options.seed + options.repeat):
            found, n_judged, n_pool = decide(couple, measure, seed, a_judged=before)
            used.append(n_judged / n_pool)
            agrees.append(found == full)
            opposite.append({found, full} == {"a", "b"})
    if not used:
        return f"| {measure} | {kind} (0) | | | | |"
    cells = f"{np.mean(used):.1%} | {np.mean(agrees):.1%} | {np.mean(opposite):.1%}"
    return f"| {measure} | {kind} ({len(couples)}) | {'yes' if before else 'no'} | {cells} |"


def _null_row(measure: str, couples: Sequence[Couple], options: argparse.Namespace) -> str:
    named = tested = n = 0
    for couple in couples:
        for seed in range(options.seed, options.seed + options.repeat):
            signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], couple.n_queries)
            found, _, _ = decide(couple, measure, seed, signs=signs)
            named += found != "tie"
            tested += outcome_of(t_of(couple, measure, signs), couple.n_queries) != "tie"
            n += 1
    return f"| {measure} | {named / n:.1%} | {tested / n:.1%} |"


def decide(
    couple: Couple,
    measure: str,
    seed: int,
    *,
    a_judged: bool = False,
    signs: Floats | None = None,
) -> tuple[str, int, int]:
    """Return who won, how many pairs were judged, and how many the pool has."""
    decision, decided = decided_by(
        couple, measure, seed, couple.values(measure), a_judged=a_judged, signs=signs
    )
    return decided.outcome, decision.n_judged, len(couple.queries)


def decided_by(
    couple: Couple,
    measure: str,
    seed: int,
    values: Floats,
    *,
    a_judged: bool = False,
    signs: Floats | None = None,
) -> tuple[SequentialDecision, DecidedDifference]:
    """Return the decision by a judge's values of the pairs, with what was drawn, and its end."""
    weights = couple.weights(measure, signs)
    active = np.flatnonzero(weights)
    best = np.minimum(couple.ranks[0], couple.ranks[1])[active]
    in_both = (couple.ranks[:, active] < K).all(axis=0)
    features = np.stack([np.ones(len(active)), 1 / np.log2(best + 2), in_both], axis=1)
    places = np.random.default_rng([seed, 2]).random(len(weights))[active]
    known = (couple.ranks[0] < K)[active] if a_judged else np.zeros(len(active), dtype=bool)
    pairs = DecidingPairs(
        couple.queries[active], weights[active], features, places, couple.n_queries
    )
    decision = SequentialDecision(pairs, shares_for(couple.n_queries), known)
    while True:
        wanted = decision.wanted()
        seen = np.full(len(active), np.nan)
        seen[wanted] = values[active][wanted]
        decided = decision.look(seen)
        if decided is not None:
            return decision, decided


def t_of(couple: Couple, measure: str, signs: Floats | None = None) -> float:
    """Return Student's t of B minus A by all grades."""
    summed = np.bincount(
        couple.queries,
        weights=couple.weights(measure, signs) * couple.values(measure),
        minlength=couple.n_queries,
    )
    error = float(summed.std(ddof=1)) / np.sqrt(couple.n_queries)
    return float(summed.mean() / error) if error else 0.0


def outcome_of(t: float, n_queries: int) -> str:
    """Return who wins by a t test at 5 %."""
    if 2 * student_sf(abs(t), n_queries - 1) >= 0.05:
        return "tie"
    return "b" if t > 0 else "a"


def kind_of(t: float) -> str:
    """Return how far two runs are apart."""
    if abs(t) >= 4:
        return "far"
    return "mid" if abs(t) > 2.02 else "close"


def read_couples(qrels: Path, runs: Sequence[Path]) -> Iterator[Couple]:
    """Yield every two runs with their pool."""
    judged = read_qrels(qrels)
    ranked = {}
    for path in runs:
        rankings = read_run(path).rankings
        ranked[path.name.partition(".trec")[0]] = {
            query: sorted(hits, key=lambda text, hits=hits: (-hits[text], text))[:K]
            for query, hits in rankings.items()
        }
    for a, b in combinations(ranked, 2):
        queries, ranks, grades = [], [], []
        for i, query in enumerate(sorted(judged)):
            places = [
                {text: rank for rank, text in enumerate(ranked[name].get(query, []))}
                for name in (a, b)
            ]
            for text in sorted(places[0].keys() | places[1].keys()):
                queries.append(i)
                ranks.append([place.get(text, K) for place in places])
                grades.append(min(max(judged[query].get(text) or 0, 0), 3))
        yield Couple(
            f"{a} {b}",
            np.array(queries),
            np.array(ranks).T,
            np.array(grades),
            len(judged),
        )


if __name__ == "__main__":
    main()
