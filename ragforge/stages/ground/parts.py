"""The sentences of an answer, and whether a judge has accounted for them."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ragforge.corpus.quote_locations import FoldedText, Location
from ragforge.deferred import dataclass, pattern
from ragforge.stages.quotes import find_proof
from ragforge.stages.words import content_stems, sentences

_LINK = pattern(r"(!?\[)[^\[\]\n]+(\]\([^()\s]*(?:\s+\"[^\"\n]*\")?\))")
_SIGNS = pattern(
    r"(?<=[^\s\d*])\*+|(?<=\d)\*++(?!\d)|(?<!\S)\*++(?=\S)"
    r"|(?<!\w)_++(?=\S)|(?<=[^\s_])_++(?!\w)"
    r"|`+|~~|\\(?=[*_`$~#\[\]()])"
)
"""Asterisks between blanks or digits stay, for they multiply; so do underscores within words."""
_TARGET = pattern(r"(?<=\])\([^()\s]*\)")

_ENUMERATOR = pattern(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]")
_SHORTENED = pattern(
    r"(?:^|[\s(])(?:(?:[A-Za-z]\.)+|(?:Dr|Mrs?|Ms|Prof|St|No|Nr|Fig|Sec|Vol|vs|etc|approx|ca|cf|"
    r"al|Inc|Ltd|Co|Corp|Jr|Sr|bzw|usw|ggf|Std|Mio|Mrd)\.)$"
)
"""A full stop that ends a word and not the sentence; joining two sentences does less harm."""
_CLOSING = "*_\"')\\]\u201d\u2019\u00bb\u300d\u300f\uff09\u3011"
_INNER_END = pattern(
    rf"[\u3002\uff01\uff1f\uff61\u0964\u061f\u06d4][{_CLOSING}]*"
    rf"|(?<=\w)[.!?]+(?:[{_CLOSING}]+\s+|[{_CLOSING}]*)(?=[*_\"'(\u201c\u2018\u00ab]*[^\W\d_])"
)
"""Where a sentence may end without a blank right behind its stop."""
_NAME_FROM = pattern(
    r"[^\W_]+[(_/@\\]|[^\W_]+\.[^\WA-Z]|[^\W\d_]*[^\W\d_A-Z][A-Z]|[A-Z]{2}|[B-HJ-Z]\b"
)
"""What stands behind the stop within the name of a file, a class or a site."""
_NAME_UPTO = pattern(r"[/@\\_]|\bwww\.|[^\W\d_]\.\w")
_SECTION = pattern(r"\d+\.[A-Z](?![^\W_])")
_QUOTED_ON = "\u3068\u3001\uff0c\u7684\u306a\u306e\u8bf4\u9053\u8aaa"
"""What goes on behind a quoted sentence, such as "he said" in Japanese."""
_OPENING = "*_\"'(\u201c\u2018\u00ab"
_LOOKED_AT = 100
_EMPHASIS = "*_"
_QUESTIONS = ("?", "\uff1f", "\u061f")


@dataclass(frozen=True, slots=True)
class _Bare:
    """A text without some of its characters.

    Args:
        text: What is left.
        places: Where each character of it stands in the original.
    """

    text: str
    places: Sequence[int]

    def original(self, place: Location) -> Location:
        return Location(self.places[place.start], self.places[place.end - 1] + 1)


class Wording:
    """A text in which words are found although Markdown, or some marks, stand between them."""

    def __init__(self, text: str, marks: Iterable[Location] = ()) -> None:
        self._as_is = FoldedText(text)
        without = _bare(text, [_with_blanks(mark, text) for mark in marks])
        self._variants = [(bare, FoldedText(bare.text)) for bare in (_bare(text), without)]

    def locations(self, part: str) -> list[Location]:
        """Return where a part stands, in order, without overlaps."""
        wanted = _bare(part).text
        found = set(self._as_is.locations(part))
        for bare, folded in self._variants:
            found |= {bare.original(place) for place in folded.locations(wanted)}
        return list(_apart(found))


def find_evidence(quote: str, text: str) -> Location | None:
    """Return where a quote proves something, as `find_proof` does, Markdown aside if need be."""
    found = find_proof(quote, text)
    if found is not None:
        return found
    bare = _bare(text)
    place = find_proof(_bare(quote).text, bare.text)
    return bare.original(place) if place else None


def blanked(text: str, marks: Iterable[Location] = ()) -> str:
    """Return a text, as long as before, with blanks for marks and the targets of its links."""
    characters = list(_TARGET.sub(lambda target: " " * len(target[0]), text))
    for mark in marks:
        characters[mark.start : mark.end] = " " * (mark.end - mark.start)
    return "".join(characters)


def _with_blanks(mark: Location, text: str) -> Location:
    """Return a mark with the blanks before it where a sign follows, such as a full stop."""
    if text[mark.end : mark.end + 1].isalnum():
        return mark
    return Location(len(text[: mark.start].rstrip(" \t")), mark.end)


def _apart(places: Iterable[Location]) -> Iterator[Location]:
    end = 0
    for place in sorted(places, key=lambda place: (place.start, -place.end)):
        if place.start >= end:
            yield place
            end = place.end


def _bare(text: str, marks: Iterable[Location] = ()) -> _Bare:
    gone = {at for mark in marks for at in range(mark.start, mark.end)}
    for sign in _SIGNS.finditer(text):
        gone.update(range(*sign.span()))
    for link in _LINK.finditer(text):
        gone.update(range(*link.span(1)), range(*link.span(2)))
    places = [at for at in range(len(text)) if at not in gone]
    return _Bare("".join(text[at] for at in places), places)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as a system had it before it.

    Args:
        chunk_id: Two passages may share it, where it names a document.
        text: May be empty.
    """

    chunk_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, its answer, and the passages in the order in which the system had them.

    Args:
        query_id: Of the question.
        question: "" where it is not known.
        answer: As it was given.
        passages: None where the system retrieved nothing.
        lost: Ids of further passages whose texts are not to be had.
        failure: Why the system gave no answer; "" where it gave one.
    """

    query_id: str
    question: str
    answer: str
    passages: tuple[Passage, ...]
    lost: tuple[str, ...] = ()
    failure: str = ""


def spans(text: str) -> list[Location]:
    """Return where the sentences and lines of a text stand, without the numbers of list items."""
    sentences: list[Location] = []
    at, joins = 0, False
    for part in _parts(text):
        start = text.index(part, at)
        same_line = "\n" not in text[at:start]
        at = start + len(part)
        if joins and same_line:
            sentences[-1] = Location(sentences[-1].start, at)
        elif not (_ENUMERATOR.fullmatch(part) and text[at:].partition("\n")[0].strip()):
            sentences.append(Location(start, at))
        else:
            joins = False
            continue
        joins = _SHORTENED.search(part) is not None
    return sentences


def is_statement(part: Location, answer: str) -> bool:
    """Whether a sentence could state something: it has words that carry content, and asks nothing.

    Args:
        part: One of the answer's `spans`.
        answer: The text.
    """
    text = answer[part.start : part.end]
    return not text.rstrip(_EMPHASIS).endswith(_QUESTIONS) and bool(content_stems(text))


def left_out(part: Location, answer: str, covered: Iterable[Location]) -> bool:
    """Whether no more than half of a sentence's content words stand in the told parts."""
    rest = list(answer[part.start : part.end])
    for place in covered:
        start, end = max(place.start, part.start), min(place.end, part.end)
        for at in range(start, end):
            rest[at - part.start] = " "
    n_left = len(content_stems("".join(rest)))
    return 2 * n_left >= len(content_stems(answer[part.start : part.end]))


def _parts(text: str) -> Iterator[str]:
    for sentence in sentences(text):
        done = 0
        for end in _INNER_END.finditer(sentence):
            if end.end() < len(sentence) and _ends(sentence, end):
                yield sentence[done : end.end()].strip()
                done = end.end()
        yield sentence[done:].strip()


def _ends(sentence: str, end: re.Match[str]) -> bool:
    """Whether a stop ends a sentence, and is no part of a number, name or shortened word."""
    if end[0][0] not in ".!?":
        return len(end[0]) == 1 or sentence[end.end()] not in _QUOTED_ON
    behind = sentence[end.end() : end.end() + _LOOKED_AT].lstrip(_OPENING)
    if not behind[:1].isupper():
        return False
    if end[0][-1:].isspace():
        return True
    before = sentence[max(0, end.start() - _LOOKED_AT) : end.start() + 1]
    token = before.split()[-1]
    if _NAME_UPTO.search(token) or _NAME_FROM.match(behind) or _SECTION.match(token + behind):
        return False
    return _SHORTENED.search(before) is None
