"""Finding quotes: where evidence stands in a document, and which chunks hold it."""

from collections.abc import Iterable

from ragforge.corpus.folding import FoldedText, Location, fold, locate
from ragforge.corpus.pages import CONTEXT_CHARS, Page, Placement, standing_at
from ragforge.records import Chunk, Evidence

__all__ = [
    "CONTEXT_CHARS",
    "ChunkIndex",
    "FoldedText",
    "Location",
    "Page",
    "Placement",
    "chunks_holding",
    "fold",
    "locate",
    "standing_at",
]


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

    def documents_with(self, quote: str) -> list[str]:
        """Return the ids of the documents that hold a quote; it looks through all of them."""
        return [doc_id for doc_id in self._chunks if self._page(doc_id).has(quote)]

    def _page(self, doc_id: str) -> Page:
        if doc_id not in self._pages:
            self._pages[doc_id] = Page(self._chunks.get(doc_id, []))
        return self._pages[doc_id]


def chunks_holding(quote: str, doc_id: str, chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return what `ChunkIndex.holding` returns, for a single quote."""
    return ChunkIndex(chunk for chunk in chunks if chunk.doc_id == doc_id).holding(quote, doc_id)
