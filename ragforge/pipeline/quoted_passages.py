"""Where the passages stand that people named by a quote."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ragforge.corpus.anchors import ChunkIndex, Placement, standing_at
from ragforge.files.relevance import Anchor
from ragforge.records import Evidence
from ragforge.stages.generate.truth import grades_at
from ragforge.stages.quotes import find_proof, has_content
from ragforge.stages.words import words

_CLEAR_WORDS: Final = 3
"""A quote of so many words is not chance, though its ends are cut off within a word."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A quote at its place.

    Args:
        evidence: The quote as the document has it.
        grades: Of the chunks that hold it or a part of it, by id.
        n_places: How often it stands in its document; the first place is taken.
    """

    evidence: Evidence
    grades: dict[str, int]
    n_places: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A quote that tells no passage."""

    reason: str


def find_passage(anchor: Anchor, index: ChunkIndex) -> Passage | Lost:
    """Return where a quote stands: one place of one document.

    Without the id of its document it is looked up in all; exactly one may hold it. A short quote
    has to stand as whole words, for "art" is in every "part", and any quote has to say something.
    """
    doc_ids = [anchor.doc_id] if anchor.doc_id else index.documents_with(anchor.quote)
    if not doc_ids:
        return Lost("names no document, and is in none")
    if len(doc_ids) > 1:
        return Lost(f"names no document, and is in {len(doc_ids)} of them")
    places = index.places(anchor.quote, doc_ids[0])
    if not places:
        return Lost("is in no chunk of the document")
    telling = _telling(anchor.quote, places)
    if not telling:
        return Lost("is part of a word or number, or says nothing; quote more")
    placed = telling[0]
    item = Evidence(doc_id=doc_ids[0], chunk_id=placed.chunks[0].chunk_id, quote=placed.text)
    return Passage(standing_at(item, placed), grades_at(placed, anchor.grade), len(telling))


def _telling(quote: str, places: Iterable[Placement]) -> list[Placement]:
    if has_content(quote) and len(words(quote)) >= _CLEAR_WORDS:
        return list(places)
    return [placed for placed in places if _is_proof(placed)]


def _is_proof(placed: Placement) -> bool:
    # Another place right before is looked at by itself.
    before = placed.before[placed.before.rfind(placed.text) + 1 :]
    found = find_proof(placed.text, f"{before}{placed.text}{placed.after}")
    return found is not None and found.start <= len(before) < found.end
