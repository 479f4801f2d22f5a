"""The gates for quotes: verbatim, telling, and no longer than a proof is."""

from typing import Final

from ragforge.records import Chunk, Evidence
from ragforge.stages.asking import locate_shown
from ragforge.stages.generate.candidates import Brief, Candidate, Quoted, Rejection
from ragforge.stages.quotes import has_content

_LONGEST: Final = 1_200
_WHOLE: Final = 0.8
"""Share of a chunk from which on a quote is the chunk itself."""
_SMALL_CHUNK: Final = 500
"""Below this many characters a chunk may be a quote as it is."""
_AROUND: Final = 32


def bad_quote(candidate: Candidate, brief: Brief) -> Rejection | None:
    """Return what makes a quote useless, before it is looked up; None where all may do."""
    for quote in candidate.quotes:
        chunk, size = brief.chunks[quote.passage], len(quote.text.strip())
        if size > _LONGEST or (len(chunk.text) >= _SMALL_CHUNK and size > _WHOLE * len(chunk.text)):
            return Rejection("quote_too_long", f"{size} of {len(chunk.text)} characters")
        if not has_content(quote.text):
            return Rejection("quote_empty", repr(quote.text.strip()[:40]))
    return None


def anchored(candidate: Candidate, brief: Brief) -> tuple[Evidence, ...] | Rejection:
    """Return where the quotes stand, as they stand there, or which stands nowhere."""
    found: list[Evidence] = []
    for quote in candidate.quotes:
        evidence = _evidence(quote, brief.chunks[quote.passage])
        if evidence is None:
            return Rejection("quote_not_found", _missing(quote, brief))
        found.append(evidence)
    return tuple(found)


def _evidence(quote: Quoted, chunk: Chunk) -> Evidence | None:
    place = locate_shown(quote.text, chunk.text)
    if place is None:
        return None
    known = chunk.end > chunk.start
    return Evidence(
        doc_id=chunk.doc_id,
        chunk_id=chunk.chunk_id,
        quote=chunk.text[place.start : place.end],
        start=chunk.start + place.start if known else None,
        end=chunk.start + place.end if known else None,
        prefix=chunk.text[max(0, place.start - _AROUND) : place.start],
        suffix=chunk.text[place.end : place.end + _AROUND],
        hop=quote.passage + 1,
    )


def _missing(quote: Quoted, brief: Brief) -> str:
    shown = repr(quote.text.strip()[:60])
    elsewhere = next(
        (at for at, chunk in enumerate(brief.chunks) if locate_shown(quote.text, chunk.text)), None
    )
    if elsewhere is None:
        return shown
    return f"{shown} stands in passage {elsewhere + 1}, not in {quote.passage + 1}"
