"""Finding quotes: where evidence stands in a document, and which chunks hold it."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ragforge.deferred import dataclass, pattern
from ragforge.files.text import is_normalized, normalize
from ragforge.records import Chunk, Evidence

if TYPE_CHECKING:
    from ragforge.corpus.wordings import Wording

CONTEXT_CHARS = 32
"""Characters around a quote that tell equal quotes of a document apart."""
_OTHER_BLANK = pattern(r"[^\S ]")
_MARKS = pattern(r"[\W_]+")
_BLANKS = pattern(r"\s{2,}")
_RUNS = pattern(r"\s{2,}|\S+")
_HANGUL_MEDIAL_OR_FINAL = range(0x1160, 0x1200)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a quote stands: text[start:end], in code points."""

    start: int
    end: int


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
        length = covered = last = 0
        for number, chunk in enumerate(self._chunks):
            if parts and not (anchored and chunk.start <= covered):
                parts.append("\n")
                length += 1
            is_over = anchored and chunk.start < covered
            start = self._laid_out(last, chunk.start) if is_over else length
            self._places.append(Location(start, start + len(chunk.text)))
            parts.append(chunk.text[chunk.place(covered) if is_over else 0 :])
            length += len(parts[-1])
            if chunk.end > covered:
                covered, last = chunk.end, number
        self._text = "".join(parts)
        self._folded = FoldedText(self._text)
        self._wording: Wording | None = None
        self._bare: str | None = None
        self._starts = [place.start for place in self._places]
        self._longest = max((len(chunk.text) for chunk in chunks), default=0)

    def _laid_out(self, number: int, offset: int) -> int:
        """Return the place in the text of what a chunk has at an offset of the document."""
        return self._places[number].start + self._chunks[number].place(offset)

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
        for spot in self._spots(quote):
            location = self.original(spot)
            found |= {at for at in self._near(location) if _holds(self._places[at], location)}
        return [self._chunks[at] for at in sorted(found)]

    def has(self, quote: str) -> bool:
        """Whether a quote stands here; a blank one does not."""
        return next(self._spots(quote), None) is not None

    def folded_locations(self, quote: str) -> list[Location]:
        """Return all places of a quote in the folded text, from its beginning on."""
        return list(self._spots(quote))

    def places(self, quote: str) -> list[Placement]:
        """Return all places of a quote, from the beginning on, without overlaps."""
        return [self.placement(spot) for spot in self._spots(quote)]

    def places_of_wording(self, quote: str) -> list[Placement]:
        """Return where a quote is said, if it is several times; see `ChunkIndex`."""
        # Most quotes stand once, and to see that takes no numpy.
        return self._said_places(quote) if self._n_bare(quote) > 1 else []

    def said_places(self, quote: str) -> list[Placement]:
        """Return where a quote is said, be it once; see `ChunkIndex.places_of_wording`."""
        return self._said_places(quote) if self._n_bare(quote) else []

    def _n_bare(self, quote: str) -> int:
        if self._bare is None:
            self._bare = _bare(self._text)
        wanted = _bare(quote)
        return self._bare.count(wanted) if wanted else 0

    def _said_places(self, quote: str) -> list[Placement]:
        from ragforge.corpus.letters import GRAM
        from ragforge.corpus.wordings import Wording

        wanted = Wording(quote)
        if len(wanted.letters) < GRAM:
            return []
        if self._wording is None:
            self._wording = Wording(self._text)
        spans = self._wording.places(wanted)
        return [self.placement_at(Location(start, end)) for start, end in spans]

    def place(self, evidence: Evidence) -> Placement | None:
        """Return where a quote stands, as `ChunkIndex.place` does."""
        spot = self.folded_location(evidence)
        return None if spot is None else self.placement(spot)

    def folded_location(self, evidence: Evidence) -> Location | None:
        """Return the place of a quote in the folded text, chosen as by `ChunkIndex.place`."""

        def likeness(spot: Location) -> tuple[bool, int]:
            placed = self.placement(spot)
            at_home = placed.start is not None and placed.start == evidence.start
            around = common_prefix_length(placed.before[::-1], evidence.prefix[::-1])
            return at_home, around + common_prefix_length(placed.after, evidence.suffix)

        before, after = FoldedText(evidence.prefix).text, FoldedText(evidence.suffix).text
        spots = self.whole_spots(evidence.quote, before, after)
        return max(spots, key=likeness, default=None)

    def whole_spots(self, quote: str, before: str, after: str) -> Iterator[Location]:
        """Yield the places of a quote in the folded text that cut no word or number anew.

        "Set to 100" does not stand in "set to 1005", unless it was cut so before.

        Args:
            quote: The quote.
            before: What stood right before it, folded; "" where that is not known.
            after: Likewise, behind it.
        """
        from ragforge.corpus.cut_ends import is_cut_anew

        text = self._folded.text
        for spot in self._spots(quote):
            if not is_cut_anew(text, spot.start, spot.end, before, after):
                yield spot

    def _spots(self, quote: str) -> Iterator[Location]:
        """Yield the places of a quote in the folded text; with its markup, or as it is read."""
        found = False
        for spot in self._folded.folded_locations(quote):
            found = True
            yield spot
        if not found and self._chunks:
            from ragforge.corpus.rereading import quote_as_read

            read = quote_as_read(quote, self._chunks[0].doc_id)
            yield from self._folded.folded_locations(read) if read != quote else ()

    def surroundings(self, spot: Location, chars: int) -> Surroundings:
        """Return up to so many characters around a place in the folded text."""
        text = self._folded.text
        return Surroundings(
            text[max(0, spot.start - chars) : spot.start].lstrip(),
            text[spot.end : spot.end + chars].rstrip(),
        )

    def original(self, spot: Location) -> Location:
        """Return the place in `text` of one in the folded text; it has a character."""
        return self._folded.original(spot)

    def placement(self, spot: Location) -> Placement:
        """Return the placement of a span of the folded text; it has a character."""
        return self.placement_at(self.original(spot))

    def placement_at(self, location: Location) -> Placement:
        """Return the placement of a span of `text`; it has a character that is no blank."""
        near = [at for at in self._near(location) if _shared(self._places[at], location)]
        quarter = (location.end - location.start) / 4
        held = [at for at in near if _shared(self._places[at], location) >= quarter] or near
        first, last = self._places[near[0]], self._places[near[-1]]
        start = end = None
        if self._anchored:
            start = self._chunks[near[0]].offset(location.start - first.start)
            end = self._chunks[near[-1]].end_offset(location.end - last.start)
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
    """Return whether offsets are known and agree: what two chunks share reads the same in both."""
    if not all(chunk.has_offsets for chunk in chunks):
        return False
    for one, other in pairwise(chunks):
        end = min(one.end, other.end)
        shared = other.text[: other.place(end)] if end > other.start else ""
        if shared and not one.text.startswith(shared, one.place(other.start)):
            return False
    return True


def _holds(place: Location, quote: Location) -> bool:
    shared = _shared(place, quote)
    return shared > 0 and 2 * shared >= quote.end - quote.start


def _covers(place: Location, quote: Location) -> bool:
    return place.start <= quote.start and quote.end <= place.end


def _shared(place: Location, quote: Location) -> int:
    return max(0, min(place.end, quote.end) - max(place.start, quote.start))


def common_prefix_length(first: str, second: str) -> int:
    """Return how many characters two texts have in common from their beginnings."""
    if first == second:
        return len(first)
    differs = (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return next(differs, min(len(first), len(second)))


def evidence_at(item: Evidence, placed: Placement) -> Evidence:
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


class ChunkIndex:
    """The chunks of a corpus by document, for looking up many quotes."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            self._chunks.setdefault(chunk.doc_id, []).append(chunk)
        self._pages: dict[str, Page] = {}

    def holding(self, quote: str, doc_id: str) -> list[Chunk]:
        """Return the chunks of a document that hold a quote, wherever it stands in it.

        A chunk holds a quote if it has all of it, or, where the quote runs over several chunks,
        at least half of its characters. Empty for a blank quote or an unknown document.
        """
        return self._page(doc_id).holding(quote)

    def place(self, evidence: Evidence) -> Placement | None:
        """Return where a quote stands in its document; None where it does not.

        Of several places it is the one at its offsets, else the one whose surroundings are most
        like those of the quote, the first of equals.
        """
        return self._page(evidence.doc_id).place(evidence)

    def places(self, quote: str, doc_id: str) -> list[Placement]:
        """Return all places of a quote in a document, from its beginning on, without overlaps."""
        return self._page(doc_id).places(quote)

    def places_of_wording(self, quote: str, doc_id: str) -> list[Placement]:
        """Return all places in a document that say what a quote does; none where it is one place.

        Marks, blanks and case do not count, see `Wording`. A quote of fewer than `GRAM` letters has
        none: it may stand anywhere by chance.
        """
        return self._page(doc_id).places_of_wording(quote)

    def said_places(self, quote: str, doc_id: str) -> list[Placement]:
        """Return the places that `places_of_wording` means, where it is one as well."""
        return self._page(doc_id).said_places(quote)

    def documents_with(self, quote: str) -> list[str]:
        """Return the ids of the documents that hold a quote; it looks through all of them."""
        return [doc_id for doc_id in self._chunks if self._page(doc_id).has(quote)]

    def documents_saying(self, quote: str) -> list[str]:
        """Return the ids of the documents that say what a quote does, see `said_places`."""
        return [doc_id for doc_id in self._chunks if self._page(doc_id).said_places(quote)]

    def _page(self, doc_id: str) -> Page:
        if doc_id not in self._pages:
            self._pages[doc_id] = Page(self._chunks.get(doc_id, []))
        return self._pages[doc_id]


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


def _bare(text: str) -> str:
    """Return the letters and digits of a text, folded."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold())


def fold(text: str) -> str:
    """Return the form in which quotes are compared: NFKC, runs of blanks as one, none around."""
    return " ".join(normalize("NFKC", text).split())


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

    def folded_locations(self, quote: str) -> Iterator[Location]:
        """Yield where the quote stands in the folded text, without overlaps; as `locations`."""
        wanted = fold(quote)
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            yield Location(at, at + len(wanted))
            at = self._text.find(wanted, at + len(wanted))

    def locations(self, quote: str) -> Iterator[Location]:
        """Yield where the quote stands in the original, without overlaps; none of a blank quote."""
        return map(self.original, self.folded_locations(quote))

    def original(self, spot: Location) -> Location:
        """Return the place in the original of a span of the folded text; it has a character."""
        return Location(self._original(spot.start).start, self._original(spot.end - 1).end)

    def _original(self, at: int) -> Location:
        """Return the character, or what became a ligature's or a blank's share, in the original."""
        piece = self._pieces[bisect_right(self._starts, at) - 1]
        if not piece.as_is:
            return Location(piece.start, piece.end)
        start = piece.start + at - piece.folded_start
        return Location(start, start + 1)


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
