"""The sentences of an answer, and whether a judge has accounted for them."""

import re
from collections.abc import Iterable, Iterator

from ragforge.corpus.anchors import Location
from ragforge.stages.words import content_stems, sentences

_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:(?:[A-Za-z]\.)+|(?:Dr|Mrs?|Ms|Prof|St|No|Nr|Fig|Sec|Vol|vs|etc|approx|ca|cf|"
    r"al|Inc|Ltd|Co|Corp|Jr|Sr|bzw|usw|ggf|Std|Mio|Mrd)\.)$"
)
"""A full stop that ends a word and not the sentence; joining two sentences does less harm."""
_CLOSING = "*_\"')\\]\u201d\u2019\u00bb\u300d\u300f\uff09\u3011"
_INNER_END = re.compile(
    rf"[\u3002\uff01\uff1f\uff61\u0964\u061f\u06d4][{_CLOSING}]*"
    rf"|(?<=\w)[.!?]+(?:[{_CLOSING}]+\s+|[{_CLOSING}]*)(?=[*_\"'(\u201c\u2018\u00ab]*[^\W\d_])"
)
"""Where a sentence may end without a blank right behind its stop."""
_NAME_FROM = re.compile(
    r"[^\W_]+[(_/@\\]|[^\W_]+\.[^\WA-Z]|[^\W\d_]*[^\W\d_A-Z][A-Z]|[A-Z]{2}|[B-HJ-Z]\b"
)
"""What stands behind the stop within the name of a file, a class or a site."""
_NAME_UPTO = re.compile(r"[/@\\_]|\bwww\.|[^\W\d_]\.\w")
_SECTION = re.compile(r"\d+\.[A-Z](?![^\W_])")
_QUOTED_ON = "\u3068\u3001\uff0c\u7684\u306a\u306e\u8bf4\u9053\u8aaa"
"""What goes on behind a quoted sentence, such as "he said" in Japanese."""
_OPENING = "*_\"'(\u201c\u2018\u00ab"
_LOOKED_AT = 100
_EMPHASIS = "*_"
_QUESTIONS = ("?", "\uff1f", "\u061f")


def spans(text: str) -> list[Location]:
    """Return where the sentences and lines of a text stand, without the numbers of list items."""
    found: list[Location] = []
    at, joins = 0, False
    for part in _parts(text):
        start = text.index(part, at)
        same_line = "\n" not in text[at:start]
        at = start + len(part)
        if joins and same_line:
            found[-1] = Location(found[-1].start, at)
        elif not (_ENUMERATOR.fullmatch(part) and text[at:].partition("\n")[0].strip()):
            found.append(Location(start, at))
        else:
            joins = False
            continue
        joins = _SHORTENED.search(part) is not None
    return found


def is_statement(part: Location, answer: str) -> bool:
    """Whether a sentence could state something: it has words that carry content, and asks nothing.

    Args:
        part: One of the answer's `spans`.
        answer: The text.
    """
    text = answer[part.start : part.end]
    return not text.rstrip(_EMPHASIS).endswith(_QUESTIONS) and bool(content_stems(text))


def left_out(part: Location, answer: str, told: Iterable[Location]) -> bool:
    """Whether no more than half of a sentence's content words stand in the told parts."""
    rest = list(answer[part.start : part.end])
    for place in told:
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
