"""From the passages that a system had before it to the chunks of a dataset."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.files.set.document_level import DocumentNames
from ragforge.records import Chunk
from ragforge.retrieval import ContextPassage
from ragforge.retrieval.object_fields import spaced

_LONGEST_ID = 200
"""What is longer, or has blanks within, is the text of a passage and not its id."""


@dataclass(frozen=True, slots=True)
class Found:
    """The chunks behind some passages.

    Args:
        chunk_ids: Each once; also ids that came with a passage and that no chunk has.
        n_unknown: Passages without such an id that are in no chunk.
    """

    chunk_ids: tuple[str, ...]
    n_unknown: int


class Contexts:
    """Finds the chunks that a system's passages are."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._ids = {chunk.chunk_id for chunk in chunks}
        self._doc_ids = list(dict.fromkeys(chunk.doc_id for chunk in chunks))
        self._index = ChunkIndex(chunks)
        self._chunks = chunks

    @cached_property
    def _id_by_text(self) -> dict[str, str]:
        return {spaced(chunk.text): chunk.chunk_id for chunk in reversed(self._chunks)}

    @cached_property
    def _documents(self) -> DocumentNames:
        return DocumentNames(self._doc_ids)

    def find(self, context: Iterable[ContextPassage]) -> Found:
        """Return the chunks; of a passage in no chunk its document, else the id it came with."""
        found = [self._chunk_id(passage) for passage in context]
        ids = dict.fromkeys(chunk_id for chunk_id in found if chunk_id is not None)
        return Found(tuple(ids), found.count(None))

    def quoted(self, quote: str, doc_id: str) -> str | None:
        """Return the first chunk of a document that holds a quote."""
        held = self._index.holding(quote, doc_id)
        return held[0].chunk_id if held else None

    def _chunk_id(self, passage: ContextPassage) -> str | None:
        known = next((name for name in passage.ids if name in self._ids), None)
        if known is not None:
            return known
        for text in passage.texts:
            whole = self._id_by_text.get(spaced(text))
            if whole is not None:
                return whole
        doc_id = self._doc_id(passage.ids)
        if doc_id is not None and set(passage.texts) <= set(passage.ids):
            return doc_id
        for text in passage.texts:
            if text not in passage.ids or _is_text(text):
                held = self._holding(text, passage.doc_ids)
                if held is not None:
                    return held
        return doc_id or next((name for name in passage.ids if not _is_text(name)), None)

    def _doc_id(self, names: Iterable[str]) -> str | None:
        """Return the first document that is named, by its id or the end of its path."""
        found = (self._documents.find(name) for name in names)
        return next((doc_ids[0] for doc_ids in found if len(doc_ids) == 1), None)

    def _holding(self, text: str, doc_ids: Iterable[str]) -> str | None:
        """Return a chunk with a quote; of the documents named first, then of any."""
        found = (self.quoted(text, doc_id) for doc_id in (*doc_ids, *self._doc_ids))
        return next((chunk_id for chunk_id in found if chunk_id is not None), None)


def _is_text(name: str) -> bool:
    return len(name) > _LONGEST_ID or len(name.split()) > 1
