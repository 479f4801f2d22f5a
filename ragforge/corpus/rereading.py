"""Chunks and quotes of sets that were cut before markup was read, as they are read now."""

from collections.abc import Callable

from ragforge.corpus.block_marks import with_one_form
from ragforge.corpus.chunking import text_sha256
from ragforge.corpus.documents import MARKUP_READ, read_plain
from ragforge.corpus.formats import FORMATS, SOURCE_CODE, suffix_of
from ragforge.corpus.seen_text import SeenText
from ragforge.records import Chunk


def as_read(chunk: Chunk) -> Chunk:
    """Return a chunk with the text that a reader sees of it, at its place in the file."""
    seen = _seen(chunk)
    text = seen.text.strip()
    if chunk.hidden or not seen.places or not text:
        return chunk
    start = seen.text.index(text)
    place: dict[str, object] = {"start": 0, "end": 0, "hidden": ()}
    if chunk.end > chunk.start and chunk.has_offsets:
        place = {
            "start": chunk.start + seen.offset(start),
            "end": chunk.start + seen.offset(start + len(text) - 1) + 1,
            "hidden": seen.hidden(start, start + len(text)),
        }
    return chunk.model_copy(update={"text": text, **place})


def reader_of(before: str, now: str) -> Callable[[Chunk], Chunk]:
    """Return what reads the chunks of a set as they are cut now.

    Args:
        before: How its documents were cut. Chunks that were read already are left alone: one may
            begin amid code, where a star is a star.
        now: How they are cut now; ready-made chunks are not read.
    """
    is_new = MARKUP_READ in now and MARKUP_READ not in before
    return as_read if is_new else lambda chunk: chunk


def seen_sha256(chunk: Chunk) -> str:
    """Return the digest of what a reader sees of a chunk: its identity beside its titles.

    Text that was read already is read again: an earlier release left more markup in it. How items,
    headings, fences and tables are drawn is not seen.
    """
    text = _read(chunk.text, chunk.doc_id).text.strip() or chunk.text
    return _sha256(text, chunk.doc_id)


def seen_now_sha256(chunk: Chunk) -> str:
    """Return the same of a chunk that was cut by this release.

    Where something is hidden in it, it was read: what looks like markup then is text, such as
    `&lt;input max=5&gt;`, and another number in it is seen.
    """
    return _sha256(chunk.text, chunk.doc_id) if chunk.hidden else seen_sha256(chunk)


def seen_digests(chunk: Chunk) -> tuple[str, str]:
    """Return by which digests a chunk of the version before may be one of now, the surer first.

    Which release cut it is not known: what looks like markup in it may be text, or was left there.
    """
    return seen_now_sha256(chunk), seen_sha256(chunk)


def quote_as_read(quote: str, doc_id: str) -> str:
    """Return what a reader sees of a quote of a document."""
    return _read(quote, doc_id).text.strip() or quote


def _sha256(text: str, doc_id: str) -> str:
    """Return the digest of a text without its marks; a star of source code is no mark."""
    is_code = suffix_of(doc_id) in SOURCE_CODE
    return text_sha256(text if is_code else with_one_form(text))


def _seen(chunk: Chunk) -> SeenText:
    return SeenText(chunk.text) if chunk.hidden else _read(chunk.text, chunk.doc_id)


def _read(text: str, doc_id: str) -> SeenText:
    form = FORMATS.get(suffix_of(doc_id.partition("#")[0]), "text")
    form = "markdown" if form in {"export", "notebook"} else form
    return read_plain(text, form, doc_id) if form in {"markdown", "rst"} else SeenText(text)
