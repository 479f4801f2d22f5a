"""How often sampled pairs decide by nDCG as all grades do, with the ideal estimated on the way.

    python benchmarks/deciding_ndcg.py --qrels QRELS --run RUN --run RUN … --repeat 40

Research: `compare --judge-as-needed` refuses nDCG, as its ideal needs the grades of all texts. Here
each look estimates it: drawn texts count as graded, the others as the drawn ones of all queries are
in the mean, and the difference in DCG of each query is divided by the ideal of that. "by DCG" are
the decisions that the command makes. Both are held against the t test of nDCG by all grades of the
pool; "null" swaps the runs of each query by a coin.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from deciding import DISCOUNTS, Couple, K, decide, outcome_of, read_couples

from ragforge.measures.checked_samples import Floats
from ragforge.measures.sequential import (
    EARLY,
    FUTILE,
    LAST,
    LEAST_PAIRS,
    DecidingPairs,
    Look,
    drawing_probabilities,
    looked,
    shares_for,
)

GRADES = np.arange(4)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    couples = list(read_couples(options.qrels, options.run))
    print("| decided by | used | agrees with nDCG | opposite | null winners |")
    print("| --- | --- | --- | --- | --- |")
    for name in ("nDCG, ideal estimated", "DCG"):
        used, agrees, opposite, null = [], [], [], []
        for couple in couples:
            n = couple.n_queries
            full = outcome_of(_t(_differences(couple, couple.weights("DCG@10"))), n)
            for seed in range(options.repeat):
                signs = np.random.default_rng([seed, 1]).choice([-1.0, 1.0], n)
                if name == "DCG":
                    found, n_judged, n_pool = decide(couple, "DCG@10", seed)
                    swapped, _, _ = decide(couple, "DCG@10", seed, signs=signs)
                else:
                    found, n_judged, n_pool = decide_ndcg(couple, seed)
                    swapped, _, _ = decide_ndcg(couple, seed, signs)
                used.append(n_judged / n_pool)
                agrees.append(found == full)
                opposite.append({found, full} == {"a", "b"})
                null.append(swapped != "tie")
        shares = " | ".join(f"{np.mean(each):.1%}" for each in (used, agrees, opposite, null))
        print(f"| {name} | {shares} |", flush=True)


def decide_ndcg(couple: Couple, seed: int, signs: Floats | None = None) -> tuple[str, int, int]:
    """Return who won, how many pairs were judged, and how many the pool has."""
    weights, values = couple.weights("DCG@10", signs), couple.grades.astype(float)
    best = couple.ranks.min(axis=0)
    in_both = (couple.ranks < K).all(axis=0)
    features = np.stack([np.ones(len(best)), 1 / np.log2(best + 2), in_both], axis=1)
    places = np.random.default_rng([seed, 2]).random(len(weights))
    nothing = np.zeros(len(weights), dtype=bool)
    probabilities = np.zeros(len(weights))
    shares = shares_for(couple.n_queries)
    for share in shares:
        drawn_by = drawing_probabilities(weights, nothing, share)
        probabilities = np.maximum(probabilities, drawn_by)
        drawn = places < probabilities
        ideals = _ideals(couple, drawn, probabilities)
        pairs = DecidingPairs(
            couple.queries, weights / ideals[couple.queries], features, places, couple.n_queries
        )
        look = looked(pairs, values, drawn, probabilities, nothing, share)
        told = _outcome(look, is_last=share == shares[-1])
        if told:
            return told, look.n_judged, len(weights)
    raise AssertionError


def _outcome(look: Look, *, is_last: bool) -> str:
    """Return what a look ends with; "" where it goes on."""
    named = "b" if look.difference > 0 else "a"
    if is_last:
        return named if abs(look.z) > LAST else "tie"
    if look.n_judged < LEAST_PAIRS:
        return ""
    if abs(look.z) > EARLY:
        return named
    chance = look.chance_of_winner
    return "tie" if chance is not None and chance < FUTILE else ""


def _ideals(couple: Couple, drawn: np.ndarray, probabilities: Floats) -> Floats:
    """Return the ideal DCG of each query by drawn grades, and by their mean for the others."""
    inverse = 1 / probabilities[drawn]
    shares = np.array([inverse[couple.grades[drawn] == grade].sum() for grade in GRADES])
    shares = shares / shares.sum()
    n = couple.n_queries
    unseen = np.bincount(couple.queries[~drawn], minlength=n)
    counts = unseen[:, np.newaxis] * shares
    np.add.at(counts, (couple.queries[drawn], couple.grades[drawn]), 1)
    cumulated = np.append(0, np.cumsum(DISCOUNTS["DCG@10"]))
    ideals, filled = np.zeros(n), np.zeros(n)
    for grade in GRADES[::-1]:
        reached = np.minimum(filled + counts[:, grade], K)
        ranks = np.arange(K + 1)
        gained = np.interp(reached, ranks, cumulated) - np.interp(filled, ranks, cumulated)
        ideals += grade * gained
        filled = reached
    return np.maximum(ideals, 1e-9)


def _differences(couple: Couple, weights: Floats) -> Floats:
    ideals = _ideals(couple, np.ones(len(weights), dtype=bool), np.ones(len(weights)))
    summed = np.bincount(couple.queries, weights * couple.grades, minlength=couple.n_queries)
    found: Floats = summed / ideals
    return found


def _t(diffs: Floats) -> float:
    error = float(diffs.std(ddof=1)) / np.sqrt(len(diffs))
    return float(diffs.mean() / error) if error else 0.0


if __name__ == "__main__":
    main()
