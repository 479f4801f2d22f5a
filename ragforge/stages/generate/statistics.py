"""Figures about a generated set: pure counting over what was planned, accepted and turned away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Final, Literal

from ragforge.corpus.survey import ChunkCard
from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.measures.rates import wilson_interval
from ragforge.records import Chunk, FunnelStep, Query, ShareRow, Spread
from ragforge.stages.words import content_stems, words

Uncovered = Literal["rejected", "not reached", "near-duplicate", "too short"]
_REASONS: Final[tuple[Uncovered, ...]] = ("rejected", "not reached", "near-duplicate", "too short")
"""Asked about but nothing was accepted; left over at this number of queries; another stands for
it; too few words to be asked about. A document counts under the first that one of its chunks has.
"""

EXAMPLES: Final = 20
"""Ids that are kept of each reason."""

REAL_OVERLAP = 0.60
"""Median share of content words of real queries that stand in the passage that answers them.

Source: measured on the 300 questions of CLAPNQ's development set (queries of Google users).
"""


@dataclass(slots=True)
class Missed:
    """Documents or chunks that are left out for one reason.

    Args:
        n: How many.
        examples: Ids of the first of them; of a near-duplicate chunk `ID (as ID)`.
    """

    n: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Count one more."""
        self.n += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


@dataclass(slots=True)
class Covered:
    """How many documents, or chunks, are asked about.

    Args:
        n: How many there are.
        n_covered: How many of them an accepted query was written from.
        missed: The others, by reason; those reasons only that occur.
    """

    n: int = 0
    n_covered: int = 0
    missed: dict[Uncovered, Missed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a corpus by the queries of a set."""

    documents: Covered
    chunks: Covered


def coverage(
    cards: Iterable[ChunkCard], tried: Collection[str], covered: Collection[str]
) -> Coverage:
    """Count what is asked about, and what is not, by reason.

    Args:
        cards: Of the whole corpus, sorted by chunk id; held no longer than they are looked at.
        tried: Ids of the chunks in the slots that were worked off.
        covered: Ids of the chunks that accepted queries were written from.
    """
    chunks = Covered()
    best: dict[str, Uncovered | None] = {}
    for card in cards:
        reason = _reason(card, tried, covered)
        known = best.setdefault(card.doc_id, reason)
        best[card.doc_id] = min(known, reason, key=_place)
        shown = card.chunk_id
        if reason == "near-duplicate":
            shown = f"{card.chunk_id} (as {card.duplicate_of})"
        _count(chunks, reason, shown)
    documents = Covered()
    for doc_id in sorted(best):
        _count(documents, best[doc_id], doc_id)
    return Coverage(documents, chunks)


def _reason(card: ChunkCard, tried: Collection[str], covered: Collection[str]) -> Uncovered | None:
    if card.chunk_id in covered:
        return None
    if card.chunk_id in tried:
        return "rejected"
    if not card.is_askable:
        return "too short"
    return "not reached" if card.duplicate_of == card.chunk_id else "near-duplicate"


def _place(reason: Uncovered | None) -> int:
    return -1 if reason is None else _REASONS.index(reason)


def _count(those: Covered, reason: Uncovered | None, label: str) -> None:
    those.n += 1
    if reason is None:
        those.n_covered += 1
    else:
        those.missed.setdefault(reason, Missed()).add(label)


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
    shares = (
        lexical_overlap(query, chunk_of(query.source_chunk_ids[0]))
        for query in queries
        if query.answerable and query.source_chunk_ids
    )
    return [value for value in shares if value is not None]


def query_lengths(queries: Iterable[str]) -> list[float]:
    """Return the number of words of each query; ideographs and kana count one each."""
    return [float(len(words(query))) for query in queries]


def rank_counts(queries: Iterable[Query]) -> dict[str, int]:
    """Return the number of queries by the rank at which BM25 has their evidence."""
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
