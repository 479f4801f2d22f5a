"""Corpora of a few documents before and after a change, with queries whose quotes stood there."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragforge.config import RefreshSettings
from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import Document
from ragforge.corpus.quote_locations import ChunkIndex, evidence_at
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.record_files import write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.records import Chunk, DocumentsDiff, Evidence, Query, SourceDocument
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove
from ragforge.refresh.quotes.locations import LocatedQuery, LocatedQuote, locate_queries


def chunks_of(texts: Mapping[str, str], max_chars: int = 400) -> list[Chunk]:
    """Return the chunks of documents by id, small enough for a few sentences."""
    documents = (Document(doc_id, "", text, "text") for doc_id, text in texts.items())
    return [c for one in documents for c in chunk_document(one, max_chars=max_chars, min_chars=0)]


def evidence(chunks: Sequence[Chunk], quote: str, doc_id: str) -> Evidence:
    """Return a quote as a set records it."""
    index = ChunkIndex(sorted(chunks, key=lambda chunk: (chunk.start, chunk.chunk_id)))
    item = Evidence(doc_id=doc_id, chunk_id="unknown", quote=quote)
    placed = index.place(item)
    return item if placed is None else evidence_at(item, placed)


@dataclass(frozen=True)
class Change:
    """A corpus before and now; documents are the same where their ids and texts are.

    Args:
        folder: Where files are put.
        before, now: Texts by id.
        renamed: Earlier to present id.
        max_chars_now: How they are cut now; other than 400 cuts all anew.
    """

    folder: Path
    before: Mapping[str, str]
    now: Mapping[str, str]
    renamed: Mapping[str, str] | None = None
    max_chars_now: int = 400

    @property
    def parent(self) -> Dataset:
        """The version before."""
        return Dataset(self.folder / "set")

    def write(self) -> CorpusDiff:
        """Write the chunks of both, and return how they differ."""
        old, new = chunks_of(self.before), chunks_of(self.now, self.max_chars_now)
        old_ids, new_ids = ({chunk.chunk_id for chunk in chunks} for chunks in (old, new))
        files = {
            self.parent.chunks_path: old,
            self.folder / "chunks.jsonl": new,
            self.folder / "added.jsonl": [c for c in new if c.chunk_id not in old_ids],
            self.folder / "removed.jsonl": [c for c in old if c.chunk_id not in new_ids],
        }
        create_dataset(self.parent.path, {})
        for path, chunks in files.items():
            path.parent.mkdir(exist_ok=True, parents=True)
            write_records(path, chunks, lambda chunk: chunk.chunk_id)
        path = self.folder / "chunks.jsonl"
        entry = FileEntry(sha256=digest_file(path), records=len(new))
        return CorpusDiff(
            documents=DocumentsDiff(
                chunks_added=len(new_ids - old_ids), chunks_removed=len(old_ids - new_ids)
            ),
            moves=self._moves(),
            chunks_path=path,
            chunks=entry,
            documents_path=self.folder / "documents.jsonl",
            documents_entry=entry,
            added_path=self.folder / "added.jsonl",
            removed_path=self.folder / "removed.jsonl",
            chunking="",
        )

    def sight_all(
        self, queries: Sequence[Query], settings: RefreshSettings | None = None
    ) -> list[LocatedQuery]:
        """Return where the quotes of queries stand now."""
        return locate_queries(queries, self.parent, self.write(), settings or RefreshSettings())

    def located(
        self, quote: str, doc_id: str, settings: RefreshSettings | None = None, **query: object
    ) -> LocatedQuote:
        """Return where a quote of a document stands now."""
        item = evidence(chunks_of(self.before), quote, doc_id)
        asked = Query(query_id="q1", query="What?", evidence=(item,), **query)
        return self.sight_all([asked], settings)[0].quotes[0]

    def cut_anew(self, max_chars: int) -> "Change":
        """Return the change with other settings of the chunker."""
        return replace(self, max_chars_now=max_chars)

    def _moves(self) -> dict[str, DocumentMove]:
        to = dict(self.renamed or {})
        origin = {after: before for before, after in to.items()}
        moves = {}
        for doc_id in sorted({*self.before, *self.now}):
            was, is_now = origin.get(doc_id, doc_id), to.get(doc_id, doc_id)
            same = was == is_now and self.before.get(was) == self.now.get(is_now)
            if not same or self.max_chars_now != 400:
                moves[doc_id] = DocumentMove(_row(was, self.before), _row(is_now, self.now))
        return moves


def _row(doc_id: str, texts: Mapping[str, str]) -> SourceDocument | None:
    if doc_id not in texts:
        return None
    digest = hashlib.sha256(texts[doc_id].encode()).hexdigest()
    return SourceDocument(doc_id=doc_id, sha256=digest, n_chars=len(texts[doc_id]), n_chunks=1)
