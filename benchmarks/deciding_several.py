"""How few judged pairs tell which of five runs may be the best, and how often that is wrong.

    python benchmarks/deciding_several.py --qrels QRELS --run RUN … --repeat 60

Every five of the runs are decided, with the qrels as the judge. "used" is the share of the union of
their top ranks that was judged; "same" how often the runs left are those that all judgments leave;
"holds the best" is over queries drawn with replacement, where the best run is that of all queries;
"a false claim" how often there a run was called worse than one that it is better than. "null"
shuffles the runs of each query, so that all are alike: how often any is dropped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
from deciding import DISCOUNTS, MEASURES, K

from ragforge.files.formats.qrels import read_qrels
from ragforge.files.formats.runs import read_run
from ragforge.measures.checked_samples import Floats
from ragforge.measures.sequential import shares_for
from ragforge.measures.sequential_several import RankedPairs, SeveralDecision, Standings

AT_ONCE: Final = 5


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    print("| measure | used | left | same | holds the best | a false claim | null: any dropped |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for measure in MEASURES:
        print(_row(measure, options), flush=True)


def _row(measure: str, options: argparse.Namespace) -> str:
    used, left, same, holds, false, dropped = [], [], [], [], [], []
    for runs in combinations(options.run, AT_ONCE):
        pairs, values = read_pool(options.qrels, runs, measure)
        whole = set(decide(pairs, values, 0, shares=(1.0,)).may_be_best)
        means = (pairs.discounts * values[:, np.newaxis]).sum(axis=0)
        best = int(means.argmax())
        for seed in range(options.repeat):
            found = decide(pairs, values, seed)
            used.append(found.n_judged / len(values))
            left.append(len(found.may_be_best))
            same.append(set(found.may_be_best) == whole)
            again = decide(*drawn_anew(pairs, values, seed), seed)
            holds.append(best in again.may_be_best)
            claims = [(each.run, each.beaten_by) for each in again.runs]
            false.append(any(by is not None and means[by] < means[run] for run, by in claims))
            alike = decide(shuffled(pairs, seed), values, seed)
            dropped.append(len(alike.may_be_best) < AT_ONCE)
    shares = " | ".join(f"{np.mean(each):.1%}" for each in (same, holds, false, dropped))
    return f"| {measure} | {np.mean(used):.1%} | {np.mean(left):.1f} | {shares} |"


def decide(
    pairs: RankedPairs, values: Floats, seed: int, shares: Sequence[float] = ()
) -> Standings:
    """Return which runs may be the best."""
    places = np.random.default_rng([seed, 2]).random(len(values))
    placed = RankedPairs(pairs.queries, pairs.discounts, pairs.features, places, pairs.n_queries)
    known = np.zeros(len(values), dtype=bool)
    decision = SeveralDecision(placed, shares or shares_for(pairs.n_queries), known)
    while True:
        wanted = decision.wanted()
        seen = np.full(len(values), np.nan)
        seen[wanted] = values[wanted]
        found = decision.look(seen)
        if found is not None:
            return found


def drawn_anew(pairs: RankedPairs, values: Floats, seed: int) -> tuple[RankedPairs, Floats]:
    """Return the pairs of as many queries, drawn with replacement."""
    drawn = np.random.default_rng([seed, 5]).integers(0, pairs.n_queries, pairs.n_queries)
    kept = [np.flatnonzero(pairs.queries == query) for query in drawn]
    rows = np.concatenate(kept)
    queries = np.repeat(np.arange(len(drawn)), [len(each) for each in kept])
    found = RankedPairs(
        queries, pairs.discounts[rows], pairs.features[rows], pairs.places[rows], pairs.n_queries
    )
    return found, values[rows]


def shuffled(pairs: RankedPairs, seed: int) -> RankedPairs:
    """Return the pairs with the runs of each query in another order."""
    draw = np.random.default_rng([seed, 1])
    orders = np.stack([draw.permutation(AT_ONCE) for _ in range(pairs.n_queries)])
    discounts = np.take_along_axis(pairs.discounts, orders[pairs.queries], axis=1)
    return RankedPairs(pairs.queries, discounts, pairs.features, pairs.places, pairs.n_queries)


def read_pool(qrels: Path, runs: Sequence[Path], measure: str) -> tuple[RankedPairs, Floats]:
    """Return the pairs that some runs have in their top ranks, and the value of each."""
    judged = read_qrels(qrels)
    ranked = []
    for path in runs:
        rankings = read_run(path).rankings
        ranked.append(
            {
                query: sorted(hits, key=lambda text, hits=hits: (-hits[text], text))[:K]
                for query, hits in rankings.items()
            }
        )
    queries, ranks, grades = [], [], []
    for i, query in enumerate(sorted(judged)):
        places = [{text: rank for rank, text in enumerate(run.get(query, []))} for run in ranked]
        for text in sorted({text for place in places for text in place}):
            queries.append(i)
            ranks.append([place.get(text, K) for place in places])
            grades.append(min(max(judged[query].get(text) or 0, 0), 3))
    by_run = np.array(ranks)
    best = by_run.min(axis=1)
    held = (by_run < K).mean(axis=1)
    features = np.stack([np.ones(len(best)), 1 / np.log2(best + 2), held], axis=1)
    discounts = np.append(DISCOUNTS[measure], 0.0)[by_run]
    graded = np.array(grades, dtype=float)
    values = (graded >= 2).astype(float) if measure == "P@10" else graded
    places_of = np.zeros(len(best))
    return RankedPairs(np.array(queries), discounts, features, places_of, len(judged)), values


if __name__ == "__main__":
    main()
