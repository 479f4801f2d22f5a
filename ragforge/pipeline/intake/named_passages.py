"""Ids of a hand-made file that name other passages than the words beside them.

People's grades are of what they read. Where ids have shifted since, as by an index that was made
anew, the grade of an id would go to other words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import file_texts
from ragforge.corpus.quote_locations import ChunkIndex
from ragforge.errors import DataError
from ragforge.files.formats.named_texts import NamedText
from ragforge.files.set.document_level import Label
from ragforge.files.text import shown
from ragforge.records import Chunk
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.object_fields import chunks_by_text, fold_text

_MOST_LOOKED_UP: Final = 50
"""Texts that are not of their chunks; for each all chunks are looked through."""
_NEARLY_ALL: Final = 0.9
"""Share of the letters of a document from which on a text is all of it."""


def refuse_other_texts(
    chunks: Sequence[Chunk], texts: Iterable[NamedText], find: Callable[[str], Sequence[Label]]
) -> None:
    """Refuse a run in which a text beside the id of a chunk stands in another one.

    Which of the two was retrieved is not known. A text that stands nowhere says nothing: the index
    may be of other wordings.

    Args:
        chunks: Of the set.
        texts: What hits read, with their ids.
        find: Returns what an id may mean.

    Raises:
        DataError: It does.
    """
    passages = NamedPassages(chunks, ChunkIndex(chunks))
    left = _MOST_LOOKED_UP
    for named in texts:
        meant = find(named.name)
        if len(meant) != 1 or passages.is_of(named, meant[0]):
            continue
        if there := passages.holding(named.text):
            raise DataError(
                f"{named.where}: {shown(named.name)} is named beside {shown(named.text)}, which "
                f"stands in {shown(there)}; mend the ids, or leave the texts out; nothing was "
                "taken in"
            )
        left -= 1
        if not left:
            return


class NamedPassages:
    """Holds the words that stand beside ids against what these name.

    As with hits of a service, a text may be cut short, have a heading, or be marked up.

    Args:
        chunks: Of the set.
        index: Of these.
    """

    def __init__(self, chunks: Sequence[Chunk], index: ChunkIndex) -> None:
        self._chunks, self._index = chunks, index
        self._documents = CorpusDocuments(chunks, file_texts, FileTextLocator)
        self.n_parts = 0
        """Labels of whole documents beside the text of a part of one."""

    def is_of(self, named: NamedText, label: Label) -> bool:
        """Whether a text is of what the id beside it names.

        Args:
            named: The id and the text.
            label: What the id names.
        """
        if label.level == "chunk":
            return self._is_of_chunk(named.text, self._by_id[label.id])
        is_of = self._documents.is_of_document(named.text, label.id)
        self.n_parts += is_of and self._is_part(named.text, label.id)
        return is_of

    def holding(self, text: str) -> str:
        """Return the id of a chunk that holds a text; "" for none. It looks through all of them."""
        return next(self._holding(text), "")

    def _is_of_chunk(self, text: str, chunk: Chunk) -> bool:
        same = self._by_text.get(fold_text(text))
        return chunk in same if same else self._documents.is_text_of(text, chunk)

    def _is_part(self, text: str, doc_id: str) -> bool:
        """Whether a text is clearly less than its document, and that more than one chunk."""
        is_cut = sum(chunk.doc_id == doc_id for chunk in self._chunks) > 1
        return is_cut and len(fold_text(text)) < _NEARLY_ALL * len(self._documents.folded(doc_id))

    def _holding(self, text: str) -> Iterator[str]:
        """Yield the ids of chunks that hold a text."""
        yield from (chunk.chunk_id for chunk in self._by_text.get(fold_text(text), ()))
        for chunk in self._documents.chunks_in_other_writing(text):
            yield chunk.chunk_id
        for doc_id in self._index.documents_with(text):
            for chunk in self._index.holding(text, doc_id):
                yield chunk.chunk_id

    @cached_property
    def _by_id(self) -> dict[str, Chunk]:
        return {chunk.chunk_id: chunk for chunk in self._chunks}

    @cached_property
    def _by_text(self) -> dict[str, list[Chunk]]:
        return chunks_by_text(self._chunks)
