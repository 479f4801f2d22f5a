"""Which documents and chunks a set asks about, and why not the others."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from ragforge.corpus.survey import ChunkCard

Uncovered = Literal["rejected", "not reached", "near-duplicate", "too short"]
REASONS: Final[tuple[Uncovered, ...]] = ("rejected", "not reached", "near-duplicate", "too short")
"""Asked about but nothing was accepted; left over at this number of queries; another stands for
it; too few words to be asked about. A document counts under the first that one of its chunks has.
"""

EXAMPLES: Final = 20
"""Ids that are kept of each reason."""


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
    """What a set asks about of its corpus."""

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
            shown = f"{card.chunk_id} (as {card.twin_of})"
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
    return "not reached" if card.twin_of == card.chunk_id else "near-duplicate"


def _place(reason: Uncovered | None) -> int:
    return -1 if reason is None else REASONS.index(reason)


def _count(those: Covered, reason: Uncovered | None, shown: str) -> None:
    those.n += 1
    if reason is None:
        those.n_covered += 1
    else:
        those.missed.setdefault(reason, Missed()).add(shown)
