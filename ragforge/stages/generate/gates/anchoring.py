"""The gates for quotes: verbatim, telling, and no longer than a proof is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.corpus.anchors import Location
from ragforge.records import Chunk, Evidence
from ragforge.stages.asking import locate_shown
from ragforge.stages.generate.candidates import Brief, Candidate, Quoted, Rejection
from ragforge.stages.generate.gates.proving import too_little
from ragforge.stages.quotes import has_content

_LONGEST: Final = 1_200
_WHOLE: Final = 0.8
"""Share of a chunk from which on a quote is the chunk itself."""
_SMALL_CHUNK: Final = 500
"""Below this many characters a chunk may be a quote as it is."""
_AROUND: Final = 32
_MULTI_HOP: Final = ("multi_hop", "multi_hop_across")


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a quote stands: the index of its passage, and the place in it."""

    passage: int
    place: Location


def bad_quote(candidate: Candidate, brief: Brief) -> Rejection | None:
    """Return what makes a quote useless, before it is looked up; None where all may do."""
    for quote in candidate.quotes:
        chunk, size = brief.chunks[quote.passage], len(quote.text.strip())
        if _is_too_long(size, chunk):
            return Rejection("quote_too_long", f"{size} of {len(chunk.text)} characters")
        if not has_content(quote.text):
            return Rejection("quote_empty", repr(quote.text.strip()[:40]))
    return None


def anchored(candidate: Candidate, brief: Brief) -> tuple[Evidence, ...] | Rejection:
    """Return where the quotes stand, as they stand there, or which proves nothing.

    Quotes of one passage that overlap are one.
    """
    found: list[_Found] = []
    for quote in candidate.quotes:
        chunk = brief.chunks[quote.passage]
        place = locate_shown(quote.text, chunk.text)
        if place is None:
            return Rejection("quote_not_found", _missing(quote, brief))
        why = too_little(place, chunk, candidate)
        if why:
            return Rejection("quote_too_short", f"{quote.text.strip()[:40]!r} is {why}")
        found.append(_Found(quote.passage, place))
    merged = _merged(found)
    for each in merged:
        chunk, size = brief.chunks[each.passage], each.place.end - each.place.start
        if _is_too_long(size, chunk):
            return Rejection("quote_too_long", f"together {size} of {len(chunk.text)} characters")
    if candidate.type in _MULTI_HOP and len(merged) == 1:
        return Rejection("schema", "one quote for two hops")
    return tuple(_evidence(each, brief.chunks[each.passage]) for each in merged)


def _is_too_long(size: int, chunk: Chunk) -> bool:
    whole = len(chunk.text) >= _SMALL_CHUNK and size > _WHOLE * len(chunk.text)
    return size > _LONGEST or whole


def _merged(found: Sequence[_Found]) -> list[_Found]:
    """Return what was found, in that order, with what overlaps as one at its first place."""
    merged: list[_Found] = []
    for each in found:
        start, end, at = each.place.start, each.place.end, len(merged)
        for index in reversed(range(len(merged))):
            other = merged[index].place
            if merged[index].passage == each.passage and other.start < end and start < other.end:
                start, end, at = min(start, other.start), max(end, other.end), index
                del merged[index]
        merged.insert(at, _Found(each.passage, Location(start, end)))
    return merged


def _evidence(found: _Found, chunk: Chunk) -> Evidence:
    place, known = found.place, chunk.end > chunk.start
    return Evidence(
        doc_id=chunk.doc_id,
        chunk_id=chunk.chunk_id,
        quote=chunk.text[place.start : place.end],
        start=chunk.start + place.start if known else None,
        end=chunk.start + place.end if known else None,
        prefix=chunk.text[max(0, place.start - _AROUND) : place.start],
        suffix=chunk.text[place.end : place.end + _AROUND],
        hop=found.passage + 1,
    )


def _missing(quote: Quoted, brief: Brief) -> str:
    shown = repr(quote.text.strip()[:60])
    elsewhere = next(
        (at for at, chunk in enumerate(brief.chunks) if locate_shown(quote.text, chunk.text)), None
    )
    if elsewhere is None:
        return shown
    return f"{shown} stands in passage {elsewhere + 1}, not in {quote.passage + 1}"
