"""The rankings of a configuration, as a file: what was retrieved for each query, by its places.

A file holds as much of each ranking as the sweep needs, so a later one with smaller budgets and
cutoffs reads it, and one with larger ones makes it anew.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from ragforge.corpus.documents import Document
from ragforge.corpus.quality import token_count
from ragforge.corpus.sized_chunkers import sized_chunker
from ragforge.deferred import dataclass
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.configurations import Configuration
from ragforge.evaluating.sweep import RankedConfiguration
from ragforge.files.atomic import write_whole
from ragforge.measures.evidence_coverage import RetrievedText, Stretch
from ragforge.records import Chunk, Hit

_FORMAT: Final = 2
_LEAST_TEXTS: Final = 20
_LEAST_TOKENS: Final = 4000
_MOST_TEXTS: Final = 5000


@dataclass(frozen=True, slots=True)
class RankingDepth:
    """How much of a ranking is wanted: both so many texts and so many tokens.

    Args:
        texts: Texts from the top.
        tokens: Tokens of a prompt.
    """

    texts: int
    tokens: int

    @classmethod
    def at_least(cls, texts: int, tokens: int) -> "RankingDepth":
        """Return what is kept where so much is asked for: enough for the usual next question."""
        return cls(max(texts, _LEAST_TEXTS), max(tokens, _LEAST_TOKENS))

    def holds(self, other: "RankingDepth") -> bool:
        """Whether it is enough for another."""
        return self.texts >= other.texts and self.tokens >= other.tokens

    def depth(self, sizes: Sequence[int]) -> int:
        """Return how deep a ranking must be, whichever texts are in it.

        Args:
            sizes: Tokens of all texts.
        """
        total, n = 0, 0
        for size in sorted(sizes):
            n += 1
            total += size
            if total > self.tokens:
                break
        return min(max(n, self.texts), len(sizes), max(_MOST_TEXTS, self.texts))


def cut(configuration: Configuration, documents: Sequence[Document]) -> list[Chunk]:
    """Return the chunks of documents as a configuration cuts them.

    Raises:
        UsageError: The splitter raised, returned something else, what is in no document, or
            nothing at all.
    """
    chunker = sized_chunker(configuration.splitter, configuration.size, configuration.overlap)
    chunks = [chunk for document in documents for chunk in chunker(document)]
    if not chunks:
        raise UsageError(
            f"splitter {configuration.cut_name}: gave no chunk for any of {len(documents)} "
            "documents"
        )
    return chunks


@dataclass(slots=True)
class RankingRecorder:
    """Takes what a retriever found, and writes it.

    Args:
        chunks: What is searched.
        wanted: How much of each ranking is kept.
    """

    chunks: Sequence[Chunk]
    wanted: RankingDepth
    depth: int = field(init=False)
    """How many hits to ask for."""
    _doc_ids: dict[str, int] = field(default_factory=dict)
    _of_chunk: dict[str, tuple[int, int, int, int, int]] = field(init=False)
    _rankings: dict[str, list[tuple[int, int, int, int, int]]] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Measure the chunks once."""
        self._of_chunk = {
            chunk.chunk_id: (
                self._doc_ids.setdefault(chunk.doc_id, len(self._doc_ids)),
                chunk.start,
                chunk.end,
                token_count(chunk.text),
                len(chunk.text),
            )
            for chunk in self.chunks
        }
        self.depth = self.wanted.depth([tokens for *_, tokens, _ in self._of_chunk.values()])

    @property
    def failed(self) -> Mapping[str, str]:
        """Queries that failed, with what was said."""
        return self._failed

    def take(self, query_id: str, hits: Sequence[Hit]) -> None:
        """Take the hits of a query, best first.

        Raises:
            DataError: One is no chunk of this chunking.
        """
        kept: list[tuple[int, int, int, int, int]] = []
        total = 0
        for hit in hits:
            if len(kept) >= self.wanted.texts and total > self.wanted.tokens:
                break
            if hit.chunk_id not in self._of_chunk:
                raise DataError(
                    f"retrieved {hit.chunk_id!r:.80}, which is no chunk of this chunking: a "
                    "retriever of yours must index the chunks that its constructor is given"
                )
            kept.append(self._of_chunk[hit.chunk_id])
            total += kept[-1][3]
        self._rankings[query_id] = kept

    def fail(self, query_id: str, message: str) -> None:
        """Note that a query failed."""
        self._failed[query_id] = message

    def write(self, path: Path, configuration: Configuration, seconds: float) -> None:
        """Write what was taken.

        Raises:
            DataError: The file cannot be written.
        """
        record = {
            "format": _FORMAT,
            "configuration": configuration.name,
            "texts": self.wanted.texts,
            "tokens": self.wanted.tokens,
            "n_chunks": len(self.chunks),
            "n_chars": sum(len(chunk.text) for chunk in self.chunks),
            "seconds": round(seconds, 3),
            "doc_ids": list(self._doc_ids),
            "rankings": self._rankings,
            "failed": self._failed,
        }
        write_whole(path, [json.dumps(record, separators=(",", ":")), "\n"])


def kept_rankings(
    path: Path, configuration: Configuration, wanted: RankingDepth, *, was_kept: bool = True
) -> RankedConfiguration | None:
    """Return the rankings of a file; None where it lacks them, is damaged, or holds too little."""
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        record = json.loads(path.read_text(encoding="utf-8"))
        is_enough = RankingDepth(record["texts"], record["tokens"]).holds(wanted)
        # What failed is tried again by the next sweep.
        if record["format"] == _FORMAT and is_enough and not (was_kept and record["failed"]):
            return _read(record, configuration, was_kept=was_kept)
    return None


def _read(
    record: dict[str, Any], configuration: Configuration, *, was_kept: bool
) -> RankedConfiguration:
    doc_ids: list[str] = record["doc_ids"]
    rankings = {
        str(query_id): tuple(
            RetrievedText(length, tokens, (Stretch(doc_ids[doc], start, end),))
            for doc, start, end, tokens, length in hits
        )
        for query_id, hits in record["rankings"].items()
    }
    return RankedConfiguration(
        configuration,
        int(record["n_chunks"]),
        record["n_chars"] / record["n_chunks"],
        rankings,
        {str(key): str(text) for key, text in record["failed"].items()},
        float(record["seconds"]),
        was_kept,
    )


def digest(*parts: object) -> str:
    """Return a short digest of values that JSON can hold."""
    joined = json.dumps(parts, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(joined.encode("ascii")).hexdigest()[:32]


def chunks_digest(chunks: Sequence[Chunk]) -> str:
    """Return the digest of chunks: where each stands, and what is searched of it."""
    joined = hashlib.sha256()
    for chunk in chunks:
        told = [chunk.doc_id, chunk.start, chunk.end, chunk.heading_path, chunk.text]
        joined.update(f"{json.dumps(told, ensure_ascii=True)}\n".encode("ascii"))
    return joined.hexdigest()[:32]
