"""How chunks begin and end: what is cut in two between neighbours of a document."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ragforge.records import Chunk

LineKind = Literal["text", "heading", "item", "row", "fence"]
Cut = Literal["sentence_cut", "table_cut", "list_cut", "code_cut"]

_ITEM = re.compile(r"[ \t]*(?:[-*+•◦‣]|\(?\d{1,4}[.)]|\(?[a-z][.)])[ \t]+\S")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*|[^\n|]*\S \| \S[^\n]*")
_RULE = re.compile(r"[ \t]*(?:\|[ \t]*)?:?-{2,}:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?")
_HEADING = re.compile(r"#{1,6}[ \t]+\S")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_OPENERS: Final = "\"'“‘«(*_[`"  # noqa: RUF001  # quotes as books have them
_CLOSERS: Final = "*_`~"
_UNFINISHED = re.compile(r"[^\W_]|[,;، 、，(–—-]")  # noqa: RUF001  # commas of several scripts
_TAIL_CHARS = 2000
_SHOWN = 100
_FENCE_NOTE = "a code fence is opened or closed elsewhere"
_LINE_GAP = 1
_PARAGRAPH_GAP = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """What is kept of a chunk to compare it with its neighbours."""

    chunk_id: str
    doc_id: str
    path: tuple[str, ...]
    start: int
    end: int
    """0 where offsets are not known."""
    head: LineKind
    tail: LineKind
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


def edge_of(chunk: Chunk) -> Edge:
    """Return the edges of a chunk."""
    text = chunk.text.strip("\n")
    top = text[:_TAIL_CHARS].split("\n", 2)
    opening = text[:_SHOWN].lstrip().lstrip(_OPENERS)[:1]
    ending = text[-_SHOWN:].rstrip().rstrip(_CLOSERS)[-1:]
    fenced = "```" in text or "~~~" in text
    return Edge(
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


@dataclass(frozen=True, slots=True)
class CutFound:
    """A cut in a chunk: where, of which kind, and the words that show it."""

    edge: Edge
    kind: Cut
    note: str
    text: str


def cuts(edges: list[Edge]) -> Iterator[CutFound]:
    """Yield what is cut in two in the chunks of one document.

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
            yield CutFound(edge, "code_cut", _FENCE_NOTE, edge.first)
        elif before is not None and before.fences % 2 == 0:
            yield from _between(before, edge)
        inside = inside != is_odd


def _between(one: Edge, other: Edge) -> Iterator[CutFound]:
    gap = _gap(one, other)
    if _sentence(one, other, gap):
        yield CutFound(one, "sentence_cut", "ends in the middle of a sentence", f"…{one.last}")
        yield CutFound(other, "sentence_cut", "begins in the middle of a sentence", other.first)
    if one.path != other.path or gap > _PARAGRAPH_GAP:
        return
    if other.head == "row" and one.tail == "row" and not other.headed and gap <= _LINE_GAP:
        yield CutFound(other, "table_cut", "rows of a table without its header", other.first)
    if other.head == "item" and one.tail == "item" and gap >= 0:
        yield CutFound(one, "list_cut", "its list goes on in the next chunk", f"…{one.last}")
    elif one.leads_in and one.tail != "heading" and other.head in {"item", "row", "fence"}:
        yield CutFound(
            one, "list_cut", "what its last line leads in is in the next chunk", one.last
        )


def _sentence(one: Edge, other: Edge, gap: int) -> bool:
    prose = one.tail in {"text", "item"} and other.head == "text"
    if not prose or not one.unfinished or gap > _LINE_GAP:
        return False
    known = bool(one.end and other.end)
    return other.goes_on or (known and gap == 0) or (known and gap > 0 and other.caseless)


def _gap(one: Edge, other: Edge) -> int:
    """Return the characters between two chunks, below 0 if they overlap; 0 where unknown."""
    return other.start - one.end if one.end and other.end else 0


def _kind(line: str) -> LineKind:
    if _HEADING.match(line):
        return "heading"
    if _FENCE.match(line):
        return "fence"
    if _ITEM.match(line):
        return "item"
    return "row" if _ROW.fullmatch(line) else "text"


def _tail(lines: list[str]) -> LineKind:
    """Return what the last line is a part of; an indented line belongs to the item above it."""
    for line in reversed(lines):
        kind = _kind(line)
        if kind != "text" or not line[:1].isspace():
            return kind
    return "text"
