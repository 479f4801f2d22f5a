"""Texts as a model sees them: without the characters that a reader does not see."""

from collections.abc import Sequence

from ragforge.corpus.quote_locations import Location, locate
from ragforge.deferred import dataclass, pattern

_JOINED = (
    "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u17ff\u1800-\u18af\u1b00-\u1c4f"
    "\ua840-\ua8ff\uaa60-\uaa7f\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00011000-\U00011fff"
)
"""Letters that a joiner between them may part or bind: Arabic, Indic and kindred scripts."""
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_LINE_ENDS = "\x0b\x0c\x1c-\x1f\x85\u2028\u2029"
_SEPARATORS = pattern(f"[\r{_LINE_ENDS}](?!(?<=\r)\n)")
_HIDDEN = pattern(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|\r(?=\n)"
    # The conditions stand behind the joiner: what begins with a set is searched three times faster.
    f"|[\u200c\u200d](?:(?![{_JOINED}{_EMOJI}])"
    f"|(?<![{_JOINED}{_EMOJI}][\u200c\u200d])(?<![{_EMOJI}]\ufe0f[\u200c\u200d]))"
)
"""What a reader does not see: controls but for line ends and tabs, marks that change the direction
of text, tags, variation selectors, annotations and all else without a glyph, and half surrogates.

Joiners stay between two letters of scripts that need them and within emoji, one at a time: a row
of them is a message in disguise. What else is lost is the look of some glyphs (the emoji of a
region's flag becomes a black flag), never a letter.
"""


def visible(text: str) -> str:
    """Return a text as a model sees it: hidden characters gone, line ends made line feeds."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text  # Most texts; looking for each hidden character takes thirty times as long.
    return _HIDDEN.sub("", _SEPARATORS.sub("\n", text))


@dataclass(frozen=True, slots=True)
class VisibleText:
    """A text as a model sees it.

    Args:
        text: What `visible` leaves.
        places: Where each of its characters stands in the original.
    """

    text: str
    places: Sequence[int]


def visible_text(text: str) -> VisibleText:
    """Return a text as `visible` leaves it, with where everything stands in the original."""
    plain = _SEPARATORS.sub("\n", text)
    hidden = {match.start() for match in _HIDDEN.finditer(plain)}
    if not hidden:
        return VisibleText(plain, range(len(plain)))
    places = [index for index in range(len(plain)) if index not in hidden]
    return VisibleText("".join(plain[index] for index in places), places)


def locate_shown(quote: str, text: str) -> Location | None:
    """Return where a quote stands in a text of which the model saw what `visible` leaves.

    Blanks and compatibility forms are folded as in `locate`; None where it does not stand.
    """
    place = locate(quote, text)
    if place is not None:
        return place
    shown = visible_text(text)
    place = locate(quote, shown.text)
    return Location(shown.places[place.start], shown.places[place.end - 1] + 1) if place else None
