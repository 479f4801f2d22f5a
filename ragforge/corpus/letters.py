"""The letters and digits by which texts are compared, and where in a text each of them stands.

They are folded to lower case and to NFKD, without accents, blanks, punctuation and marks of markup.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.corpus.laid_out import beyond
from ragforge.deferred import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

GRAM: Final = 12
"""Letters of a k-gram: two texts rarely share one by chance."""
_CODEPOINTS: Final = 0x110000

Places: TypeAlias = "npt.NDArray[np.int64]"
Letters: TypeAlias = "npt.NDArray[np.uint32]"


def folded_letters(char: str) -> str:
    """Return the letters and digits that a character is compared by."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(each for each in plain if each.isalnum())


class _Folding:
    """How many letters each code point has, and the first of them; filled as code points come."""

    def __init__(self) -> None:
        self.counts = np.full(_CODEPOINTS, 255, np.uint8)
        self.first = np.zeros(_CODEPOINTS, np.uint32)
        self.several: dict[int, Letters] = {}

    def learn(self, codes: Letters) -> None:
        for code in set(codes[self.counts[codes] == 255].tolist()):
            folded = folded_letters(chr(code)) if not 0xD800 <= code < 0xE000 else ""
            self.counts[code] = len(folded)
            if folded:
                self.first[code] = ord(folded[0])
            if len(folded) > 1:
                self.several[code] = np.array([ord(each) for each in folded], np.uint32)


@cache
def _folding() -> _Folding:
    return _Folding()


def letters_of(text: str) -> tuple[Letters, Places]:
    """Return the letters and digits that a text is compared by, and where each stands in it."""
    letters, at = _letters_within(text)
    more = [(offset, _letters_within(seen)[0]) for offset, seen in beyond(text)]
    if not more:
        return letters, at
    counts = [len(each) for _, each in more]
    offsets = np.repeat([offset for offset, _ in more], counts)
    before = np.searchsorted(at, offsets)
    seen = np.concatenate([each for _, each in more])
    return np.insert(letters, before, seen), np.insert(at, before, offsets - 1)


def _letters_within(text: str) -> tuple[Letters, Places]:
    folding = _folding()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts = folding.counts[codes]
    if (counts == 255).any():
        folding.learn(codes)
        counts = folding.counts[codes]
    if (counts > 1).any():
        at = np.repeat(np.arange(len(codes)), counts)
        letters = folding.first[codes[at]]
        begun = np.cumsum(counts, dtype=np.int64) - counts
        for place in np.flatnonzero(counts > 1).tolist():
            several = folding.several[int(codes[place])]
            letters[begun[place] : begun[place] + len(several)] = several
        return letters, at
    at = np.flatnonzero(counts)
    return folding.first[codes[at]], at


def as_text(letters: Letters) -> str:
    """Return letters as a text."""
    return letters.astype("<u4").tobytes().decode("utf-32-le")
