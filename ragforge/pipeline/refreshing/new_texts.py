"""Which of the chunks that a corpus has now tell what it did not tell before."""

import hashlib
import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Final

from ragforge.records import Chunk
from ragforge.refresh.corpus_diff import CorpusDiff

_ITEM: Final = re.compile(r"^[ \t]*(?:[-*+>]|\d+[.)])[ \t]+", re.MULTILINE)
_APART: Final = re.compile(r"\n\s*\n")
"""Between paragraphs; a single line break may be of a wrap."""
_END: Final = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|(?<=[\u3002\uff01\uff1f])")
_HEADING: Final = re.compile(r"\s*#{1,6}\s")
_RULE: Final = re.compile(r"\s*([=\-~^\"'`#*+.:_])\1{2,}\s*")
"""Under a heading, or a line across the page."""


def with_new_text(diff: CorpusDiff, chunk_ids: Collection[str]) -> frozenset[str]:
    """Return those of some new chunks that hold a sentence which is new.

    A chunk of a document whose text is to the byte as before holds none, however it is cut or named
    now. In another document a sentence is new where it stood in none of the chunks that are gone;
    blanks are folded, and headings left aside.

    Args:
        diff: What changed. Its new and its removed chunks are read as streams; held are digests of
            the sentences of those chunks that are asked for.
        chunk_ids: Of new chunks.
    """
    found = {
        chunk.chunk_id: {*_digests(chunk)}
        for chunk in (diff.added() if chunk_ids else ())
        if chunk.chunk_id in chunk_ids and not _is_of_same_text(diff, chunk.doc_id)
    }
    new = {digest for digests in found.values() for digest in digests}
    for chunk in diff.removed() if new else ():
        new.difference_update(_digests(chunk))
    return frozenset(chunk_id for chunk_id, digests in found.items() if digests & new)


def _is_of_same_text(diff: CorpusDiff, doc_id: str) -> bool:
    move = diff.moves.get(doc_id)
    if move is None or move.before is None or move.now is None or move.now.doc_id != doc_id:
        return False
    return bool(move.now.sha256) and move.before.sha256 == move.now.sha256


def _digests(chunk: Chunk) -> Iterator[bytes]:
    for sentence in _sentences(chunk):
        yield hashlib.sha256(sentence.encode("utf-8", "surrogatepass")).digest()


def _sentences(chunk: Chunk) -> Iterator[str]:
    for part in _APART.split(_ITEM.sub("\n\n", "\n".join(_told(chunk)))):
        for sentence in _END.split(part):
            if folded := " ".join(sentence.split()):
                yield folded


def _told(chunk: Chunk) -> Iterator[str]:
    """Yield the lines of a chunk; for a heading an empty one."""
    for line, below in pairwise([*chunk.text.splitlines(), ""]):
        is_title = line.strip() in chunk.heading_path or bool(_RULE.fullmatch(below))
        yield "" if is_title or _HEADING.match(line) or _RULE.fullmatch(line) else line
