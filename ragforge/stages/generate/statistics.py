"""Figures about a generated set: pure counting over what was planned, accepted and turned away."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from ragforge.measures.proportions import wilson_interval
from ragforge.records import Chunk, FunnelStep, Query, ShareRow, Spread
from ragforge.stages.words import content_stems, words

REAL_OVERLAP = 0.60
"""Median share of content words of real queries that stand in the passage that answers them.

Source: measured on the 300 questions of CLAPNQ's development set (queries of Google users).
"""
TOO_ALIKE = 0.70
"""Median from which questions are worded so much like the text that they flatter lexical search;
annotators who had the passage before them reached it (XQuAD, English: 0.71)."""


def funnel_step(name: str, unit: str, n: int, reasons: Mapping[str, int]) -> FunnelStep:
    """Return a step with the interval of the share that passed.

    Args:
        name: Of the step.
        unit: What is counted.
        n: How many came to it.
        reasons: How many were stopped, by code.
    """
    n_passed = n - sum(reasons.values())
    ends = wilson_interval(n_passed, n)
    return FunnelStep(
        name=name,
        unit=unit,
        n=n,
        n_passed=n_passed,
        low=ends.low if ends else None,
        high=ends.high if ends else None,
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    )


def share_rows(margin: str, got: Iterable[str], targets: Mapping[str, float]) -> list[ShareRow]:
    """Return a row for each value that was wanted or came out, the most wanted first.

    Args:
        margin: What the values are of.
        got: The value of each query.
        targets: Shares wanted, adding up to 1; empty where the plan has no say.
    """
    counts = Counter(got)
    total = counts.total()
    names = sorted({*counts, *targets}, key=lambda name: (-targets.get(name, 0.0), name))
    return [
        ShareRow(
            margin=margin,
            name=name,
            target=targets.get(name, 0.0) if targets else None,
            n=counts[name],
            share=counts[name] / total if total else 0.0,
        )
        for name in names
    ]


def total_variation(rows: Iterable[ShareRow]) -> float:
    """Return half the sum of the differences between shares wanted and got, in [0, 1]."""
    differences = [abs(row.share - row.target) for row in rows if row.target is not None]
    return min(1.0, sum(differences) / 2)


def spread(values: Sequence[float]) -> Spread | None:
    """Return the quartiles of some values; None of none."""
    if not values:
        return None
    q1, median, q3 = np.quantile(np.array(values, dtype=float), [0.25, 0.5, 0.75]).tolist()
    return Spread(n=len(values), q1=q1, median=median, q3=q3)


def lexical_overlap(query: Query, chunk: Chunk) -> float | None:
    """Return the share of a query's content words that stand in its chunk; None without any."""
    asked = set(content_stems(query.asked))
    if not asked:
        return None
    told = set(content_stems(" ".join((*chunk.heading_path, chunk.text))))
    return len(asked & told) / len(asked)


def overlaps(queries: Iterable[Query], chunk_of: Callable[[str], Chunk]) -> list[float]:
    """Return the overlap of each answerable query with the chunk it was written from."""
    found = (
        lexical_overlap(query, chunk_of(query.source_chunk_ids[0]))
        for query in queries
        if query.answerable and query.source_chunk_ids
    )
    return [value for value in found if value is not None]


def query_lengths(queries: Iterable[str]) -> list[float]:
    """Return the number of words of each query; ideographs and kana count one each."""
    return [float(len(words(query))) for query in queries]


def rank_counts(queries: Iterable[Query]) -> dict[str, int]:
    """Return how many queries have their evidence at which rank of BM25."""
    bands = Counter(chain.from_iterable(_band(query) for query in queries))
    return {name: bands[name] for name in ("1", "2-3", "4-10", "below") if bands[name]}


def _band(query: Query) -> list[str]:
    measured = query.measured
    if measured is None or measured.depth == 0 or not query.answerable:
        return []
    rank = measured.bm25_rank
    if rank is None or rank > 10:
        return ["below"]
    return ["1" if rank == 1 else "2-3" if rank <= 3 else "4-10"]
