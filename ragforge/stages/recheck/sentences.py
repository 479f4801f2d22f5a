"""Sentences by where they stand: a proof is kept, and a text is cut, at their ends."""

import re
from typing import Final

from ragforge.corpus.anchors import Location

_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])\s*|\n+")
_LONGEST: Final = 400
"""Characters of whole sentences that are kept as a proof; a longer stretch is not widened."""


def sentence_places(text: str) -> list[Location]:
    """Return where the sentences and lines of a text stand, blanks around them left out."""
    ends = [*_END.finditer(text)]
    starts = [0, *(end.end() for end in ends)]
    stops = [*(end.start() for end in ends), len(text)]
    found = []
    for start, stop in zip(starts, stops, strict=True):
        part = text[start:stop]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            found.append(Location(begin, begin + len(part.strip())))
    return found


def widened(place: Location, text: str) -> Location:
    """Return the whole sentences around a place, the place itself where these are long.

    A few words such as "5 seconds" prove nothing without what they are said of, and stand in too
    many places to be found again.
    """
    around = touching(place, text)
    return around if around.end - around.start <= _LONGEST else place


def touching(place: Location, text: str) -> Location:
    """Return the stretch of whole sentences that a place touches; itself where it touches none."""
    touched = [
        one for one in sentence_places(text) if one.start < place.end and place.start < one.end
    ]
    if not touched:
        return place
    return Location(min(place.start, touched[0].start), max(place.end, touched[-1].end))
