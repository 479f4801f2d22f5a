"""An open survey: the cards of a corpus, its chunks, and its index for BM25."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from ragforge.corpus.cards import CardReader
from ragforge.corpus.survey import ChunkCard
from ragforge.records import Chunk
from ragforge.retrieval import Retriever
from ragforge.retrieval.newcomers import Newcomers
from ragforge.retrieval.stored import StoredBM25

INDEX = "bm25"
"""Folder of the index within a survey."""


class Surveyed(AbstractContextManager["Surveyed"]):
    """A survey on disk; fulfils `corpus.survey.Survey`. A context manager.

    Args:
        folder: The survey.
        chunks_path: The chunks it was made of.

    Raises:
        DataError: The chunks cannot be read.
        OSError: The survey cannot be read.
    """

    def __init__(self, folder: Path, chunks_path: Path) -> None:
        with ExitStack() as opened:
            self._cards = opened.enter_context(CardReader(folder, chunks_path))
            self._bm25 = StoredBM25(folder / INDEX, self._cards.n_chunks, self._cards.chunk_id)
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def bm25(self) -> Retriever:
        """Searches the whole corpus, headings included."""
        return self._bm25

    @property
    def n_chunks(self) -> int:
        """How many chunks there are."""
        return self._cards.n_chunks

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return self._cards.n_documents

    def cards(self) -> Iterator[ChunkCard]:
        """Yield the cards of all chunks, sorted by chunk id."""
        return self._cards.cards()

    def chunk(self, chunk_id: str) -> Chunk:
        """Return a chunk.

        Raises:
            KeyError: There is none of that id.
            DataError: The chunks were written over in place.
        """
        return self._cards.chunk(chunk_id)

    def newcomers(self, chunk_ids: Collection[str]) -> Newcomers:
        """Return what tells whether some chunks can be among the best that BM25 finds.

        Those that the corpus does not have are passed over.
        """
        rows = (self._row(chunk_id) for chunk_id in chunk_ids)
        return Newcomers(self._bm25, sorted(row for row in rows if row is not None), self._row)

    def _row(self, chunk_id: str) -> int | None:
        try:
            return self._cards.row(chunk_id)
        except KeyError:
            return None

    def neighbours(self, chunk_id: str) -> Sequence[str]:
        """Return the ids of the chunk before and the chunk behind in its document, if any."""
        return self._cards.neighbours(chunk_id)

    def twins(self, chunk_id: str) -> Sequence[str]:
        """Return the ids of the other chunks that are near-duplicates of this one, sorted."""
        return self._cards.twins(chunk_id)

    def in_document(self, doc_id: str) -> Sequence[str]:
        """Return the ids of a document's chunks in their order; [] where there is none."""
        return self._cards.in_document(doc_id)
