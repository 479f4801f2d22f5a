"""Marks of citation in an answer: where they stand, and the answer without them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragforge.corpus.anchors import Location
from ragforge.stages.asking import visible
from ragforge.stages.ground.doubtful import Kind, kind_of
from ragforge.stages.ground.parts import spans
from ragforge.stages.ground.refs import Context, Ref
from ragforge.stages.ground.wording import Wording, blanked

_MARK = re.compile(
    r"\[\[?\^?(?P<square>[^\[\]\n]{1,200})\]\]?(?:\([^()\s]*\))?"
    r"|\u3010(?P<lenticular>[^\u3010\u3011\n]{1,200})\u3011"
    r"|\((?P<round>(?:sources?|refs?|references?|citations?|quellen?|fuentes?)\b[^()\n]{1,200})\)"
    r"|<sup>\s*(?P<raised>[^<>\n]{1,60}?)\s*</sup>"
    r"|(?<=[.,;:!?)\"\u201d\u2019])(?P<tiny>[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+)",
    re.IGNORECASE,
)
"""Raised digits count behind punctuation only: behind a letter they may be an exponent."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_FOOTNOTE = re.compile(
    r"^[ \t]*\[\^?(?P<number>\d{1,3})\](?P<colon>:?)[ \t]+(?P<words>\S.*)$\n?", re.MULTILINE
)
_ADDRESS = re.compile(r"\S+|.*\bhttps?://.*")
_LIST = re.compile(
    r"^[^\w\n]*(?:sources?|references?|citations?|quellen?|fuentes?)[^\w\n:]*:[^\w\n\[\u3010(]*"
    r"(\S.*)$\n?",
    re.MULTILINE | re.IGNORECASE,
)
_BRACKETS = re.compile(r"[\[\]\u3010\u3011()*]")
_PLAIN_DIGITS = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Chunks cited in one place.

    Args:
        scope: What they are cited for, in the answer without marks.
        refs: The chunks; at least one.
    """

    scope: Location
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class CitedText:
    """An answer taken apart.

    Args:
        text: The answer without marks and without characters that a model does not get to see.
        marks: In its order.
        doubtful: Where marks that may be none were left in the text.
    """

    text: str
    marks: tuple[Mark, ...]
    doubtful: tuple[Location, ...] = ()

    @property
    def words(self) -> str:
        """The text, as long, with blanks for what is left of marks and for targets of links."""
        return blanked(self.text, self.doubtful)

    @property
    def wording(self) -> Wording:
        """The text, for finding parts of it."""
        return Wording(self.text, self.doubtful)


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    refs: tuple[Ref, ...]
    for_all: bool = False
    is_doubtful: bool = False


def read_marks(answer: str, chunk_ids: Sequence[str]) -> CitedText:
    """Return an answer without its marks of citation, and what they cite.

    A mark belongs to the sentence that it stands in or behind, at the start of a line to the one
    that follows; a line of sources, such as "Sources: [1], [3]", to the whole answer. Lines that
    only say what a footnote stands for are left out. In code nothing is a mark, nor is an index
    such as x[1] or an interval. Numbers that a sentence may need, as in "see [1]", are counted
    and stay in the text.

    Args:
        answer: As it was given.
        chunk_ids: Of its context, in order.
    """
    shown, context = visible(answer), Context(chunk_ids)
    footnotes = [
        _Found(line.start(), line.end(), ())
        for line in _FOOTNOTE.finditer(shown)
        if _explains(line, context)
    ]
    lists = [
        _Found(line.start(), line.end(), refs, for_all=True)
        for line in _LIST.finditer(shown)
        if (refs := _listed(line[1], context))
    ]
    return _without(shown, _apart([*footnotes, *lists, *_inline(shown, context)]))


def _explains(footnote: re.Match[str], context: Context) -> bool:
    """Whether a line says no more than what a number stands for; it is remembered if known."""
    words = _BRACKETS.sub(" ", footnote["words"])
    known = context.alias(footnote["number"], words)
    return known or bool(footnote["colon"] and _ADDRESS.fullmatch(footnote["words"].strip()))


def _listed(words: str, context: Context) -> tuple[Ref, ...]:
    found = context.refs(_BRACKETS.sub(" ", words))
    if found:
        return found
    marks = list(_inline(words, context))
    between = _MARK.sub("", words)
    return () if re.search(r"\w", between) else tuple(ref for mark in marks for ref in mark.refs)


def _inline(shown: str, context: Context) -> Iterator[_Found]:
    code = [found.span() for found in _CODE.finditer(shown)]
    for found in _MARK.finditer(shown):
        if any(start <= found.start() < end for start, end in code):
            continue
        group = found.lastgroup or ""
        words = found[group].translate(_PLAIN_DIGITS) if group == "tiny" else found[group]
        if group == "round" and ":" not in words and not context.resolves(words):
            continue
        refs = context.refs(words)
        kind = _kind(found, shown, refs)
        if refs and kind != "none":
            yield _Found(*found.span(), refs, is_doubtful=kind == "doubtful")


def _kind(found: re.Match[str], shown: str, refs: tuple[Ref, ...]) -> Kind:
    if found[0] != f"[{found['square']}]":
        return "citation"
    leads = all(ref.places for ref in refs)
    before, behind = shown[: found.start()], shown[found.end() :]
    return kind_of(found["square"], before, behind, leads=leads)


def _apart(found: list[_Found]) -> Iterator[_Found]:
    """Yield what does not lie in something longer, in order."""
    end = 0
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            yield one
            end = one.end


def _without(shown: str, found: Iterator[_Found]) -> CitedText:
    text, done = "", 0
    cited: list[tuple[int, _Found]] = []
    doubtful: list[Location] = []
    for one in found:
        text += shown[done : one.start]
        behind = shown[one.end : one.end + 1]
        if one.is_doubtful:
            doubtful.append(Location(len(text), len(text) + one.end - one.start))
        elif not behind or not behind.isalnum():
            text = text.rstrip(" \t")
        cited.append((len(text), one))
        done = one.start if one.is_doubtful else one.end
    text += shown[done:]
    parts = spans(text)
    marks = (
        Mark(Location(0, len(text)) if one.for_all else _scope(at, text, parts), one.refs)
        for at, one in cited
        if one.refs
    )
    return CitedText(text, tuple(marks), tuple(doubtful))


def _scope(at: int, text: str, parts: list[Location]) -> Location:
    """Return the sentence that a mark belongs to, by its place in the text without marks."""
    leads = not text[:at].rpartition("\n")[2].strip()
    on_line = text[at:].partition("\n")[0].strip()
    if leads and on_line:
        return next(part for part in parts if part.end > at)
    before = [part for part in parts if part.start < at]
    return before[-1] if before else Location(0, len(text))
