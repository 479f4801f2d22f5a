"""Chunks of a document: within one section, exact slices of the text, ids from content alone."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ragforge.corpus.documents import Document
from ragforge.corpus.formats import Block, text_blocks
from ragforge.corpus.packing import ChunkLimits, ChunkSpan, Section, chunk_spans, sections
from ragforge.errors import UsageError
from ragforge.records import Chunk

CHUNKING_VERSION = 1
"""Goes up when the same document gives other chunks."""
MAX_CHARS = 2000
MIN_CHARS = 200
_LEAST_MAX_CHARS = 20
_WHOLE_FACTOR = 2
_ID_CHARS = 16
_OWN_ID = re.compile(rf"c_[a-z2-7]{{{_ID_CHARS}}}")
_MOST_OCCURRENCES = 100
"""Looked for of a text that a document repeats."""


def chunk_document(
    document: Document, *, max_chars: int = MAX_CHARS, min_chars: int = MIN_CHARS
) -> list[Chunk]:
    """Return the chunks of a document in order; every visible character is in exactly one.

    Left out are front matter and documents of nothing but headings. A chunk holds text of one
    section with its heading; sections below min_chars go together with the next, else with the
    previous one (a sibling, or the section around them), under the titles that they share. There
    is no overlap.

    Args:
        document: With normalised text; `document.text[start:end]` is the text of a chunk.
        max_chars: What a chunk may hold. A fence or a table is kept whole up to twice as much,
            and beyond that cut at line ends.
        min_chars: Below it a chunk is too little to ask about; 0 keeps all sections apart.

    Raises:
        UsageError: The sizes are out of range.
    """
    if max_chars < _LEAST_MAX_CHARS:
        raise UsageError(f"max_chars: expected at least {_LEAST_MAX_CHARS}, got {max_chars}")
    if min_chars < 0:
        raise UsageError(f"min_chars: expected at least 0, got {min_chars}")
    limits = ChunkLimits(max_chars, min_chars, _WHOLE_FACTOR * max_chars)
    sections = sections_of(document, max_chars)
    return list(chunks_at(document, chunk_spans(document.text, sections, limits)))


def sections_of(document: Document, max_chars: int = MAX_CHARS) -> list[Section]:
    """Return the sections of a document; lists longer than max_chars come in parts."""
    return sections(document.text, _blocks(document, max_chars), document.title)


def chunks_at(document: Document, spans: Iterable[ChunkSpan]) -> Iterator[Chunk]:
    """Yield the chunks at spans, which may overlap, with ids from their content."""
    occurrences: Counter[tuple[tuple[str, ...], str]] = Counter()
    for place in spans:
        start, end = place.span.start, place.span.end
        if start == end:
            continue
        digest = text_sha256(document.text[start:end])
        occurrences[place.path, digest] += 1
        occurrence = occurrences[place.path, digest]
        yield Chunk(
            chunk_id=chunk_id(document.doc_id, place.path, digest, occurrence),
            doc_id=document.doc_id,
            text=document.text[start:end],
            heading_path=place.path,
            start=start,
            end=end,
        )


def chunk_id(doc_id: str, heading_path: tuple[str, ...], digest: str, occurrence: int) -> str:
    """Return an id of 80 bits that depends on nothing outside the chunk.

    Args:
        doc_id: Of the document.
        heading_path: Titles around the chunk.
        digest: `text_sha256` of its text.
        occurrence: 1 for the first chunk of the document that has this path and digest, 2 for
            the next.
    """
    joined = json.dumps([doc_id, heading_path, digest, occurrence], ensure_ascii=True)
    encoded = base64.b32encode(hashlib.sha256(joined.encode("ascii")).digest()).decode("ascii")
    return f"c_{encoded[:_ID_CHARS].lower()}"


def fits_id(chunk: Chunk) -> bool:
    """Whether the id of a chunk may come from what it holds; one of somebody else's fits all."""
    if not _OWN_ID.fullmatch(chunk.chunk_id):
        return True
    digest = text_sha256(chunk.text)
    return any(
        chunk_id(chunk.doc_id, chunk.heading_path, digest, occurrence) == chunk.chunk_id
        for occurrence in range(1, _MOST_OCCURRENCES + 1)
    )


def text_sha256(text: str) -> str:
    """Return the digest of normalised text with runs of blanks folded: a reflow changes nothing."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()


def _blocks(document: Document, max_chars: int) -> Iterable[Block]:
    if document.format == "markdown":
        from ragforge.corpus.markdown import markdown_blocks

        return markdown_blocks(document.text, max_chars)
    if document.format == "rst":
        from ragforge.corpus.rst import rst_blocks

        return rst_blocks(document.text)
    if document.format in {"html", "pdf", "docx"}:
        from ragforge.corpus.html import html_blocks

        return html_blocks(document.text)
    return text_blocks(document.text)
