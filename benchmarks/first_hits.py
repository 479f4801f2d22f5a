"""How many judged pairs reading two runs down to their first hits takes.

    python benchmarks/first_hits.py --qrels QRELS --run RUN --run RUN …

The qrels are the judge. The difference is that of all judgments, so that only the cost is measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from deciding import K, kind_of, read_couples

from ragforge.measures.first_hits import FirstHits


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qrels", type=Path, required=True)
    parser.add_argument("--run", type=Path, action="append", required=True)
    options = parser.parse_args()
    print("| measure | pairs of runs | judged of the pool |\n| --- | --- | --- |")
    for measure in ("RR@10", "Success@5"):
        used: dict[str, list[float]] = {}
        for couple in read_couples(options.qrels, options.run):
            depth = K if measure == "RR@10" else 5
            lists = [
                tuple(_ranked(couple.queries == query, side, depth) for side in couple.ranks)
                for query in range(couple.n_queries)
            ]
            hits = (couple.grades >= 2).astype(float)
            reading = FirstHits(lists, np.full(len(hits), np.nan), by_rank=measure == "RR@10")
            seen = reading.values.copy()
            found = None
            while found is None:
                wanted = reading.wanted()
                seen[wanted] = hits[wanted]
                found = reading.look(seen)
            in_pool = int((couple.ranks.min(axis=0) < depth).sum())
            used.setdefault(kind_of(found.look.z), []).append(found.look.n_judged / in_pool)
        for kind, shares in sorted(used.items()):
            print(f"| {measure} | {kind} ({len(shares)}) | {np.mean(shares):.1%} |")


def _ranked(of_query: np.ndarray, ranks: np.ndarray, depth: int) -> list[int]:
    places = np.flatnonzero(of_query & (ranks < depth))
    return [int(at) for at in places[np.argsort(ranks[places])]]


if __name__ == "__main__":
    main()
