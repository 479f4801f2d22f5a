"""Excerpts: texts in the words of another one alone, cut short, with a heading, or marked up."""

import re
from collections.abc import Iterator
from typing import Final

from ragforge.deferred import pattern
from ragforge.retrieval.markup import readings_of, without_foreign_marks
from ragforge.retrieval.wordings import LEAST_SHARED, is_apart, wording

_MARK_OF_A_CUT: Final = pattern(
    r"…|\.{3,}|\.(?:\s\.){2,}|\[…\]|\[\.{3}\]|[\[(<](?:\w+ )?truncated[\])>]", re.IGNORECASE
)
_LONGEST_LABEL: Final = 20
"""Letters of what stands beside a mark of a cut and is no part of a text, such as "Read more"."""
_DIGIT: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"\w+")


def pieces_of(text: str) -> list[str]:
    """Return what stands between the marks of a text that something was cut out of."""
    return [piece.strip() for piece in _MARK_OF_A_CUT.split(text) if piece.strip()]


def holds(text: str, part: str) -> bool:
    """Whether a text holds another one as whole words, or begins with it; both of single blanks."""
    return bool(part) and (text.startswith(part) or f" {part} " in f" {text} ")


def is_within(original: str, words: str, text: str) -> bool:
    """Whether all pieces of a text stand in another one, of that wording; both of single blanks."""
    pieces = pieces_of(text)
    worded = [wording(piece) for piece in pieces]
    if max(map(len, worded), default=0) >= LEAST_SHARED and all(each in words for each in worded):
        return True
    if all(holds(original, piece) for piece in pieces):
        return True
    of_original = _in_words(original)
    return all(holds(of_original, _in_words(piece)) for piece in pieces)


def _in_words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def is_marked_excerpt(text: str, original: str) -> bool:
    """Whether a text is an excerpt of another one, where markup is in one of them alone.

    What both have is compared: a tag may say something in a text about HTML.
    """
    words = wording(original)
    return any(is_excerpt(form, words) for form in _forms(text)) or any(
        is_excerpt(text, wording(form)) for form in _forms(original) if form != original
    )


def _forms(text: str) -> Iterator[str]:
    """Yield a text with its markup and without."""
    for reading in readings_of(text):
        yield reading
        if (bare := without_foreign_marks(reading)) != reading:
            yield bare


def is_excerpt(text: str, words: str) -> bool:
    """Whether a text says what a wording says and nothing else, be it less of it.

    It may begin with a heading where it begins with what the wording begins with, and likewise end
    with other words. What has other words within, or in the place of some, says something else; so
    does what lacks words within that no mark of a cut stands for.
    """
    parts = _without_labels([part for piece in pieces_of(text) if (part := wording(piece))], words)
    if max(map(len, parts), default=0) < LEAST_SHARED:
        return False
    last = len(parts) - 1
    return all(
        part in words
        or (at == 0 and _has_heading(part, words))
        or (at == last and _has_ending(part, words))
        for at, part in enumerate(parts)
    )


def _without_labels(parts: list[str], words: str) -> list[str]:
    """Return the pieces of a text without what a service puts before the first and behind the last.

    What has a number says something.
    """

    def is_label(part: str) -> bool:
        return len(part) <= _LONGEST_LABEL and part not in words and not _DIGIT.search(part)

    if len(parts) > 1 and is_label(parts[-1]):
        parts = parts[:-1]
    return parts[1:] if len(parts) > 1 and is_label(parts[0]) else parts


def _has_heading(part: str, words: str) -> bool:
    """Whether most of a piece is what a wording begins with, behind something else."""
    begin = words[:LEAST_SHARED]
    at = part.find(begin, 1)
    while 0 < at <= len(part) / 2:
        if is_apart(part, at) and words.startswith(part[at:]):
            return True
        at = part.find(begin, at + 1)
    return False


def _has_ending(part: str, words: str) -> bool:
    """Whether most of a piece is what a wording ends with, before something else."""
    end = words[-LEAST_SHARED:]
    at = part.rfind(end)
    while at >= 0 and 2 * (behind := at + len(end)) >= len(part):
        if is_apart(part, behind) and words.endswith(part[:behind]):
            return True
        at = part.rfind(end, 0, behind - 1)
    return False
