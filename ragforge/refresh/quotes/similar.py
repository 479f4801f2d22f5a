"""A quote in other words: the stretch of a document that reads most like it."""

import math
import unicodedata
from collections.abc import Iterator
from typing import Final

from ragforge.corpus.quote_locations import Location, Page, Placement, fold
from ragforge.deferred import dataclass, pattern

_MARK: Final = r"[ \t]*(?:[-+*•][ \t]+|\d{1,9}[.)][ \t]+|#{1,6}[ \t]+|>[ \t]?)"
_BREAK: Final = pattern(
    rf"(?<=[.!?…])[\"'”’)\]*_`]*(?P<blank>\s+)(?:{_MARK})?"  # noqa: RUF001
    r"|(?<=[。！？])(?P<nothing>)"  # noqa: RUF001
    rf"|(?P<empty>\n[^\S\n]*\n\s*)(?:{_MARK})?"
    rf"|(?P<line>\n)(?:{_MARK}|(?=[ \t]*\|| {{4}}|\t|\Z))"
)
"""Where a statement ends and the next begins: sentences, paragraphs, items, rows, lines of code;
an item begins before its mark, and behind it."""
_LEAST_REACH: Final = 60
_INWARD_SHARE: Final = 10
_LONGEST_WORD: Final = 40
_LONGEST_QUOTE: Final = 4000
"""Characters beyond which other words of a quote are not looked for: the time that it takes grows
with the square."""
_AT_ONCE: Final = 20_000_000
"""Characters of quote times text that are compared as they are; of more, the likeliest parts."""
_SAMPLES: Final = 64
_SAMPLE_CHARS: Final = 8
_PART_FACTOR: Final = 4
_MOST_PARTS: Final = 4


def statement_at(text: str, rough: Location) -> Location:
    """Return the stretch of whole statements, or words, whose ends are nearest to a rough one."""
    size = rough.end - rough.start
    reach, inward = max(_LEAST_REACH, size // 2), size // _INWARD_SHARE
    start = _nearest(text, rough.start, reach, inward, is_start=True)
    end = _nearest(text, rough.end, inward, reach, is_start=False)
    start = _word_start(text, rough.start) if start is None else start
    end = _word_end(text, rough.end) if end is None else end
    return _trimmed(text, start, end) or rough


def _nearest(text: str, at: int, back: int, ahead: int, *, is_start: bool) -> int | None:
    """Return the nearest start or end of a statement within reach; None for none.

    The ends of the text are such.
    """
    first, last = max(0, at - back), min(len(text), at + ahead)
    # What stands before a break tells whether it is one; an empty line may be long.
    window_start, window_end = max(0, first - _LONGEST_WORD), min(len(text), last + _LONGEST_WORD)
    found = [0] if is_start else [len(text)]
    for gap in _BREAK.finditer(text[window_start:window_end]):
        left, right = gap.span(gap.lastgroup or 0)
        found += (window_start + place for place in ((right, gap.end()) if is_start else (left,)))
    within = [place for place in found if first <= place <= last]
    return min(within, key=lambda place: (abs(place - at), place), default=None)


def _word_start(text: str, at: int) -> int:
    for place in range(at, max(0, at - _LONGEST_WORD) - 1, -1):
        if place == 0 or text[place - 1].isspace():
            return place
    return _before_marks(text, at)


def _word_end(text: str, at: int) -> int:
    for place in range(at, min(len(text), at + _LONGEST_WORD) + 1):
        if place == len(text) or text[place].isspace() or text[place - 1].isspace():
            return place
    while at < len(text) and unicodedata.combining(text[at]):
        at += 1
    return at


def _before_marks(text: str, at: int) -> int:
    while at > 0 and unicodedata.combining(text[at]):
        at -= 1
    return at


def _trimmed(text: str, start: int, end: int) -> Location | None:
    said = text[start:end]
    start += len(said) - len(said.lstrip())
    said = said.strip()
    return Location(start, start + len(said)) if said else None


@dataclass(frozen=True, slots=True)
class Similar:
    """A stretch that reads like a quote.

    Args:
        placement: Where it is; whole statements as far as they end nearby, else whole words.
        likeness: Share of the wording that the quote and the stretch of its length have in common,
            in order: 1 minus insertions and deletions by characters of both.
    """

    placement: Placement
    likeness: float


@dataclass(frozen=True, slots=True)
class _Alike:
    spot: Location
    likeness: float


def most_similar(quote: str, page: Page, least: float) -> Similar | None:
    """Return the stretch of a document that reads most like a quote; None where none does.

    A single digit or a "not" may be what differs: nothing but reading tells whether it says the
    same.

    Args:
        quote: As the set has it; of more than 4,000 characters there are no other words.
        page: The document.
        least: Likeness that it needs, above 0.
    """
    wanted, text = fold(quote), page.folded
    if not wanted or len(wanted) > _LONGEST_QUOTE or not text.strip():
        return None
    parts = _parts(wanted, text) if len(wanted) * len(text) > _AT_ONCE else [Location(0, len(text))]
    alike = [found for part in parts if (found := _best_in(wanted, text, part, least))]
    best = max(alike, key=lambda found: found.likeness, default=None)
    if best is None or not text[best.spot.start : best.spot.end].strip():
        return None
    rough = page.original(_shared(wanted, text, best.spot))
    return Similar(page.placement_at(statement_at(page.text, rough)), best.likeness)


def in_percent(likeness: float) -> str:
    """Return a likeness for people; 100 % stands for nothing but all of it."""
    return f"{math.floor(100 * likeness + 1e-9)} %"


def _best_in(wanted: str, text: str, part: Location, least: float) -> _Alike | None:
    from rapidfuzz import fuzz

    read = text[part.start : part.end]
    if len(read) <= len(wanted):
        # The other way round, a word of the quote would count as all of it.
        likeness = fuzz.ratio(wanted, read, score_cutoff=100 * least) / 100
        return _Alike(part, likeness) if likeness >= least else None
    found = fuzz.partial_ratio_alignment(wanted, read, score_cutoff=100 * least)
    if found is None or found.score < 100 * least:
        return None
    spot = Location(part.start + found.dest_start, part.start + found.dest_end)
    return _Alike(spot, found.score / 100)


def _parts(wanted: str, text: str) -> list[Location]:
    """Return the parts of a long text that have the most samples of the quote, in their order."""
    step = max(1, (len(wanted) - _SAMPLE_CHARS) // _SAMPLES)
    samples = {wanted[at : at + _SAMPLE_CHARS] for at in range(0, len(wanted), step)}

    def ranked() -> Iterator[tuple[int, int]]:
        for start in range(0, len(text), _PART_FACTOR * len(wanted)):
            read = text[start : start + _part_chars(wanted)]
            yield -sum(sample in read for sample in samples), start

    best = sorted(found for found in ranked() if found[0])[:_MOST_PARTS]
    starts = sorted(start for _, start in best)
    return [Location(start, min(len(text), start + _part_chars(wanted))) for start in starts]


def _part_chars(wanted: str) -> int:
    """Return the size of a part; what a border cuts is whole in the next."""
    return (_PART_FACTOR + 2) * len(wanted)


def _shared(wanted: str, text: str, spot: Location) -> Location:
    """Return a stretch without what at its ends has nothing of the quote."""
    from rapidfuzz.distance import Indel

    codes = Indel.opcodes(wanted, text[spot.start : spot.end])
    shared = [code for code in codes if code.tag == "equal"]
    return Location(spot.start + shared[0].dest_start, spot.start + shared[-1].dest_end)
