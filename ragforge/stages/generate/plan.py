"""Which chunks are asked about, in which order: all documents before any comes again."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ragforge.records import Chunk

ROUNDS = 3
"""How often a chunk is asked about at most."""

_FEWEST_WORDS = 12
_WIDE_CHARACTERS_A_WORD = 2


@dataclass(frozen=True, slots=True)
class Seed:
    """A chunk to write a query about.

    Args:
        chunk: What the query is about.
        round: How many queries were tried on this chunk before.
    """

    chunk: Chunk
    round: int


def plan_round(chunks: Iterable[Chunk], seed: int) -> list[Chunk]:
    """Return the chunks in the order they are asked about.

    Documents take turns, in an order that the seed decides by hashing; so do the chunks within a
    document. A longer plan begins with the shorter one, and other documents change nothing in the
    order of the rest. Chunks of too few words to ask about are left out.
    """
    by_document: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        if _long_enough(chunk.text):
            by_document.setdefault(chunk.doc_id, []).append(chunk)
    queues = [
        sorted(by_document[doc_id], key=lambda chunk: _place(chunk.chunk_id, seed), reverse=True)
        for doc_id in sorted(by_document, key=lambda doc_id: _place(doc_id, seed))
    ]
    return list(_take_turns(queues))


def _take_turns(queues: list[list[Chunk]]) -> Iterator[Chunk]:
    while queues:
        for queue in queues:
            yield queue.pop()
        queues = [queue for queue in queues if queue]


def _long_enough(text: str) -> bool:
    wide = sum(character > "\u2e7f" for character in text)
    return len(text.split()) + wide // _WIDE_CHARACTERS_A_WORD >= _FEWEST_WORDS


def _place(name: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\n{name}".encode()).digest()
