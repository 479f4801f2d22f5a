"""Which texts have much of each other, by their letters: for texts whose places nobody knows."""

from typing import Final

_HALF: Final = 0.5
_FEWEST_LETTERS: Final = 12
"""Of a text that others are told to have most of; shorter ones stand in many by chance."""
_MOST_FOUND: Final = 20
"""Places of a piece that are looked at; what stands in more tells nothing."""


def letters_to_compare(text: str) -> str:
    """Return the letters and digits of a text without markup, in lower case, without accents."""
    # Its numpy is for texts that stand nowhere.
    from ragforge.corpus.letters import as_text, letters_of
    from ragforge.retrieval.markup import without_markup

    return as_text(letters_of(without_markup(text))[0])


def holds(one: str, other: str) -> bool:
    """Whether one of two texts is a part of the other; both as `letters_to_compare`."""
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) >= _FEWEST_LETTERS and shorter in longer


def overlap(one: str, other: str) -> bool:
    """Whether a stretch is more than half of one of two texts; both as `letters_to_compare`."""
    shorter, longer = sorted((one, other), key=len)
    return has_most_of(longer, shorter)


def has_most_of(text: str, part: str) -> bool:
    """Whether a text has more than half of another one, as one stretch.

    Args:
        text: As `letters_to_compare` returns it.
        part: The other one, likewise.
    """
    least = int(_HALF * len(part)) + 1
    if len(part) < _FEWEST_LETTERS or len(text) < least:
        return False
    # A stretch of so many letters has a whole piece of half as many, wherever it begins.
    size = least // 2
    pieces = range(0, len(part) - size + 1, size)
    return any(
        _extended(text, part, found, first, size) >= least
        for first in pieces
        for found in _places(text, part[first : first + size])
    )


def _places(text: str, piece: str) -> list[int]:
    found: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(found) < _MOST_FOUND:
        found.append(at)
        at = text.find(piece, at + 1)
    return found


def _extended(text: str, part: str, at: int, first: int, size: int) -> int:
    """Return how long the stretch is that a piece of both is in."""
    before = 0
    while before < min(at, first) and text[at - before - 1] == part[first - before - 1]:
        before += 1
    end, of_part = at + size, first + size
    behind = 0
    most = min(len(text) - end, len(part) - of_part)
    while behind < most and text[end + behind] == part[of_part + behind]:
        behind += 1
    return before + size + behind
