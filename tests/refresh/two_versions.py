"""A set by hand, and the version after it whose corpus is another one."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ragforge.corpus.chunking import chunk_id, text_sha256
from ragforge.files.manifest import FileEntry, digest_file
from ragforge.files.record_files import write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import create_dataset
from ragforge.records import (
    Chunk,
    DocumentsDiff,
    Evidence,
    Judgment,
    PoolEntry,
    Provenance,
    Query,
    RenamedDocument,
    SourceDocument,
)
from ragforge.refresh.corpus.diff import CorpusDiff, DocumentMove

Texts = Mapping[str, Sequence[str]]
"""The texts of chunks by document, in their order."""
JUDGE = Provenance(kind="llm", model="judge", prompt="p", prompt_sha256="a" * 64)
OTHER = JUDGE.model_copy(update={"prompt_sha256": "b" * 64})


def chunks_of(texts: Texts) -> list[Chunk]:
    """Return chunks with the ids and offsets that chunking documents gives."""
    found: list[Chunk] = []
    for doc_id, parts in texts.items():
        start, seen = 0, dict[str, int]()
        for part in parts:
            digest = text_sha256(part)
            seen[digest] = seen.get(digest, 0) + 1
            name = chunk_id(doc_id, (), digest, seen[digest])
            end = start + len(part)
            found.append(Chunk(chunk_id=name, doc_id=doc_id, text=part, start=start, end=end))
            start = end + 1
    return sorted(found, key=lambda chunk: chunk.chunk_id)


def id_of(doc_id: str, text: str) -> str:
    """Return the id of the only chunk of a document with a text."""
    return chunk_id(doc_id, (), text_sha256(text), 1)


def graded(
    query_id: str,
    chunk: str,
    grade: int | None,
    source: str = "judge",
    by: Provenance | None = JUDGE,
    evidence: str = "",
) -> Judgment:
    """Return a judgment."""
    return Judgment.model_validate(
        {
            "query_id": query_id,
            "chunk_id": chunk,
            "grade": grade,
            "source": source,
            "provenance": by,
            "evidence": evidence,
            "failure": "invalid" if grade is None else None,
        }
    )


def pooled(query_id: str, chunk: str, rank: int = 1) -> PoolEntry:
    """Return an entry of a pool."""
    return PoolEntry(query_id=query_id, chunk_id=chunk, probes={"bm25:query": rank})


def asking(query_id: str, doc_id: str, text: str, quote: str, **fields: object) -> Query:
    """Return a query whose evidence is a quote in a chunk."""
    item = Evidence(doc_id=doc_id, chunk_id=id_of(doc_id, text), quote=quote)
    return Query.model_validate(
        {
            "query_id": query_id,
            "query": f"What of {query_id}?",
            "expected_answer": quote,
            "evidence": (item,),
            "source_chunk_ids": (item.chunk_id,),
            **fields,
        }
    )


def make_parent(
    place: Path,
    texts: Texts,
    queries: Iterable[Query] = (),
    judgments: Iterable[Judgment] = (),
    pool: Iterable[PoolEntry] = (),
) -> Dataset:
    """Write a set."""
    dataset = create_dataset(place, made_from={})
    dataset.write_chunks(chunks_of(texts))
    dataset.write_queries(queries)
    dataset.write_judgments(judgments)
    if entries := [*pool]:
        dataset.write_pool(entries)
    return dataset


def stage(parent: Dataset, place: Path, diff: CorpusDiff) -> Dataset:
    """Return a copy of a set with the chunks of now; the call store is shared."""
    shutil.copytree(parent.path, place, ignore=shutil.ignore_patterns(".ragforge"))
    staged = Dataset(place, store_of=parent.path)
    staged.write_chunks(
        Chunk.model_validate_json(line) for line in diff.chunks_path.read_text().splitlines()
    )
    return staged


def diff_of(
    before: Texts, now: Texts, place: Path, renamed: Mapping[str, str] | None = None
) -> CorpusDiff:
    """Return how two corpora differ."""
    place.mkdir(parents=True, exist_ok=True)
    renamed = renamed or {}
    old, new = ({chunk.chunk_id: chunk for chunk in chunks_of(texts)} for texts in (before, now))
    files = {
        "chunks": [*new.values()],
        "added": [chunk for name, chunk in new.items() if name not in old],
        "removed": [chunk for name, chunk in old.items() if name not in new],
    }
    for name, chunks in files.items():
        write_records(place / f"{name}.jsonl", chunks, lambda chunk: chunk.chunk_id)
    documents = [_document(doc_id, now[doc_id]) for doc_id in sorted(now)]
    write_records(place / "documents.jsonl", documents, lambda document: document.doc_id)
    return CorpusDiff(
        documents=DocumentsDiff(
            renamed=tuple(RenamedDocument(before=a, after=b) for a, b in renamed.items()),
            chunks_added=len(files["added"]),
            chunks_removed=len(files["removed"]),
        ),
        moves=_moves(before, now, renamed),
        chunks_path=place / "chunks.jsonl",
        chunks=FileEntry(sha256=digest_file(place / "chunks.jsonl"), records=len(new)),
        documents_path=place / "documents.jsonl",
        documents_entry=FileEntry(
            sha256=digest_file(place / "documents.jsonl"), records=len(documents)
        ),
        added_path=place / "added.jsonl",
        removed_path=place / "removed.jsonl",
        chunking="",
    )


def _moves(before: Texts, now: Texts, renamed: Mapping[str, str]) -> dict[str, DocumentMove]:
    moves = {
        doc_id: DocumentMove(
            _document(doc_id, before[doc_id]) if doc_id in before else None,
            _document(doc_id, now[doc_id]) if doc_id in now else None,
        )
        for doc_id in {*before, *now}
        if before.get(doc_id) != now.get(doc_id)
    }
    for old, new in renamed.items():
        move = DocumentMove(_document(old, before[old]), _document(new, now[new]))
        moves |= {old: move, new: move}
    return moves


def _document(doc_id: str, texts: Sequence[str]) -> SourceDocument:
    whole = "\n".join(texts)
    return SourceDocument(
        doc_id=doc_id, sha256=text_sha256(whole), n_chars=len(whole), n_chunks=len(texts)
    )
