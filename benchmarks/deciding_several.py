"""How few judged pairs tell which of five runs may be the best, and how often that is wrong.

    python benchmarks/deciding_several.py --qrels QRELS --run RUN … --repeat 60

Every five of the runs are decided, with the qrels as the judge. "used" is the share of the union of
their top ranks that was judged; "same" how often the runs left are those that all judgments leave;
"holds the best" is over queries drawn with replacement, where the best run is that of all queries;
"a false claim" how often there a run was called worse than one that it is better than. "null"
shuffles the runs of each query, so that all are alike: how often any is dropped. By RR and Success
the runs are read down to their first hits, in parts of the queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, TypeAlias
from unittest.mock import patch

import numpy as np
from deciding import DISCOUNTS, MEASURES, K

from ragforge.files.formats.qrels import read_qrels
from ragforge.files.formats.runs import read_run
from ragforge.measures import first_hits_several
from ragforge.measures.checked_samples import Floats
from ragforge.measures.first_hits_several import SeveralFirstHits
from ragforge.measures.sequential import shares_for
from ragforge.measures.sequential_several import RankedPairs, SeveralDecision, Standings

AT_ONCE: Final = 5
READ: Final = {"RR@10": (10, True), "Success@5": (5, False)}
"""Depth, and whether the rank of the first hit counts."""
Lists: TypeAlias = list[list[list[int]]]


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
    for measure in READ:
        print(_read_row(measure, options), flush=True)


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


def _read_row(measure: str, options: argparse.Namespace) -> str:
    used, left, same, holds, false, dropped = [], [], [], [], [], []
    depth, by_rank = READ[measure]
    for runs in combinations(options.run, AT_ONCE):
        lists, values = read_lists(options.qrels, runs, depth)
        whole = _by_all(lists, values, by_rank=by_rank)
        worth = [[_worth(of, values, by_rank=by_rank) for of in of_query] for of_query in lists]
        means = np.mean(worth, axis=0)
        best = int(means.argmax())
        for seed in range(options.repeat):
            found = read(lists, values, seed, by_rank=by_rank)
            used.append(found.n_judged / len(values))
            left.append(len(found.may_be_best))
            same.append(set(found.may_be_best) == whole)
            drawn = np.random.default_rng([seed, 5]).integers(0, len(lists), len(lists))
            again = read([lists[at] for at in drawn], values, seed, by_rank=by_rank)
            holds.append(best in again.may_be_best)
            claims = [(each.run, each.beaten_by) for each in again.runs]
            false.append(any(by is not None and means[by] < means[run] for run, by in claims))
            draw = np.random.default_rng([seed, 1])
            mixed = [[of[at] for at in draw.permutation(AT_ONCE)] for of in lists]
            alike = read(mixed, values, seed, by_rank=by_rank)
            dropped.append(len(alike.may_be_best) < AT_ONCE)
    shares = " | ".join(f"{np.mean(each):.1%}" for each in (same, holds, false, dropped))
    return f"| {measure} | {np.mean(used):.1%} | {np.mean(left):.1f} | {shares} |"


def read(lists: Lists, values: Floats, seed: int, *, by_rank: bool) -> Standings:
    """Return which runs may be the best by their first hits."""
    places = np.random.default_rng([seed, 2]).random(len(lists))
    nothing = np.full(len(values), np.nan)
    reading = SeveralFirstHits(lists, nothing, by_rank, places, np.ones(len(lists)))
    seen = nothing.copy()
    while True:
        wanted = reading.wanted()
        seen[wanted] = values[wanted]
        found = reading.look(seen.copy())
        if found is not None:
            return found


def _by_all(lists: Lists, values: Floats, *, by_rank: bool) -> set[int]:
    """Return the runs that reading all queries leaves: what one look at all of them says."""
    with patch.object(first_hits_several, "PARTS", (1.0,)):
        return set(read(lists, values, 0, by_rank=by_rank).may_be_best)


def _worth(ranked: Sequence[int], values: Floats, *, by_rank: bool) -> float:
    first = next((rank for rank, at in enumerate(ranked, 1) if values[at]), 0)
    return (1 / first if by_rank else 1.0) if first else 0.0


def read_lists(qrels: Path, runs: Sequence[Path], depth: int) -> tuple[Lists, Floats]:
    """Return the tops of some runs by query, as places in the values, and which are hits."""
    judged = read_qrels(qrels)
    rankings = [read_run(path).rankings for path in runs]
    places: dict[tuple[str, str], int] = {}
    lists = []
    for query in sorted(judged):
        of_query = []
        for ranked in rankings:
            hits = ranked.get(query, {})
            top = sorted(hits, key=lambda text, hits=hits: (-hits[text], text))[:depth]
            of_query.append([places.setdefault((query, text), len(places)) for text in top])
        lists.append(of_query)
    hits_of = [float((judged[query].get(text) or 0) >= 2) for query, text in places]
    return lists, np.array(hits_of)


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
