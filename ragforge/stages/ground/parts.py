"""The sentences of an answer, and whether a judge has accounted for them."""

import re
from collections.abc import Iterable

from ragforge.corpus.anchors import Location
from ragforge.stages.words import content_stems, sentences

_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:(?:[A-Za-z]\.)+|(?:Dr|Mrs?|Ms|Prof|St|No|Nr|Fig|Sec|Vol|vs|etc|approx|ca|cf|"
    r"al|Inc|Ltd|Co|Corp|Jr|Sr|bzw|usw|ggf|Std|Mio|Mrd)\.)$"
)
"""A full stop that ends a word and not the sentence; joining two sentences does less harm."""


def spans(text: str) -> list[Location]:
    """Return where the sentences and lines of a text stand, without the numbers of list items."""
    found: list[Location] = []
    at, joins = 0, False
    for part in sentences(text):
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
    return not text.endswith(("?", "\uff1f")) and bool(content_stems(text))


def left_out(part: Location, answer: str, told: Iterable[Location]) -> bool:
    """Whether no more than half of a sentence's content words stand in the told parts."""
    rest = list(answer[part.start : part.end])
    for place in told:
        start, end = max(place.start, part.start), min(place.end, part.end)
        for at in range(start, end):
            rest[at - part.start] = " "
    n_left = len(content_stems("".join(rest)))
    return 2 * n_left >= len(content_stems(answer[part.start : part.end]))
