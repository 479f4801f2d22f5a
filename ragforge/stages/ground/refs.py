"""What the words in a mark of citation lead to: chunks of the context, or nothing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LABEL = re.compile(
    r"(?:sources?|refs?|references?|citations?|chunks?|passages?|documents?|docs?|contexts?|"
    r"quellen?|fuentes?)[ \t]*[:#.]?[ \t]*(?=\S)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[,;|&]|\band\b|\bund\b")
_RANGE = re.compile(r"(\d{1,3})\s*[-\u2013]\s*(\d{1,3})")
_WIDEST_RANGE = 20
_MOST_DIGITS = 3
"""A longer number in brackets is a year or the like, unless chunks are numbered so high."""
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_SHORT_ID = re.compile(r"[a-z]{1,2}\d{1,4}")
_HEX = re.compile(r"(?=[a-f-]*\d)[0-9a-f-]{6,}", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_PART_SIGNS = "#:/@|_-"
"""What stands between the name of a document and that of its part in an id."""
_SHORTEST_DOCUMENT = 3


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
        ends = _RANGE.fullmatch(token.strip())
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
