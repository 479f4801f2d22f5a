"""Comparing texts whose blanks and compatibility forms may differ, and finding one in another."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ragforge.files.unicode_forms import is_normalized, normalize

_OTHER_BLANK = re.compile(r"[^\S ]")
_BLANKS = re.compile(r"\s{2,}")
_RUNS = re.compile(r"\s{2,}|\S+")
_HANGUL_MEDIAL_OR_FINAL = range(0x1160, 0x1200)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a quote stands: text[start:end], in code points."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the folded text and the part of the original that it comes from."""

    folded_start: int
    folded: str
    start: int
    end: int

    @property
    def as_is(self) -> bool:
        return len(self.folded) == self.end - self.start


class FoldedText:
    """A text with runs of blanks as one blank and NFKC applied, that knows where all came from."""

    def __init__(self, text: str) -> None:
        self._pieces = _pieces(text)
        self._starts = [piece.folded_start for piece in self._pieces]
        self._text = "".join(piece.folded for piece in self._pieces)

    @property
    def text(self) -> str:
        """The text as it is compared."""
        return self._text

    def spots(self, quote: str) -> Iterator[Location]:
        """Yield where the quote stands in the folded text, without overlaps; as `locations`."""
        wanted = fold(quote)
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            yield Location(at, at + len(wanted))
            at = self._text.find(wanted, at + len(wanted))

    def locations(self, quote: str) -> Iterator[Location]:
        """Yield where the quote stands in the original, without overlaps; none of a blank quote."""
        return map(self.original, self.spots(quote))

    def original(self, spot: Location) -> Location:
        """Return what of the original became a stretch of the folded text; it has a character."""
        return Location(self._original(spot.start).start, self._original(spot.end - 1).end)

    def _original(self, at: int) -> Location:
        """Return the character, or what became a ligature's or a blank's share, in the original."""
        piece = self._pieces[bisect_right(self._starts, at) - 1]
        if not piece.as_is:
            return Location(piece.start, piece.end)
        start = piece.start + at - piece.folded_start
        return Location(start, start + 1)


def fold(text: str) -> str:
    """Return the form in which quotes are compared: NFKC, runs of blanks as one, none around."""
    return " ".join(normalize("NFKC", text).split())


def locate(quote: str, document_text: str) -> Location | None:
    """Return where a quote first stands: verbatim, else with blanks and NFKC folded.

    None where it does not stand, or is blank. For many quotes of one text make a `FoldedText`.
    """
    if not quote.strip():
        return None
    at = document_text.find(quote)
    if at >= 0:
        return Location(at, at + len(quote))
    return next(FoldedText(document_text).locations(quote), None)


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    length = done = 0
    for stretch in [*_uneven(text), Location(len(text), len(text))]:
        original = text[stretch.start : stretch.end]
        even = _OTHER_BLANK.sub(" ", text[done : stretch.start])
        uneven = " " if original.isspace() else normalize("NFKC", original)
        pieces.append(_Piece(length, even, done, stretch.start))
        pieces.append(_Piece(length + len(even), uneven, stretch.start, stretch.end))
        length += len(even) + len(uneven)
        done = stretch.end
    return [piece for piece in pieces if piece.folded]


def _uneven(text: str) -> Iterator[Location]:
    """Yield the smallest parts that folding may change in length."""
    plain = is_normalized("NFKC", text)
    for run in (_BLANKS if plain else _RUNS).finditer(text):
        word = run[0]
        if word.isspace():
            yield Location(run.start(), run.end())
        elif not is_normalized("NFKC", word):
            yield from _uneven_in_word(word, run.start())


def _uneven_in_word(word: str, offset: int) -> Iterator[Location]:
    bounds = [0, *(at for at, char in enumerate(word) if at and _starts_anew(char)), len(word)]
    parts = [normalize("NFKC", word[a:b]) for a, b in pairwise(bounds)]
    if "".join(parts) != normalize("NFKC", word):
        bounds = [0, len(word)]
    yield from (Location(offset + a, offset + b) for a, b in pairwise(bounds))


def _starts_anew(char: str) -> bool:
    return not unicodedata.combining(char) and ord(char) not in _HANGUL_MEDIAL_OR_FINAL
