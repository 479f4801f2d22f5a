"""The ids that documents have now, and the chunks that are not where their documents are.

A name may go to another text. A chunk of that which reads the same has the id of the chunk of
before, but is not it: that one went with its document.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ragforge.corpus.moved_copies import Copy
from ragforge.corpus.moved_documents import NONE_MOVED, MovedDocuments
from ragforge.files.set.sorted_records import DocumentLines
from ragforge.records import Chunk
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove


class DocumentMap:
    """Where documents of before are now, also where names changed hands.

    Args:
        diff: What changed.
        chunks_before: The chunks of the version before, sorted by id.
        moved: Where the texts of documents stand now.
    """

    def __init__(
        self,
        diff: CorpusDiff,
        chunks_before: Path | None = None,
        moved: MovedDocuments = NONE_MOVED,
    ) -> None:
        self.diff = diff
        self._chunks_before = chunks_before
        self._now = moved.now
        places = {*moved.now.values()}
        self._handed_on = moved.replaced & (moved.now.keys() | places)
        self.untraced = moved.gone & moved.replaced & places
        """Those whose name another has, where nothing tells their own."""

    def of(self, doc_id: str) -> str:
        """Return the id that a document of the version before has now; its own where it is gone."""
        now = doc_id_now(self.diff, doc_id)
        return now if now != doc_id else self._now.get(doc_id, doc_id)

    def move_of(self, doc_id: str) -> DocumentMove | None:
        """Return a document before and under the id that it has now; None where it is as it was."""
        move, home = self.diff.moves.get(doc_id), self.of(doc_id)
        there = self.diff.moves.get(home) if home != doc_id else None
        if move is None or there is None or there.now is None:
            return move
        return DocumentMove(move.before, there.now)

    def copy_before(self, chunk: Chunk) -> Copy:
        """Return a chunk of before; it is placed nowhere where its document is untraced."""
        doc_id = chunk.doc_id
        home = "" if doc_id in self.untraced else self.of(doc_id)
        return Copy(doc_id, chunk.start, chunk.chunk_id, home)

    def before(self) -> Iterator[Chunk]:
        """Yield the chunks of before that are gone, or of documents whose names others have."""
        return self._chunks(self.diff.removed(), self._chunks_before)

    def added(self) -> Iterator[Chunk]:
        """Yield the chunks that are new, or of documents whose names others had."""
        return self._chunks(self.diff.added(), self.diff.chunks_path)

    def _chunks(self, changed: Iterable[Chunk], path: Path | None) -> Iterator[Chunk]:
        names = self._handed_on if path is not None else frozenset[str]()
        yield from (chunk for chunk in changed if chunk.doc_id not in names)
        if path is not None and names:
            with DocumentLines(path, names) as lines:
                for name in sorted(names):
                    yield from lines.chunks_of(name)


def doc_id_now(diff: CorpusDiff, doc_id: str) -> str:
    """Return the id that a document of before goes by now, if its name changed; else its own."""
    move = diff.moves.get(doc_id)
    if move is None or move.before is None or move.now is None or move.before.doc_id != doc_id:
        return doc_id
    return move.now.doc_id
