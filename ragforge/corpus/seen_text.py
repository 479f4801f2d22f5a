"""What a reader sees of a file, and where each character of it stands in the file."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ragforge.deferred import dataclass, pattern

_EXTRA_BLANK: Final = pattern(r"(?:\A|(?<=\n))(?:[ \t]*\n){2,}|\A(?:[ \t]*\n)+")
_TRAILING: Final = pattern(r"(?<![ \t])[ \t]++(?=\n|\Z)")


class Edit(NamedTuple):
    """A stretch of a file that a reader sees otherwise, or not at all.

    Args:
        start, end: The stretch, in code points.
        seen: What is seen of it. Where that is longer than the stretch, as what a name stands for,
            the rest of it stands at the last place of the stretch. What is put between two
            characters has the place of the first.
    """

    start: int
    end: int
    seen: str = ""


@dataclass(frozen=True, slots=True)
class SeenText:
    """The text of a file without what a reader does not see.

    Args:
        text: What a reader sees.
        places: Where something is left out: in the text, ascending.
        left_out: How many characters of the file are left out up to each of these places; one less
            than before where a character stands at the same place of the file as the one before.
    """

    text: str
    places: Sequence[int] = ()
    left_out: Sequence[int] = ()

    def offset(self, place: int) -> int:
        """Return where in the file a character of the text stands."""
        number = bisect_right(self.places, place)
        return place + self.left_out[number - 1] if number else place

    def hidden(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        """Return what is left out within a stretch of the text; see `Chunk.hidden`."""
        first, behind = bisect_right(self.places, start), bisect_right(self.places, end - 1)
        before = self.left_out[first - 1] if first else 0
        totals = [before, *self.left_out[first:behind]]
        return tuple(
            (place - start, now - earlier)
            for place, earlier, now in zip(
                self.places[first:behind], totals, totals[1:], strict=False
            )
            if now != earlier
        )


def seen_text(text: str, edits: Iterable[Edit]) -> SeenText:
    """Return a text as it is seen after edits; one within another, or in its way, is passed over.

    Args:
        text: Of a file.
        edits: In any order; of two that begin together the longer one counts.
    """
    parts: list[str] = []
    places: list[int] = []
    lengths: list[int] = []
    done = length = 0
    for start, end, seen in sorted(edits, key=_order):
        if start < done or end < start or (start == end and not (start and seen)):
            continue
        parts += (text[done:start], seen)
        length += start - done + len(seen)
        done = end
        if end - start == len(seen):
            continue
        if end - start < len(seen):
            n_more = len(seen) - (end - start)
            if start == end and places and places[-1] == length - n_more:
                lengths[-1] -= 1
                n_more -= 1
            places += range(length - n_more, length)
            lengths += [-1] * n_more
            continue
        if places and places[-1] == length:
            lengths[-1] += end - start - len(seen)
        else:
            places.append(length)
            lengths.append(end - start - len(seen))
    if not done:
        return SeenText(text)
    parts.append(text[done:])
    return SeenText("".join(parts), places, list(accumulate(lengths)))


def _order(edit: Edit) -> tuple[int, bool, int]:
    """Return what edits are sorted by: what is put before a place, then the longest from there."""
    return edit.start, edit.start < edit.end, -edit.end


def placed_text(pieces: Iterable[tuple[str, int]]) -> SeenText:
    """Return pieces of text one behind the other, each with the offset in the file where it stands.

    Args:
        pieces: In the order of their offsets; no longer than the way to the next.
    """
    parts: list[str] = []
    places: list[int] = []
    left_out: list[int] = []
    length = 0
    for text, offset in pieces:
        if text and offset - length != (left_out[-1] if left_out else 0):
            places.append(length)
            left_out.append(offset - length)
        parts.append(text)
        length += len(text)
    return SeenText("".join(parts), places, left_out)


def composed(inner: SeenText, outer: SeenText) -> SeenText:
    """Return what is seen of what is seen.

    Args:
        inner: Of a file.
        outer: Of the text of `inner`.
    """
    if not inner.places:
        return outer
    if not outer.places:
        return SeenText(outer.text, inner.places, inner.left_out)
    places = sorted({*outer.places, *_places_in(outer, inner.places)})
    left_out = [inner.offset(outer.offset(place)) - place for place in places]
    return SeenText(outer.text, places, left_out)


def _places_in(outer: SeenText, offsets: Sequence[int]) -> Iterable[int]:
    """Yield for ascending offsets where in the outer text that begins which stands there."""
    number, before = 0, 0
    for offset in offsets:
        while number < len(outer.places) and (
            outer.places[number] + outer.left_out[number] <= offset
        ):
            before = outer.left_out[number]
            number += 1
        place = offset - before
        yield min(place, outer.places[number]) if number < len(outer.places) else place


def without_extra_blanks(seen: SeenText) -> SeenText:
    """Return a text with one empty line, and none at its top, where something was left out."""
    return composed(seen, seen_text(seen.text, _extra_blanks(seen)))


def without_trailing_blanks(seen: SeenText) -> SeenText:
    """Return a text without the blanks at its line ends, which would count as its size."""
    edits = [Edit(*blanks.span()) for blanks in _TRAILING.finditer(seen.text)]
    return composed(seen, seen_text(seen.text, edits)) if edits else seen


def _extra_blanks(seen: SeenText) -> Iterator[Edit]:
    """Yield the empty lines that are more than one where something was left out."""
    if not seen.places:
        return
    number = 0
    for blank in _EXTRA_BLANK.finditer(seen.text):
        while number < len(seen.places) and seen.places[number] < blank.start():
            number += 1
        if number == len(seen.places):
            return
        if seen.places[number] <= blank.end():
            keep = 1 if blank.start() else 0  # The end of a line: blanks before it would join two.
            yield Edit(blank.start(), blank.end() - keep)
