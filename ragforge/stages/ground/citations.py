"""Marks of citation in an answer: where they stand, and the answer without them."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from ragforge.corpus.quote_locations import Location
from ragforge.deferred import dataclass, pattern
from ragforge.scripts import has_unspaced
from ragforge.stages.ground.parts import Wording, blanked, spans
from ragforge.stages.visible_text import visible

_LABEL = pattern(
    r"(?:sources?|refs?|references?|citations?|chunks?|passages?|documents?|docs?|contexts?|"
    r"quellen?|fuentes?)[ \t]*[:#.]?[ \t]*(?=\S)",
    re.IGNORECASE,
)
_BETWEEN = pattern(r"[,;|&]|\band\b|\bund\b")
_NUMBERS_FROM_TO = pattern(r"(\d{1,3})\s*[-\u2013]\s*(\d{1,3})")
_WIDEST_RANGE = 20
_MOST_DIGITS = 3
"""A longer number in brackets is a year or the like, unless chunks are numbered so high."""
_YEAR = pattern(r"(?:1[5-9]|20)\d\d")
_SHORT_ID = pattern(r"[a-z]{1,2}\d{1,4}")
_HEX = pattern(r"(?=[a-f-]*\d)[0-9a-f-]{6,}", re.IGNORECASE)
_DIGITS = pattern(r"\d+")
_PART_SIGNS = "#:/@|_-"
"""What stands between the name of a document and that of its part in an id."""
_SHORTEST_DOCUMENT = 3

_NUMBERS = pattern(r"\d+(?:\s*(?:[-\u2013,;]|\.\.)\s*\d+)*")
_SEVERAL = pattern(r"\d\D+\d")
_PLAIN_WORD = pattern(r"(?:\A|[\s(\"'\u201c\u2018*-])(?:[^\W\d_]{2,}|\d[\d.,]*)\Z")
_CLAUSE_END = pattern(r"(?:\[[^\[\]\n]{1,40}\])*[ \t]*(?:[.,;:!?)*\u3002\uff0c\uff1b]|$)", re.M)
_SMALL = (
    r"(?:is|are|was|were|be|equals?|of|from|in|to|at|by|on|see|with|than|according|per|"
    r"ist|sind|von|nach|siehe|es|son|de|est|sont|selon|seg\u00fan)"
)
_OBJECT_OF = pattern(rf"\b{_SMALL}[ \t:]*\Z", re.IGNORECASE)
_RANGE = pattern(
    r"\b(?:ranges?|intervals?|between|bounds?|domain|scale|values?|limits?|vector|list|array|tuple|"
    r"matrix|shape|coordinates?|bereich|intervall|zwischen|werte?|rango|intervalo|entre|valores|"
    rf"intervalle|plage|valeurs)\b(?P<linked>(?:\W{{1,3}}{_SMALL}\b){{1,2}})?[ \t:]*\Z",
    re.IGNORECASE,
)
_SIGN = pattern(r"[=<>+/^\u2208\u2264\u2265][ \t]*\Z")
_NEIGHBOURS = pattern(r"(?:\[[^\[\]\n]{1,40}\])+\Z")
_LOOKED_AT = 200
Kind = Literal["citation", "doubtful", "none"]
_MARK = pattern(
    r"\[\[?\^?(?P<square>[^\[\]\n]{1,200})\]\]?(?:\([^()\s]*\))?"
    r"|\u3010(?P<lenticular>[^\u3010\u3011\n]{1,200})\u3011"
    r"|\((?P<round>(?:sources?|refs?|references?|citations?|quellen?|fuentes?)\b[^()\n]{1,200})\)"
    r"|<sup>\s*(?P<raised>[^<>\n]{1,60}?)\s*</sup>"
    r"|(?<=[.,;:!?)\"\u201d\u2019])(?P<tiny>[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+)",
    re.IGNORECASE,
)
"""Raised digits count behind punctuation only: behind a letter they may be an exponent."""
_CODE = pattern(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_FOOTNOTE = pattern(
    r"^[ \t]*\[\^?(?P<number>\d{1,3})\](?P<colon>:?)[ \t]+(?P<words>\S.*)$\n?", re.MULTILINE
)
_ADDRESS = pattern(r"\S+|.*\bhttps?://.*")
_LIST = pattern(
    r"^[^\w\n]*(?:sources?|references?|citations?|quellen?|fuentes?)[^\w\n:]*:[^\w\n\[\u3010(]*"
    r"(\S.*)$\n?",
    re.MULTILINE | re.IGNORECASE,
)
_BRACKETS = pattern(r"[\[\]\u3010\u3011()*]")
_PLAIN_DIGITS = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789"
)


@dataclass(frozen=True, slots=True)
class Ref:
    """A chunk that is cited.

    Args:
        name: Id of the chunk, or the words of the mark where they lead nowhere.
        places: Its places in the context, from 0; empty where it is not there.
    """

    name: str
    places: frozenset[int]


class Context:
    """The ids of the passages before a system, as its answer may refer to them.

    Args:
        chunk_ids: In the order of the passages; one may come several times.
    """

    def __init__(self, chunk_ids: Sequence[str]) -> None:
        self._ids = tuple(chunk_ids)
        self._shapes = {_shape(chunk_id) for chunk_id in chunk_ids}
        self._n_digits = max((len(name) for name in chunk_ids if name.isdecimal()), default=0)
        self._aliases: dict[str, str] = {}

    def alias(self, number: str, words: str) -> bool:
        """Let a footnote's number stand for the chunk that it names; False where it names none."""
        spellings = [words.strip(), *(word.strip(",.;:") for word in words.split())]
        named = next((name for name in spellings if self._by_id(name)), None)
        if named is not None:
            self._aliases[number] = named
        return named is not None

    def refs(self, words: str) -> tuple[Ref, ...]:
        """Return what the words of a mark cite; nothing where they are no citation at all.

        An id stands for its chunk, the name of a document for its chunks, a number that is no id
        for the place in the context, from 1. Words that look like an id but lead nowhere are
        cited all the same.
        """
        whole = self._ref(words.strip())
        if whole is not None and whole.places:
            return (whole,)
        found = [self._ref(token) for token in _tokens(words)]
        refs = [ref for ref in found if ref is not None]
        return tuple(dict.fromkeys(refs)) if len(refs) == len(found) else ()

    def resolves(self, words: str) -> bool:
        """Whether all that the words cite is in the context."""
        refs = self.refs(words)
        return bool(refs) and all(ref.places for ref in refs)

    def _ref(self, token: str) -> Ref | None:
        bare = _LABEL.sub("", token, count=1).strip() if _LABEL.match(token) else token
        spellings = [name for name in (token, bare, *token.split("\u2020")) if name]
        for name in spellings:
            places = self._by_id(self._aliases.get(name, name))
            if places:
                return Ref(self._ids[min(places)], places)
        for name in spellings:
            if name.isdecimal() and 0 < int(name) <= len(self._ids):
                return Ref(self._ids[int(name) - 1], frozenset({int(name) - 1}))
        looks = any(self._looks_like_id(name) for name in spellings)
        return Ref(token, frozenset()) if looks else None

    def _by_id(self, name: str) -> frozenset[int]:
        folded = name.casefold()
        for same in (
            lambda chunk_id: chunk_id == name,
            lambda chunk_id: chunk_id.casefold() == folded,
            lambda chunk_id: _is_part(chunk_id.casefold(), folded),
        ):
            places = frozenset(place for place, known in enumerate(self._ids) if same(known))
            if places:
                return places
        return frozenset()

    def _looks_like_id(self, name: str) -> bool:
        if any(character.isspace() for character in name):
            return False
        if name.isdecimal():
            if len(name) <= _MOST_DIGITS:
                return True
            is_high = self._n_digits > _MOST_DIGITS and len(name) <= self._n_digits + 1
            return is_high and not _YEAR.fullmatch(name)
        return bool(_SHORT_ID.fullmatch(name)) or _shape(name) in self._shapes


def _tokens(words: str) -> Iterator[str]:
    label = _LABEL.match(words)
    for token in _BETWEEN.split(words[label.end() :] if label else words):
        ends = _NUMBERS_FROM_TO.fullmatch(token.strip())
        if ends and 0 < int(ends[2]) - int(ends[1]) <= _WIDEST_RANGE:
            yield from map(str, range(int(ends[1]), int(ends[2]) + 1))
        else:
            yield token.strip().removeprefix("^")


def _is_part(chunk_id: str, document: str) -> bool:
    named = len(document) >= _SHORTEST_DOCUMENT and not document.isdecimal()
    behind = chunk_id[len(document) : len(document) + 1]
    return named and chunk_id.startswith(document) and behind != "" and behind in _PART_SIGNS


def _shape(name: str) -> str:
    """Return what ids made in one way have in common."""
    return "hex" if _HEX.fullmatch(name) else _DIGITS.sub("0", name.casefold())


def _kind_of(words: str, before: str, behind: str, *, leads: bool) -> Kind:
    """Return whether what stands between plain square brackets cites: surely, perhaps, or not.

    Args:
        words: Between the brackets.
        before: The text up to them.
        behind: The text from their end.
        leads: Whether all that they name is in the context.
    """
    before = _NEIGHBOURS.sub("", before[-_LOOKED_AT:])
    is_number = _NUMBERS.fullmatch(words) is not None
    if re.search(r"\w\Z", before) and not has_unspaced(before[-1]):
        return _glued(before, behind, is_number=is_number, leads=leads, is_zero=words == "0")
    if not is_number:
        return "citation"
    ranged = _RANGE.search(before) if _SEVERAL.search(words) else None
    is_object = _OBJECT_OF.search(before) is not None
    if _SIGN.search(before) or (_SEVERAL.search(words) and is_object and not leads):
        return "none"
    if ranged and (ranged["linked"] or not leads or not _CLAUSE_END.match(behind)):
        return "none"
    return "doubtful" if is_object or ranged else "citation"


def _glued(before: str, behind: str, *, is_number: bool, leads: bool, is_zero: bool) -> Kind:
    """Return what brackets right behind a word are: an index, but for plain words that end."""
    if not is_number:
        return "citation" if leads else "none"
    ends = _CLAUSE_END.match(behind) and _PLAIN_WORD.search(before)
    return "doubtful" if ends and not is_zero else "none"


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
class _FoundMark:
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
    text, context = visible(answer), Context(chunk_ids)
    footnotes = [
        _FoundMark(line.start(), line.end(), ())
        for line in _FOOTNOTE.finditer(text)
        if _explains(line, context)
    ]
    lists = [
        _FoundMark(line.start(), line.end(), refs, for_all=True)
        for line in _LIST.finditer(text)
        if (refs := _listed(line[1], context))
    ]
    return _without(text, _apart([*footnotes, *lists, *_inline(text, context)]))


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


def _inline(text: str, context: Context) -> Iterator[_FoundMark]:
    code = [mark.span() for mark in _CODE.finditer(text)]
    for mark in _MARK.finditer(text):
        if any(start <= mark.start() < end for start, end in code):
            continue
        group = mark.lastgroup or ""
        words = mark[group].translate(_PLAIN_DIGITS) if group == "tiny" else mark[group]
        if group == "round" and ":" not in words and not context.resolves(words):
            continue
        refs = context.refs(words)
        kind = _kind(mark, text, refs)
        if refs and kind != "none":
            yield _FoundMark(*mark.span(), refs, is_doubtful=kind == "doubtful")


def _kind(mark: re.Match[str], text: str, refs: tuple[Ref, ...]) -> Kind:
    if mark[0] != f"[{mark['square']}]":
        return "citation"
    leads = all(ref.places for ref in refs)
    before, behind = text[: mark.start()], text[mark.end() :]
    return _kind_of(mark["square"], before, behind, leads=leads)


def _apart(marks: list[_FoundMark]) -> Iterator[_FoundMark]:
    """Yield what does not lie in something longer, in order."""
    end = 0
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start >= end:
            yield mark
            end = mark.end


def _without(answer: str, cited_marks: Iterator[_FoundMark]) -> CitedText:
    text, done = "", 0
    cited: list[tuple[int, _FoundMark]] = []
    doubtful: list[Location] = []
    for mark in cited_marks:
        text += answer[done : mark.start]
        behind = answer[mark.end : mark.end + 1]
        if mark.is_doubtful:
            doubtful.append(Location(len(text), len(text) + mark.end - mark.start))
        elif not behind or not behind.isalnum():
            text = text.rstrip(" \t")
        cited.append((len(text), mark))
        done = mark.start if mark.is_doubtful else mark.end
    text += answer[done:]
    parts = spans(text)
    marks = (
        Mark(Location(0, len(text)) if mark.for_all else _scope(at, text, parts), mark.refs)
        for at, mark in cited
        if mark.refs
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
