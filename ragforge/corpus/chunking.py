"""Chunks of a document: within one section, exact slices of the text, ids from content alone.

Blocks make sections under headings; these are packed into units of retrieval.
"""

import base64
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field

from ragforge.corpus.documents import Document
from ragforge.corpus.formats import Block, Kind, Lines, text_blocks
from ragforge.deferred import dataclass, hashlib, pattern
from ragforge.errors import UsageError
from ragforge.records import Chunk

_EMPTY_LINE = pattern(r"\n[^\S\n]*\n")
_BEFORE_ITEM = pattern(r"\n(?=[ \t]*(?:[-*+•]|\d{1,9}[.)])[ \t])")
_SENTENCE_END = pattern(r"[.!?…][\"'”’)\]]*\s+|[。！？]+")  # noqa: RUF001
_LINE_END = pattern(r"\n")
_BLANK = pattern(r"\s+")
_EMPTY_LINES = pattern(r"(?:[^\S\n]*\n)+")
_PROSE = (_EMPTY_LINE, _BEFORE_ITEM, _SENTENCE_END, _LINE_END, _BLANK)
_ROWS = (_EMPTY_LINE, _LINE_END, _SENTENCE_END, _BLANK)
_VISIBLE = pattern(r"[^\W_]")
_TITLE_PARTS = pattern(r"(?<!\s)\s+[-–—|·»:]\s+")  # noqa: RUF001  # dashes as page titles have them
_BARE = {"heading", "mark"}
_TAIL_CHARS = 200
CHUNKING_VERSION = 1
"""Goes up when the same document gives other chunks."""
MAX_CHARS = 2000
MIN_CHARS = 200
_LEAST_MAX_CHARS = 20
_WHOLE_FACTOR = 2
_ID_CHARS = 16
_OWN_ID = pattern(rf"c_[a-z2-7]{{{_ID_CHARS}}}")
_MOST_OCCURRENCES = 100
"""Looked for of a text that a document repeats."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, from its first character to behind its last."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Length in code points."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks in order; its own heading, and empty headings before it, come first."""

    path: tuple[str, ...]
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _ChunkLimits:
    """Sizes in code points.

    Attributes:
        max_chars: What packed text does not exceed.
        min_chars: Below it a section is put together with a neighbour.
        whole_chars: Up to here a fence or a table stays whole, alone in its chunk.
    """

    max_chars: int
    min_chars: int
    whole_chars: int


@dataclass(frozen=True, slots=True)
class ChunkSpan:
    """A span of the text that becomes a chunk, and the titles above it."""

    span: Span
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Blocks that belong together: a heading and what follows it, a lead-in and its list."""

    start: int
    end: int
    kind: Kind
    body: int
    """Where the first block that is no heading and no mark starts."""

    @property
    def bare(self) -> bool:
        return self.kind in _BARE


def _sections(text: str, blocks: Iterable[Block], title: str) -> list[Section]:
    """Return the sections that say something, each with the titles from outermost to innermost.

    A heading with nothing under it is put before the section that follows, or behind the last
    one. A document of headings alone has no sections.

    Args:
        text: The text that the blocks are offsets in.
        blocks: All blocks of a document, in order.
        title: Of the document; heads each path unless the first heading repeats it.
    """
    kept: list[Section] = []
    pending: list[Block] = []
    for section in _headed(blocks):
        if not _says_something(text, section):
            pending.extend(section.blocks)
            continue
        kept.append(Section(section.path, pending + section.blocks))
        pending = []
    if kept:
        kept[-1].blocks.extend(pending)
    elif any(block.kind != "heading" for block in pending):
        kept.append(Section((), pending))
    root = _root(title, kept)
    return [Section(root + section.path, section.blocks) for section in kept]


def _headed(blocks: Iterable[Block]) -> Iterator[Section]:
    section = Section(())
    open_headings: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            yield section
            while open_headings and open_headings[-1].level >= block.level:
                open_headings.pop()
            open_headings.append(block)
            section = Section(tuple(heading.title for heading in open_headings))
        section.blocks.append(block)
    yield section


def _says_something(text: str, section: Section) -> bool:
    return any(
        block.kind not in {"heading", "mark"} and _VISIBLE.search(text, block.start, block.end)
        for block in section.blocks
    )


def _root(title: str, sections: list[Section]) -> tuple[str, ...]:
    """Return the title as the head of all paths; nothing where the first heading repeats it.

    Page titles often are "Heading - Name of the site".
    """
    first = next((section.path[0] for section in sections if section.path), "")
    return () if not title or first in {title, *_TITLE_PARTS.split(title)} else (title,)


def _chunk_spans(text: str, sections: Iterable[Section], limits: _ChunkLimits) -> list[ChunkSpan]:
    """Return the spans of all chunks in order; together they leave out nothing but blanks."""
    spans = [
        ChunkSpan(span, section.path)
        for section in sections
        for span in _packed(text, section.blocks, limits)
    ]
    joined_to_next = _merged(spans, limits, lambda before, behind: before)
    return _merged(joined_to_next, limits, lambda before, behind: behind)


def _packed(text: str, blocks: Sequence[Block], limits: _ChunkLimits) -> list[Span]:
    groups: list[list[Span]] = []
    for atom in _atoms(text, blocks, limits):
        if groups and atom.end - groups[-1][0].start <= limits.max_chars:
            groups[-1].append(atom)
        else:
            groups.append([atom])
    if len(groups) > 1 and _joined(groups[-1]).size < limits.min_chars:
        groups[-2:] = _evened(groups[-2] + groups[-1], limits.max_chars)
    return [_joined(group) for group in groups]


def _joined(atoms: Sequence[Span]) -> Span:
    return Span(atoms[0].start, atoms[-1].end)


def _evened(atoms: list[Span], max_chars: int) -> list[list[Span]]:
    """Cut atoms in two where the larger part is smallest, so that no scrap is left over."""

    def larger(cut: int) -> int:
        return max(_joined(atoms[:cut]).size, _joined(atoms[cut:]).size)

    best = min(range(1, len(atoms)), key=larger)
    cut = best if larger(best) <= max_chars else len(atoms) - 1
    return [atoms[:cut], atoms[cut:]]


def _atoms(text: str, blocks: Sequence[Block], limits: _ChunkLimits) -> Iterator[Span]:
    for unit in _units(text, blocks, limits.max_chars):
        span = _trim(text, unit.start, unit.end)
        whole = unit.kind in {"code", "table"} and span.size <= limits.whole_chars
        if whole:
            yield span
        else:
            yield from _split(text, span, unit.kind, limits.max_chars, unit.body)


def _units(text: str, blocks: Sequence[Block], max_chars: int) -> Iterator[_Unit]:
    unit: _Unit | None = None
    for block in blocks:
        if unit is None:
            unit = _Unit(block.start, block.end, block.kind, block.start)
        elif unit.bare:
            unit = _Unit(unit.start, block.end, block.kind, block.start)
        elif block.end - unit.start <= max_chars and _belongs(text, unit, block):
            kind = unit.kind if block.kind in _BARE else block.kind
            unit = _Unit(unit.start, block.end, kind, unit.body)
        else:
            yield unit
            unit = _Unit(block.start, block.end, block.kind, block.start)
    if unit is not None:
        yield unit


def _belongs(text: str, unit: _Unit, block: Block) -> bool:
    """Whether a block is read with the paragraph before: code, tables, and what `:` opens."""
    if block.kind in _BARE:
        return True
    if unit.kind != "text" or block.kind != "text":
        return unit.kind == "text"
    tail = text[max(unit.start, unit.end - _TAIL_CHARS) : unit.end]
    return tail.rstrip().endswith(":")


def _merged(
    spans: Iterable[ChunkSpan],
    limits: _ChunkLimits,
    small: Callable[[ChunkSpan, ChunkSpan], ChunkSpan],
) -> list[ChunkSpan]:
    """Join neighbours, from the first on.

    Args:
        spans: In order.
        limits: What may be joined.
        small: Of two neighbours, returns the one that must be too small.
    """
    merged: list[ChunkSpan] = []
    for behind in spans:
        if (
            merged
            and small(merged[-1], behind).span.size < limits.min_chars
            and _may_merge(merged[-1], behind, limits)
        ):
            merged[-1] = _merge(merged[-1], behind)
        else:
            merged.append(behind)
    return merged


def _may_merge(first: ChunkSpan, second: ChunkSpan, limits: _ChunkLimits) -> bool:
    """Whether two neighbours fit and are siblings, or one is around the other."""
    shared = _shared(first.path, second.path)
    related = len(shared) >= min(len(first.path), len(second.path)) or (
        len(first.path) == len(second.path) == len(shared) + 1
    )
    return related and second.span.end - first.span.start <= limits.max_chars


def _merge(first: ChunkSpan, second: ChunkSpan) -> ChunkSpan:
    path = _shared(first.path, second.path) or first.path or second.path
    return ChunkSpan(Span(first.span.start, second.span.end), path)


def _shared(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    length = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    return first[:length]


def _trim(text: str, start: int, end: int) -> Span:
    """Return the span without blank lines at its ends; indentation of its first line stays."""
    leading = _EMPTY_LINES.match(text, start, end)
    start = leading.end() if leading else start
    return Span(start, start + len(text[start:end].rstrip()))


def _split(text: str, whole: Span, kind: Kind, limit: int, body: int) -> Iterator[Span]:
    """Yield pieces of at most `limit` characters that leave out nothing but blanks.

    Cuts prose at the end of a paragraph, before a list item, at the end of a sentence, at a line
    end, at a blank, else anywhere but before a combining mark; code and tables at line ends if
    any. Headings before `body` are not cut off alone, unless they fill a piece themselves.
    """
    cuts = _ROWS if kind in {"code", "table"} else _PROSE
    at = whole.start
    while whole.end - at > limit:
        # The last two pieces share what is left, so that the last one is no scrap.
        window = min(limit, (whole.end - at) * 5 // 8 + 1)
        floor = max(at + window // 2, body + window // 4 if at < body else at)
        behind = _cut(text, min(floor, at + window - 1), at + window, cuts)
        yield from _visible(text, at, behind)
        at = behind
    yield from _visible(text, at, whole.end)


def _visible(text: str, start: int, end: int) -> Iterator[Span]:
    piece = _trim(text, start, end)
    if piece.size > 0:
        yield piece


def _cut(text: str, floor: int, stop: int, cuts: Sequence[re.Pattern[str]]) -> int:
    for cut in cuts:
        last = 0
        for found in cut.finditer(text, floor, stop):
            last = found.end()
        if last:
            return last
    while stop > floor + 1 and unicodedata.combining(text[stop]):
        stop -= 1
    return stop


def chunk_document(
    document: Document, *, max_chars: int = MAX_CHARS, min_chars: int = MIN_CHARS
) -> list[Chunk]:
    """Return the chunks of a document in order; every visible character is in exactly one.

    Left out are front matter and documents of nothing but headings. A chunk holds text of one
    section with its heading; sections below min_chars go together with the next, else with the
    previous one (a sibling, or the section around them), under the titles that they share. There
    is no overlap.

    Args:
        document: With normalised text, a slice of which is the text of a chunk.
        max_chars: What a chunk may hold. A fence or a table is kept whole up to twice as much,
            and beyond that cut at line ends.
        min_chars: Below it a chunk is too little to ask about; 0 keeps all sections apart.

    Raises:
        UsageError: The sizes are out of range.
    """
    return list(
        chunks_at(document, chunk_spans(document, max_chars=max_chars, min_chars=min_chars))
    )


def chunk_spans(document: Document, *, max_chars: int, min_chars: int) -> list[ChunkSpan]:
    """Return where the chunks of a document are in its text; see `chunk_document`."""
    if max_chars < _LEAST_MAX_CHARS:
        raise UsageError(f"max_chars: expected at least {_LEAST_MAX_CHARS}, got {max_chars}")
    if min_chars < 0:
        raise UsageError(f"min_chars: expected at least 0, got {min_chars}")
    limits = _ChunkLimits(max_chars, min_chars, _WHOLE_FACTOR * max_chars)
    sections = sections_of(document, max_chars)
    return _chunk_spans(document.text, sections, limits)


def sections_of(document: Document, max_chars: int = MAX_CHARS) -> list[Section]:
    """Return the sections of a document; lists longer than max_chars come in parts."""
    return _sections(document.text, _blocks(document, max_chars), document.title)


def chunks_at(document: Document, spans: Iterable[ChunkSpan]) -> Iterator[Chunk]:
    """Yield the chunks at spans, which may overlap, with ids from their content."""
    occurrences: Counter[tuple[tuple[str, ...], str]] = Counter()
    for place in spans:
        start, end = place.span.start, place.span.end
        if start == end:
            continue
        text, source = document.text[start:end], document.source
        digest = text_sha256(text)
        occurrences[place.path, digest] += 1
        occurrence = occurrences[place.path, digest]
        yield Chunk(
            chunk_id=chunk_id(document.doc_id, place.path, digest, occurrence),
            doc_id=document.doc_id,
            text=text,
            heading_path=place.path,
            start=source.offset(start) if source else start,
            end=source.offset(end - 1) + 1 if source else end,
            hidden=source.hidden(start, end) if source else (),
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
    if document.format in {"markdown", "notebook"}:
        from ragforge.corpus.markdown import markdown_blocks

        return markdown_blocks(document.text, max_chars)
    if document.format in {"asciidoc", "man", "source"}:
        from ragforge.corpus.markdown import scanned_blocks

        return scanned_blocks(Lines(document.text), 0)
    if document.format == "rst":
        from ragforge.corpus.rst import rst_blocks

        return rst_blocks(document.text)
    if document.format in {"html", "pdf", "docx"}:
        from ragforge.corpus.html import html_blocks

        return html_blocks(document.text)
    return text_blocks(document.text)
