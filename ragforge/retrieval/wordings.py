"""Texts by their letters and digits alone, whatever case, punctuation and marks they come in.

Digits that something parts stay apart: 1.5 is not 15.
"""

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import normalize

from ragforge.records import Chunk

LEAST_SHARED: Final = 12
"""Letters from which one text may stand in another one as a part of it."""
_BESIDE: Final = re.compile(r"(?<=\d)([\W_])[\W_]*(?=\d)|[\W_]+")
_START: Final = 32
"""Letters of a chunk by which it is looked up."""
_MOST: Final = 0.5
"""Share of a text from which a chunk in it may be that text."""
_ROW: Final = 8
"""Letters in a row that are counted; two texts rarely share them by chance."""


def wording(text: str) -> str:
    """Return the letters and digits of a text, a blank between digits that do not follow."""
    return _BESIDE.sub(_parted, normalize("NFKC", text).casefold())


def _parted(found: re.Match[str]) -> str:
    return " " if found[1] else ""


def has_part(words: str, part: str) -> bool:
    """Whether a wording has another one as a part of it, of which no number is cut."""
    at = words.find(part) if len(part) >= LEAST_SHARED else -1
    while at >= 0:
        if is_apart(words, at) and is_apart(words, at + len(part)):
            return True
        at = words.find(part, at + 1)
    return False


def is_apart(words: str, at: int) -> bool:
    """Whether no number of a wording is cut at a place."""
    return not words[max(0, at - 1) : at + 1].isdigit() or not 0 < at < len(words)


def rows_of(words: str) -> set[str]:
    """Return each `_ROW` letters of a wording that follow each other."""
    return {words[at : at + _ROW] for at in range(len(words) - _ROW + 1)}


class ChunkWordings:
    """Finds the chunks that stand in texts as they are worded.

    Args:
        chunks: Of the set.
    """

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        # By the hash of how they begin: sizes and hashes of the whole. Wordings would double a set.
        self._by_start: dict[int, list[tuple[int, int, Chunk]]] = {}
        for chunk in chunks:
            if words := wording(chunk.text):
                entry = len(words), hash(words), chunk
                self._by_start.setdefault(hash(words[:_START]), []).append(entry)

    def most_of(self, words: str, share: float = _MOST) -> list[Chunk]:
        """Return the chunk that has most of a wording, all of it in it; several that read the same.

        Args:
            words: The wording of a text.
            share: How much of it that is at least.
        """
        best: dict[str, Chunk] = {}
        longest, least = "", max(1, share * len(words))
        for at in range(max(1, len(words) - _START + 1)):
            for size, hashed, chunk in self._by_start.get(hash(words[at : at + _START]), ()):
                if not max(least, len(longest)) <= size <= len(words) - at:
                    continue
                part = words[at : at + size]
                if hash(part) != hashed or not (part == words or has_part(words, part)):
                    continue
                if part != longest:
                    longest, best = part, {}
                best[chunk.chunk_id] = chunk
        return [*best.values()]
