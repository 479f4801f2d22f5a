"""What built-in retrievers share: the order of chunks, the best hits, and the terms of a text.

Terms are made for any language, without a model or a word list.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from ragforge.deferred import pattern
from ragforge.errors import DataError
from ragforge.files.text import normalize
from ragforge.records import Chunk, Hit
from ragforge.scripts import HANGUL, UNSPACED, has_syllabic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Scores: TypeAlias = "npt.NDArray[np.floating]"

_PARTS = pattern(f"([{UNSPACED}{HANGUL}]+)")


def in_tie_order(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks by id, descending: a stable sort by score then breaks ties as trec_eval.

    Raises:
        DataError: Two chunks have one id.
    """
    ordered = sorted(chunks, key=lambda chunk: chunk.chunk_id, reverse=True)
    for one, other in pairwise(ordered):
        if one.chunk_id == other.chunk_id:
            raise DataError(f"chunks: id {one.chunk_id!r} comes twice; ids must be unique")
    return ordered


def searched_text(chunk: Chunk) -> str:
    """Return the indexed text of a chunk: the titles above it, then its own."""
    return "\n".join((*chunk.heading_path, chunk.text))


def top_hits(chunk_ids: Sequence[str], scores: Scores, k: int, above: float) -> list[Hit]:
    """Return the k best hits, best first, ties by id, descending.

    Args:
        chunk_ids: Ids in descending order, as `in_tie_order` gives them.
        scores: Aligned with the ids.
        k: How many hits at most.
        above: Hits must score more than this.
    """
    return [
        Hit(chunk_id=chunk_ids[row], score=float(scores[row]))
        for row in top_rows(scores, k, above).tolist()
    ]


def top_rows(scores: Scores, k: int, above: float) -> "npt.NDArray[np.intp]":
    """Return the rows of the k best scores above a bound, best first, ties in their order."""
    import numpy as np  # Terms are asked for more often.

    rows = np.flatnonzero(scores > above)
    if len(rows) > k:
        least = np.partition(scores[rows], -k)[-k]
        rows = rows[scores[rows] >= least]
    return rows[np.argsort(-scores[rows], kind="stable")][:k]


def tokenize(text: str) -> list[str]:
    """Return the terms of a text, in order, with repetitions.

    Terms are runs of letters, digits and the marks that belong to them, in NFKC form and
    casefolded; everything else separates, underscores and hyphens too, so that `max_tokens` is
    found by "max tokens". Scripts written without spaces give each character and each pair of
    neighbours: a segmenter would need a model, pairs alone would miss queries of one character.

    There is no stop-word list and no stemming: both are wrong in all languages but one, and the
    inverse document frequency already makes frequent words weigh little.
    """
    folded = normalize("NFKC", normalize("NFKC", text).casefold())
    separators = {ord(char): " " for char in set(folded) if not _in_word(char)}
    words = folded.translate(separators).split()
    if folded.isascii():
        return words
    terms: list[str] = []
    for word in words:
        if word.isascii():
            terms.append(word)
        else:
            for part in filter(None, _PARTS.split(word)):
                terms.extend(_neighbours(part) if has_syllabic(part[0]) else [part])
    return terms


@lru_cache(maxsize=65536)
def _in_word(char: str) -> bool:
    """Whether a character is part of words; those of `re` end at each vowel sign of Hindi."""
    return char.isalnum() or unicodedata.category(char).startswith("M")


def _neighbours(run: str) -> list[str]:
    return [*run, *(run[start : start + 2] for start in range(len(run) - 1))]
