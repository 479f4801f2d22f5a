"""Where the quotes of a hand-made file stand: one place of one document."""

from collections.abc import Sequence
from typing import Final

from ragforge.corpus.cut_ends import cuts_number
from ragforge.corpus.quote_locations import ChunkIndex, Placement, evidence_at
from ragforge.deferred import dataclass
from ragforge.files.formats.row_relevance import GradedQuote
from ragforge.files.set.document_level import LabelNames
from ragforge.records import Evidence
from ragforge.stages.generate.truth import grades_at, repeating_chunks
from ragforge.stages.quotes import find_proof, has_content
from ragforge.stages.words import words

_CLEAR_WORDS: Final = 3
"""A quote of so many words is not chance, though its ends are cut off within a word."""


@dataclass(frozen=True, slots=True)
class PlacedQuote:
    """A quote at its place.

    Args:
        evidence: The quote as the document has it.
        grades: Of the chunks that hold it or a part of it, by id.
        repeating: Other chunks of the document that hold all of it at other places.
        n_places: How often it stands in its document; the first place is taken for the evidence.
        is_as_is: Whether it stands there as it is, but for blanks and markup.
    """

    evidence: Evidence
    grades: dict[str, int]
    repeating: tuple[str, ...]
    n_places: int
    is_as_is: bool


@dataclass(frozen=True, slots=True)
class LostQuote:
    """A quote that tells no passage."""

    reason: str


@dataclass(frozen=True, slots=True)
class MisplacedQuote:
    """A quote that stands elsewhere than in the chunk that is named for it."""

    chunk_id: str
    """Of a chunk that holds it."""


def find_in_chunk(
    graded_quote: GradedQuote, doc_id: str, index: ChunkIndex
) -> PlacedQuote | LostQuote | MisplacedQuote:
    """Return the place of a quote in the chunk that is named for it, of a document.

    Of several places the first is taken that the chunk has, be it in part.
    """
    quote, chunk_id = graded_quote.quote, graded_quote.chunk_id
    places = [placed for placed in _places(quote, index, doc_id) if _is_in(placed, chunk_id)]
    if places:
        clear = [placed for placed in places if _is_clear(quote, placed)]
        return _placed(graded_quote, doc_id, clear, index)
    for holding in _documents_with(quote, index):
        for placed in _clear_places(quote, index, holding):
            return MisplacedQuote(placed.chunks[0].chunk_id)
    return LostQuote(f"is not in chunk {chunk_id}, nor in any other")


def _is_in(placed: Placement, chunk_id: str) -> bool:
    return any(chunk.chunk_id == chunk_id for chunk in placed.chunks)


def find_passage(
    graded_quote: GradedQuote, index: ChunkIndex, names: LabelNames
) -> PlacedQuote | LostQuote:
    """Return the place of a quote: one place of one document.

    Its document goes by its id, or the end of its path; of several that may be meant, and without
    any name of all documents, exactly one may hold it. A short quote has to stand as whole words,
    for "art" is in every "part", and any quote has to say something.
    """
    name = graded_quote.doc_id
    meant = names.documents(name)
    if name and not meant:
        return LostQuote("names a document that is not there")
    if len(meant) == 1:
        doc_ids = list(meant)
    else:
        holding = _documents_with(graded_quote.quote, index)
        having = [doc_id for doc_id in holding if not name or doc_id in meant]
        doc_ids = [doc_id for doc_id in having if _clear_places(graded_quote.quote, index, doc_id)]
        doc_ids = doc_ids or having
        which = f"may be of {len(meant)} documents" if name else "names no document"
        if len(doc_ids) != 1:
            n = f"{len(doc_ids)} of them" if doc_ids else "none"
            return LostQuote(f"{which}, and is in {n}")
    if not _places(graded_quote.quote, index, doc_ids[0]):
        return LostQuote("is in no chunk of the document")
    clear = _clear_places(graded_quote.quote, index, doc_ids[0])
    return _placed(graded_quote, doc_ids[0], clear, index)


def _placed(
    graded_quote: GradedQuote, doc_id: str, clear: Sequence[Placement], index: ChunkIndex
) -> PlacedQuote | LostQuote:
    if not clear:
        return LostQuote("is part of a word or number, or says nothing; quote more")
    placed = clear[0]
    item = Evidence(doc_id=doc_id, chunk_id=placed.chunks[0].chunk_id, quote=placed.text)
    same_words = index.places_of_wording(placed.text, doc_id)
    return PlacedQuote(
        evidence_at(item, placed),
        grades_at(placed, graded_quote.grade),
        repeating_chunks(placed, same_words),
        max(len(clear), len(same_words)),
        is_as_is=bool(index.places(graded_quote.quote, doc_id)),
    )


def _documents_with(quote: str, index: ChunkIndex) -> list[str]:
    """Return the documents in which a quote stands as it is, else those that say it."""
    return index.documents_with(quote) or index.documents_saying(quote)


def _places(quote: str, index: ChunkIndex, doc_id: str) -> list[Placement]:
    """Return where a quote stands as it is, else where its words do with other marks or case."""
    return index.places(quote, doc_id) or index.said_places(quote, doc_id)


def _clear_places(quote: str, index: ChunkIndex, doc_id: str) -> list[Placement]:
    return [placed for placed in _places(quote, index, doc_id) if _is_clear(quote, placed)]


def _is_clear(quote: str, placed: Placement) -> bool:
    if has_content(quote) and len(words(quote)) >= _CLEAR_WORDS:
        return not _cuts_number(placed)
    return _is_proof(placed)


def _cuts_number(placed: Placement) -> bool:
    at = len(placed.before)
    return cuts_number(f"{placed.before}{placed.text}{placed.after}", at, at + len(placed.text))


def _is_proof(placed: Placement) -> bool:
    # Another place right before is looked at by itself.
    before = placed.before[placed.before.rfind(placed.text) + 1 :]
    found = find_proof(placed.text, f"{before}{placed.text}{placed.after}")
    return found is not None and found.start <= len(before) < found.end
