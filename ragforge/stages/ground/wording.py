"""Words of a text found again: with and without its Markdown, and its doubtful marks."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ragforge.corpus.anchors import FoldedText, Location
from ragforge.stages.quotes import find_proof

_LINK = re.compile(r"(!?\[)[^\[\]\n]+(\]\([^()\s]*(?:\s+\"[^\"\n]*\")?\))")
_SIGNS = re.compile(
    r"(?<=[^\s\d*])\*+|(?<=\d)\*++(?!\d)|(?<!\S)\*++(?=\S)"
    r"|(?<!\w)_++(?=\S)|(?<=[^\s_])_++(?!\w)"
    r"|`+|~~|\\(?=[*_`$~#\[\]()])"
)
"""Asterisks between blanks or digits stay, for they multiply; so do underscores within words."""
_TARGET = re.compile(r"(?<=\])\([^()\s]*\)")


@dataclass(frozen=True, slots=True)
class _Bare:
    """A text without some of its characters.

    Args:
        text: What is left.
        places: Where each character of it stands in the original.
    """

    text: str
    places: Sequence[int]

    def original(self, place: Location) -> Location:
        return Location(self.places[place.start], self.places[place.end - 1] + 1)


class Wording:
    """A text in which words are found although Markdown, or some marks, stand between them."""

    def __init__(self, text: str, marks: Iterable[Location] = ()) -> None:
        self._as_is = FoldedText(text)
        without = _bare(text, [_with_blanks(mark, text) for mark in marks])
        self._variants = [(bare, FoldedText(bare.text)) for bare in (_bare(text), without)]

    def locations(self, part: str) -> list[Location]:
        """Return where a part stands, in order, without overlaps."""
        wanted = _bare(part).text
        found = set(self._as_is.locations(part))
        for bare, folded in self._variants:
            found |= {bare.original(place) for place in folded.locations(wanted)}
        return list(_apart(found))


def find_evidence(quote: str, text: str) -> Location | None:
    """Return where a quote proves something, as `find_proof` does, Markdown aside if need be."""
    found = find_proof(quote, text)
    if found is not None:
        return found
    bare = _bare(text)
    place = find_proof(_bare(quote).text, bare.text)
    return bare.original(place) if place else None


def blanked(text: str, marks: Iterable[Location] = ()) -> str:
    """Return a text, as long as before, with blanks for marks and the targets of its links."""
    characters = list(_TARGET.sub(lambda target: " " * len(target[0]), text))
    for mark in marks:
        characters[mark.start : mark.end] = " " * (mark.end - mark.start)
    return "".join(characters)


def _with_blanks(mark: Location, text: str) -> Location:
    """Return a mark with the blanks before it where a sign follows, such as a full stop."""
    if text[mark.end : mark.end + 1].isalnum():
        return mark
    return Location(len(text[: mark.start].rstrip(" \t")), mark.end)


def _apart(found: Iterable[Location]) -> Iterator[Location]:
    end = 0
    for place in sorted(found, key=lambda place: (place.start, -place.end)):
        if place.start >= end:
            yield place
            end = place.end


def _bare(text: str, marks: Iterable[Location] = ()) -> _Bare:
    gone = {at for mark in marks for at in range(mark.start, mark.end)}
    for sign in _SIGNS.finditer(text):
        gone.update(range(*sign.span()))
    for link in _LINK.finditer(text):
        gone.update(range(*link.span(1)), range(*link.span(2)))
    places = [at for at in range(len(text)) if at not in gone]
    return _Bare("".join(text[at] for at in places), places)
