"""The sentences of a chunk: of its paragraphs and list items, not of code, tables and headings."""

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile(
    r"(?<=[.!?])\s+(?=[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f"
    r"\u05d0-\u05ea\u0620-\u064a\"'`*\[])"
    r"|(?<=[\u3002\uff01\uff1f])\s*(?![\u300d\u300f\u201d\uff09])|(?<=[\u061f\u06d4\u0964])\s+"
)
"""Before a capital letter, or one of a script that has none; behind the stops of such scripts."""
_NOT_PROSE = re.compile(r"\s*(?:#|\||!!!|[-=*_~^+]{3,}\s*$|\.\. |:[a-z-]+:|<)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_INDENTED = re.compile(r"(?: {4}|\t)")


def prose_sentences(text: str) -> Iterator[str]:
    """Yield the sentences, each an exact slice of the text; a wrapped one keeps its line ends."""
    for start, end in _paragraphs(text):
        for part in _SENTENCE_END.split(text[start:end]):
            if part.strip():
                yield part.strip()


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the paragraphs and list items."""
    start: int | None = None
    at, fenced = 0, False
    for line in text.splitlines(keepends=True):
        behind = at + len(line)
        is_fence = _FENCE.match(line) is not None
        item = _LIST_ITEM.match(line)
        prose = not (fenced or is_fence or not line.strip() or _NOT_PROSE.match(line))
        if start is not None and (not prose or item):
            yield start, at
            start = None
        if prose and start is None and (item or not _INDENTED.match(line)):
            start = at + (item.end() if item else 0)
        fenced ^= is_fence
        at = behind
    if start is not None:
        yield start, at
