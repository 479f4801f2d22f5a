"""The chunks of a document laid out as a page, on which quotes are found."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragforge.corpus.folding import FoldedText, Location
from ragforge.records import Chunk, Evidence

CONTEXT_CHARS = 32
"""Characters around a quote that tell equal quotes of a document apart."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a quote stands in a document that is cut into chunks.

    Args:
        chunks: Those that hold it, in the order of the document: all of it, or a quarter of it
            where it runs over several; where none has a quarter, all that have a part.
        text: The quote as the chunks have it, one behind the other.
        is_whole: Whether a chunk has all of it, so that the text is that of the document; between
            two chunks the document may have other blanks than those that join them here.
        start, end: Its offsets in the document; None where the chunks have none.
        before, after: Up to `CONTEXT_CHARS` characters around it, not beyond its chunks.
    """

    chunks: tuple[Chunk, ...]
    text: str
    start: int | None
    end: int | None
    is_whole: bool
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folded text before and after a place; no blanks at its outer ends."""

    before: str
    after: str


class Page:
    """The chunks of one document laid out as they follow each other.

    Where all offsets are known chunks may overlap and come in any order; else the chunks are
    taken as neighbours in the order given.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        by_start = sorted(chunks, key=lambda chunk: chunk.start)
        anchored = _anchored(by_start)
        self._chunks = by_start if anchored else list(chunks)
        self._anchored = anchored
        self._places: list[Location] = []
        parts: list[str] = []
        length = covered = 0
        for chunk in self._chunks:
            overlap = max(0, covered - chunk.start) if anchored else 0
            if parts and not (anchored and chunk.start <= covered):
                parts.append("\n")
                length += 1
            self._places.append(Location(length - overlap, length - overlap + len(chunk.text)))
            parts.append(chunk.text[overlap:])
            length += len(parts[-1])
            covered = max(covered, chunk.end)
        self._text = "".join(parts)
        self._folded = FoldedText(self._text)
        self._starts = [place.start for place in self._places]
        self._longest = max((len(chunk.text) for chunk in chunks), default=0)

    @property
    def text(self) -> str:
        """The text of the document as far as chunks have it, a line end between two of them."""
        return self._text

    @property
    def folded(self) -> str:
        """The text of the document as quotes are compared with it; spots are places in it."""
        return self._folded.text

    def holding(self, quote: str) -> list[Chunk]:
        """Return the chunks that hold a quote; see `ChunkIndex.holding`."""
        found: set[int] = set()
        for location in self._folded.locations(quote):
            found |= {at for at in self._near(location) if _holds(self._places[at], location)}
        return [self._chunks[at] for at in sorted(found)]

    def has(self, quote: str) -> bool:
        """Whether a quote stands here; a blank one does not."""
        return next(self._folded.spots(quote), None) is not None

    def spots(self, quote: str) -> list[Location]:
        """Return all places of a quote in the folded text, from its beginning on."""
        return list(self._folded.spots(quote))

    def places(self, quote: str) -> list[Placement]:
        """Return all places of a quote, from the beginning on, without overlaps."""
        return [self.placed(spot) for spot in self._folded.spots(quote)]

    def place(self, evidence: Evidence) -> Placement | None:
        """Return where a quote stands, as `ChunkIndex.place` does."""
        spot = self.spot(evidence)
        return None if spot is None else self.placed(spot)

    def spot(self, evidence: Evidence) -> Location | None:
        """Return the place of a quote in the folded text, chosen as by `ChunkIndex.place`."""

        def likeness(spot: Location) -> tuple[bool, int]:
            placed = self.placed(spot)
            at_home = placed.start is not None and placed.start == evidence.start
            around = alike(placed.before[::-1], evidence.prefix[::-1])
            return at_home, around + alike(placed.after, evidence.suffix)

        return max(self._folded.spots(evidence.quote), key=likeness, default=None)

    def around(self, spot: Location, chars: int) -> Surroundings:
        """Return up to so many characters around a place in the folded text."""
        text = self._folded.text
        return Surroundings(
            text[max(0, spot.start - chars) : spot.start].lstrip(),
            text[spot.end : spot.end + chars].rstrip(),
        )

    def original(self, spot: Location) -> Location:
        """Return the place in `text` of one in the folded text; it has a character."""
        return self._folded.original(spot)

    def placed(self, spot: Location) -> Placement:
        """Return what stands at a place in the folded text; it has a character."""
        return self.placed_at(self.original(spot))

    def placed_at(self, location: Location) -> Placement:
        """Return what stands at a place in `text`; it has a character that is no blank."""
        near = [at for at in self._near(location) if _shared(self._places[at], location)]
        quarter = (location.end - location.start) / 4
        held = [at for at in near if _shared(self._places[at], location) >= quarter] or near
        first, last = self._places[near[0]], self._places[near[-1]]
        start = end = None
        if self._anchored:
            start = self._chunks[near[0]].start + location.start - self._places[near[0]].start
            end = self._chunks[near[-1]].start + location.end - self._places[near[-1]].start
        return Placement(
            chunks=tuple(self._chunks[at] for at in held),
            text=self._text[location.start : location.end],
            start=start,
            end=end,
            is_whole=len(near) == 1 or any(_covers(self._places[at], location) for at in near),
            before=self._text[max(first.start, location.start - CONTEXT_CHARS) : location.start],
            after=self._text[location.end : min(last.end, location.end + CONTEXT_CHARS)],
        )

    def _near(self, location: Location) -> range:
        first = bisect_left(self._starts, location.start - self._longest)
        return range(first, bisect_left(self._starts, location.end))


def _anchored(chunks: Sequence[Chunk]) -> bool:
    """Say whether offsets are known and agree: what two chunks share reads the same in both."""
    if any(chunk.end - chunk.start != len(chunk.text) for chunk in chunks):
        return False
    for one, other in pairwise(chunks):
        shared = min(one.end, other.end) - other.start
        if shared > 0 and not one.text.startswith(other.text[:shared], other.start - one.start):
            return False
    return True


def _holds(place: Location, quote: Location) -> bool:
    shared = _shared(place, quote)
    return shared > 0 and 2 * shared >= quote.end - quote.start


def _covers(place: Location, quote: Location) -> bool:
    return place.start <= quote.start and quote.end <= place.end


def _shared(place: Location, quote: Location) -> int:
    return max(0, min(place.end, quote.end) - max(place.start, quote.start))


def alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common from their beginnings."""
    if one == other:
        return len(one)
    differs = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differs, min(len(one), len(other)))


def standing_at(item: Evidence, placed: Placement) -> Evidence:
    """Return evidence as the document has it, at its place."""
    return item.model_copy(
        update={
            "doc_id": placed.chunks[0].doc_id,
            "chunk_id": placed.chunks[0].chunk_id,
            "quote": placed.text if placed.is_whole else item.quote,
            "start": placed.start,
            "end": placed.end,
            "prefix": placed.before,
            "suffix": placed.after,
        }
    )
