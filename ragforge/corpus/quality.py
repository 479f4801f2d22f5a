"""The quality of chunks: what retrieval and questions will stumble over, kind by kind."""

import hashlib
import heapq
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, Literal, get_args

from ragforge.corpus.near_duplicates import Boilerplate, Repeats
from ragforge.corpus.staleness import Staleness
from ragforge.deferred import dataclass, pattern
from ragforge.records import Chunk
from ragforge.scripts import count_unspaced

_LineKind = Literal["text", "heading", "item", "row", "fence"]
_Cut = Literal["sentence_cut", "table_cut", "list_cut", "code_cut"]
Kind = Literal[
    "too_small", "too_large", _Cut, "heading_alone", "duplicate", "near_duplicate", "stale",
    "boilerplate", "unreadable",
]  # fmt: skip
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
EXAMPLES: Final = 5
_FEWEST_WORDS: Final = 12
_MOST_TOKENS: Final = 512
_CHARS_PER_UNSPACED_WORD = 2
_LETTERS = pattern(r"[^\W_]+")
_MOJIBAKE = pattern("[ÃÂâ][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ]|ï»¿|Ð[\u0080-\u00bf]")  # noqa: RUF001
_RULES = pattern(r"[|:=+-]+")
"""What tables and titles are drawn with."""
_GLYPH_NAMES = pattern(r"\(cid:\d+\)")
_SPACED = pattern(r"(?:\b[^\W\d_] ){8,}")
_SPACED_CHARS = 4
_MOST_HEADINGS_CHARS = 2000
_LEAST_LETTERS = 0.35
_FEWEST_VISIBLE = 20
_SURE = 3
_UNDERLINE = pattern(r"([=\-~^\"'`+*#:.])\1{2,}[ \t]*")
_ITEM = pattern(r"[ \t]*(?:[-*+•◦‣]|\(?\d{1,4}[.)]|\(?[a-z][.)])[ \t]+\S")
_ROW = pattern(r"[ \t]*\|.*\|[ \t]*|[^\n|]*\S \| \S[^\n]*")
_RULE = pattern(r"[ \t]*(?:\|[ \t]*)?:?-{2,}:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?")
_HEADING = pattern(r"#{1,6}[ \t]+\S")
_FENCE = pattern(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_OPENERS: Final = "\"'“‘«(*_[`"  # noqa: RUF001  # quotes as books have them
_CLOSERS: Final = "*_`~"
_UNFINISHED = pattern(r"[^\W_]|[,;، 、，(–—-]")  # noqa: RUF001  # commas of several scripts
_TAIL_CHARS = 2000
_SHOWN = 100
_FENCE_NOTE = "a code fence is opened or closed elsewhere"
_LINE_GAP = 1
_PARAGRAPH_GAP = 3


@dataclass(frozen=True, slots=True)
class Example:
    """A chunk with a fault: which, what is wrong with it, and some of its text."""

    chunk_id: str
    doc_id: str
    heading_path: tuple[str, ...]
    note: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """How many chunks have one kind of fault, with examples."""

    kind: Kind
    n_chunks: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Quartiles, each the size of a chunk."""

    least: int
    lower_quartile: int
    median: int
    upper_quartile: int
    most: int


@dataclass(frozen=True, slots=True)
class ChunkQuality:
    """All findings about the chunks of a corpus."""

    n_documents: int
    n_chunks: int
    n_flagged: int
    """Chunks with at least one finding."""
    chars: Sizes
    words: Sizes
    found: tuple[Finding, ...]
    """Of each kind, in the order of `KINDS`."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """The start and end of a chunk, as they are compared with its neighbours."""

    chunk_id: str
    doc_id: str
    path: tuple[str, ...]
    start: int
    end: int
    """0 where offsets are not known."""
    head: _LineKind
    tail: _LineKind
    goes_on: bool
    """Begins as the rest of a sentence would."""
    caseless: bool
    """Begins with a letter of a script that has no capitals."""
    unfinished: bool
    """Ends without the end of a sentence."""
    leads_in: bool
    """Ends with a colon."""
    headed: bool
    """Begins with a table row that a rule follows."""
    fences: int
    """Lines that open or close a fence; an odd number is one without its other half."""
    first: str
    last: str
    """The start and the end of the text."""


@dataclass(frozen=True, slots=True)
class _CutFinding:
    """A cut in a chunk: where, of which kind, and the words that show it."""

    edge: _Edge
    kind: _Cut
    note: str
    text: str


class Inspector:
    """Takes chunks one by one, in any order, and holds of each no more than some 600 bytes."""

    def __init__(self, max_chars: int) -> None:
        """Look at chunks that were meant to have at most max_chars characters."""
        self._max_chars = max_chars
        self._edges: list[_Edge] = []
        self._chars = array("I")
        self._words = array("I")
        self._tally = _Tally()
        self._repeats = Repeats()
        self._boilerplate = Boilerplate()
        self._staleness = Staleness()

    def add(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        row = len(self._edges)
        edge = edge_of(chunk)
        self._edges.append(edge)
        words = word_count(chunk.text)
        self._chars.append(len(chunk.text))
        self._words.append(words)
        self._tally.grow()
        for kind, note in self._alone(chunk.text, words):
            self._tally.add(kind, row, edge, note)
        self._repeats.add(chunk.text)
        self._boilerplate.add(chunk.doc_id, row, chunk.text)
        self._staleness.add(row, chunk)

    def quality(self) -> ChunkQuality | None:
        """Return the findings, None for no chunk; to be called once, after the last chunk."""
        if not self._edges:
            return None
        documents = self._by_document()
        for rows in documents.values():
            self._add_cuts(rows)
        for row, first in self._repeats.exact():
            self._add("duplicate", row, f"the same text as {self._name(first)}")
        for row, first in self._repeats.near():
            self._add("near_duplicate", row, f"nearly the same text as {self._name(first)}")
        for row, newer, why in self._staleness.stale(self._repeats.numbers):
            self._add("stale", row, f"{why} {self._name(newer)}")
        for row, start, share in self._boilerplate.found(len(documents)):
            self._add("boilerplate", row, f"in {share:.0%} of documents: {start}")
        found = tuple(self._tally.found(kind) for kind in KINDS)
        n_flagged = self._tally.n_flagged
        sizes = _sizes(self._chars), _sizes(self._words)
        return ChunkQuality(len(documents), len(self._edges), n_flagged, *sizes, found)

    def _alone(self, text: str, words: int) -> Iterator[tuple[Kind, str]]:
        if words < _FEWEST_WORDS:
            yield "too_small", f"{words} word{'s' * (words != 1)}"
        if fault := size_fault(text, self._max_chars):
            yield "too_large", fault
        if headings_only(text):
            yield "heading_alone", "nothing below the heading"
        if fault := reading_fault(text):
            yield "unreadable", fault

    def _by_document(self) -> dict[str, list[int]]:
        documents: dict[str, list[int]] = defaultdict(list)
        for row, edge in enumerate(self._edges):
            documents[edge.doc_id].append(row)
        return documents

    def _add_cuts(self, rows: list[int]) -> None:
        if all(self._edges[row].end for row in rows):
            rows.sort(key=lambda row: (self._edges[row].start, self._edges[row].end))
        by_id = {self._edges[row].chunk_id: row for row in rows}
        for cut in cuts([self._edges[row] for row in rows]):
            self._tally.add(cut.kind, by_id[cut.edge.chunk_id], cut.edge, cut.note, cut.text)

    def _add(self, kind: Kind, row: int, note: str) -> None:
        self._tally.add(kind, row, self._edges[row], note)

    def _name(self, row: int) -> str:
        edge = self._edges[row]
        return f"{edge.chunk_id} in {edge.doc_id}"


class _Tally:
    """Which chunk has which faults, and for each kind the examples that are shown."""

    def __init__(self) -> None:
        self._flags = array("H")
        self._examples: dict[Kind, list[tuple[int, Example]]] = {kind: [] for kind in KINDS}

    def grow(self) -> None:
        """Make room for one more chunk."""
        self._flags.append(0)

    def add(self, kind: Kind, row: int, edge: _Edge, note: str, text: str = "") -> None:
        """Add a fault; of two of one kind in one chunk the first counts."""
        bit = 1 << KINDS.index(kind)
        if self._flags[row] & bit:
            return
        self._flags[row] |= bit
        digest = hashlib.sha256(f"{kind} {edge.chunk_id}".encode()).digest()
        # The lowest digests: spread over the corpus, and the same in any order of the chunks.
        place = -int.from_bytes(digest[:8], "big")
        heap = self._examples[kind]
        if len(heap) == EXAMPLES and place <= heap[0][0]:
            return
        shown = Example(edge.chunk_id, edge.doc_id, edge.path, note, text or edge.first)
        (heapq.heappush if len(heap) < EXAMPLES else heapq.heapreplace)(heap, (place, shown))

    def found(self, kind: Kind) -> Finding:
        """Return the finding of a kind, examples sorted by document."""
        bit = 1 << KINDS.index(kind)
        examples = sorted(
            (example for _, example in self._examples[kind]),
            key=lambda example: (example.doc_id, example.chunk_id),
        )
        return Finding(kind, sum(bool(flags & bit) for flags in self._flags), tuple(examples))

    @property
    def n_flagged(self) -> int:
        """How many chunks have a fault."""
        return sum(map(bool, self._flags))


def _sizes(values: Sequence[int]) -> Sizes:
    ordered = sorted(values)
    last = len(ordered) - 1
    return Sizes(*(ordered[last * quarter // 4] for quarter in range(5)))


def word_count(text: str) -> int:
    """Return the words of a text; in scripts without blanks two characters count as one."""
    return len(text.split()) + count_unspaced(text) // _CHARS_PER_UNSPACED_WORD


def token_count(text: str) -> int:
    """Return about how many tokens an embedding model reads.

    Four characters each in ASCII, one in scripts without blanks, two in all others.
    """
    n_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    unspaced = count_unspaced(text)
    return n_ascii // 4 + unspaced + (len(text) - n_ascii - unspaced) // 2


def size_fault(text: str, max_chars: int) -> str:
    """Return why a chunk is too large; "" where it is not."""
    if (tokens := token_count(text)) > _MOST_TOKENS:
        return (
            f"about {tokens:,} tokens: models that read {_MOST_TOKENS} (BGE, E5, GTE; MiniLM 256) "
            "embed no more than the start"
        )
    return f"{len(text):,} characters" if len(text) > 2 * max_chars else ""


def reading_fault(text: str) -> str:
    """Return why a text cannot be read; "" where it can."""
    if lost := text.count("\ufffd"):
        return f"{lost} character{'s' * (lost > 1)} lost in decoding (U+FFFD)"
    if not text.isascii() and len(_MOJIBAKE.findall(text)) >= _SURE:
        return "UTF-8 read in another encoding"
    if len(_GLYPH_NAMES.findall(text)) >= _SURE:
        return "glyphs without letters, as a PDF with broken fonts gives"
    # The search is slow, and words of one letter leave few letters to a blank.
    if len(text) < _SPACED_CHARS * (text.count(" ") + 1) and _SPACED.search(text):
        return "letters set apart"
    visible = "".join(_RULES.sub("", text).split())
    letters = len(visible) - len(_LETTERS.sub("", visible))
    if len(visible) >= _FEWEST_VISIBLE and letters < _LEAST_LETTERS * len(visible):
        return "mostly symbols"
    return ""


def headings_only(text: str) -> bool:
    """Return whether a chunk holds headings and nothing below them."""
    if len(text) > _MOST_HEADINGS_CHARS:
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    at = 0
    while at < len(lines):
        if _HEADING.match(lines[at]):
            at += 1
        elif at + 1 < len(lines) and _UNDERLINE.fullmatch(lines[at + 1]):
            at += 2
        else:
            return False
    return bool(lines)


def cuts(edges: list[_Edge]) -> Iterator[_CutFinding]:
    """Yield the sentences, tables, lists and fences cut in two by the chunks of one document.

    Args:
        edges: Of all its chunks, in the order of the document.
    """
    inside = False
    for before, edge in zip([None, *edges], edges, strict=False):
        if before is not None and _gap(before, edge) < 0:
            inside = False
        is_odd = edge.fences % 2 == 1
        # Whole fences inside a fence mean that a mark was cut in two: the count is of no use.
        inside = inside and (is_odd or not edge.fences)
        if is_odd or inside:
            yield _CutFinding(edge, "code_cut", _FENCE_NOTE, edge.first)
        elif before is not None and before.fences % 2 == 0:
            yield from _between(before, edge)
        inside = inside != is_odd


def _between(before: _Edge, behind: _Edge) -> Iterator[_CutFinding]:
    gap = _gap(before, behind)
    if _sentence(before, behind, gap):
        yield _CutFinding(
            before, "sentence_cut", "ends in the middle of a sentence", f"…{before.last}"
        )
        yield _CutFinding(
            behind, "sentence_cut", "begins in the middle of a sentence", behind.first
        )
    if before.path != behind.path or gap > _PARAGRAPH_GAP:
        return
    if behind.head == "row" and before.tail == "row" and not behind.headed and gap <= _LINE_GAP:
        yield _CutFinding(behind, "table_cut", "rows of a table without its header", behind.first)
    if behind.head == "item" and before.tail == "item" and gap >= 0:
        yield _CutFinding(
            before, "list_cut", "its list goes on in the next chunk", f"…{before.last}"
        )
    elif before.leads_in and before.tail != "heading" and behind.head in {"item", "row", "fence"}:
        yield _CutFinding(
            before, "list_cut", "what its last line leads in is in the next chunk", before.last
        )


def _sentence(before: _Edge, behind: _Edge, gap: int) -> bool:
    prose = before.tail in {"text", "item"} and behind.head == "text"
    if not prose or not before.unfinished or gap > _LINE_GAP:
        return False
    known = bool(before.end and behind.end)
    return behind.goes_on or (known and gap == 0) or (known and gap > 0 and behind.caseless)


def _gap(before: _Edge, behind: _Edge) -> int:
    """Return the characters between two chunks, below 0 if they overlap; 0 where unknown."""
    return behind.start - before.end if before.end and behind.end else 0


def edge_of(chunk: Chunk) -> _Edge:
    """Return the edges of a chunk."""
    text = chunk.text.strip("\n")
    top = text[:_TAIL_CHARS].split("\n", 2)
    opening = text[:_SHOWN].lstrip().lstrip(_OPENERS)[:1]
    ending = text[-_SHOWN:].rstrip().rstrip(_CLOSERS)[-1:]
    fenced = "```" in text or "~~~" in text
    return _Edge(
        chunk_id=chunk.chunk_id,
        doc_id=chunk.doc_id,
        path=chunk.heading_path,
        start=chunk.start,
        end=chunk.end,
        head=_kind(top[0]),
        tail=_tail(text[-_TAIL_CHARS:].rstrip().split("\n")),
        goes_on=opening.islower() or opening in {",", ";"},
        caseless=opening.isalpha() and opening.lower() == opening.upper(),
        unfinished=bool(_UNFINISHED.match(ending)),
        leads_in=ending in {":", "："},  # noqa: RUF001  # as Chinese has it
        headed=len(top) > 1 and bool(_RULE.fullmatch(top[1])),
        fences=len(_FENCE.findall(text)) if fenced else 0,
        first=chunk.text[:_SHOWN],
        last=chunk.text[-_SHOWN:],
    )


def _kind(line: str) -> _LineKind:
    if _HEADING.match(line):
        return "heading"
    if _FENCE.match(line):
        return "fence"
    if _ITEM.match(line):
        return "item"
    return "row" if _ROW.fullmatch(line) else "text"


def _tail(lines: list[str]) -> _LineKind:
    """Return the kind of the last line; an indented line belongs to the item above it."""
    for line in reversed(lines):
        kind = _kind(line)
        if kind != "text" or not line[:1].isspace():
            return kind
    return "text"
