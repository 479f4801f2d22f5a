"""Which documents say mostly what they said, and where the words of the others stand now.

For texts that stand nowhere word for word: a chapter whose number moved up holds that in its title.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from ragforge.deferred import dataclass, pattern
from ragforge.files.set.sorted_records import DocumentLines, each_chunk
from ragforge.scripts import UNSPACED

_WORD: Final = pattern(f"[{UNSPACED}]|[^\\W{UNSPACED}]+")
_LEAST: Final = 0.5
"""Share of the words of a text that must stand in another one which is to be it."""
_SURE: Final = 0.75
"""Share of the runs of words from which no other document is clearly nearer."""
_NEARER: Final = 0.25
"""By what share the text under another name must be nearer than the one under its own."""
_APART: Final = 0.1
"""By what share the nearest must be nearer than the next one."""
_IN_RUN: Final = 3
"""Words in a row: single ones of two long texts of one language are mostly the same."""
_MOST_RUNS, _LEAST_RUNS, _ALL_RUNS = 256, 32, 500_000
"""Runs by which a document is looked for, and all are together."""
_COMMON: Final = 20
"""Runs of more documents than this tell none from the others."""
_MOST_HELD: Final = 8
"""Documents that are looked for in one place: those of which it holds most."""


@dataclass(frozen=True, slots=True)
class DocumentMatches:
    """What became of documents by their words.

    Args:
        edited: Those that say under their own id mostly what they said.
        homes: The other id that has the text of one now, where that is clear; it may be among the
            `edited` too.
    """

    edited: frozenset[str] = frozenset()
    homes: Mapping[str, str] = field(default_factory=dict)


def match_documents(
    doc_ids: Collection[str], places: Collection[str], before: Path, now: Path
) -> DocumentMatches:
    """Return which documents were edited, and under which other ids their texts stand now.

    One was edited where half of its words or more are there. It has another home where at least
    half of it stands that did not stand there before, and clearly more than under its own id and
    in any third place. What many documents have in common, as pages of a template do, counts
    little: a run of words counts by how few chunks had it, and of those that one document alone
    had half must be there too.

    Args:
        doc_ids: Documents of before.
        places: Ids of now that have texts of which no document was before.
        before: The chunks of before, sorted by id. They are read document by document.
        now: Likewise of now.
    """
    with (
        DocumentLines(before, {*doc_ids, *places}) as then,
        DocumentLines(now, {*places}) as later,
    ):
        texts = _Texts(then, later, frozenset(places))
        edited, sought = _edited(sorted(doc_ids), texts)
        pairs = _pairs(sought, texts)
    if not pairs:
        return DocumentMatches(frozenset(edited))
    weights = _weights(sought, pairs, before)
    homes: dict[str, str] = {}
    for name, of_name in pairs.items():
        if home := _home(name, sought[name], of_name, weights):
            homes[name] = home
    claimed = {*homes.values()} & sought.keys()
    edited -= {name for name in claimed if _share(sought[name], weights) < _LEAST}
    return DocumentMatches(frozenset(edited), homes)


class _Sought(NamedTuple):
    """A document that may have another home.

    Args:
        runs: Some of its runs of words.
        own: Those among them that stand under its own id now.
    """

    runs: frozenset[int]
    own: frozenset[int]


class _Pair(NamedTuple):
    """A place that may be the home of a document, and the runs that came there."""

    place: str
    came: frozenset[int]


class _Texts:
    """The words of documents before and now."""

    def __init__(self, then: DocumentLines, now: DocumentLines, places: frozenset[str]) -> None:
        self._then, self._now = then, now
        self.places = places

    def before(self, doc_id: str) -> list[int]:
        """Return the words of a document of before in their order; [] where there was none."""
        return _words(self._then, doc_id)

    def now(self, doc_id: str) -> list[int]:
        """Likewise of now, of one of the `places`."""
        return _words(self._now, doc_id) if doc_id in self.places else []


def _words(lines: DocumentLines, doc_id: str) -> list[int]:
    """Return the words of a document as numbers, which are the same in each process."""
    chunks = lines.chunks_of(doc_id)
    words = (word for chunk in chunks for word in _WORD.findall(chunk.text.casefold()))
    return [zlib.crc32(word.encode()) for word in words]


def _runs(words: Sequence[int]) -> set[int]:
    length = min(_IN_RUN, len(words))
    shifted = (words[start:] for start in range(length))
    return {hash(run) for run in zip(*shifted, strict=False)} if words else set()


def _edited(doc_ids: Sequence[str], texts: _Texts) -> tuple[set[str], dict[str, _Sought]]:
    """Return which documents were edited, and those that may have another home."""
    most = max(_LEAST_RUNS, min(_MOST_RUNS, _ALL_RUNS // max(1, len(doc_ids))))
    edited: set[str] = set()
    sought: dict[str, _Sought] = {}
    for name in doc_ids:
        before, now = texts.before(name), texts.now(name)
        kept = (Counter(before) & Counter(now)).total()
        if name in texts.places and kept >= _LEAST * len(before):
            edited.add(name)
        runs, own = _runs(before), _runs(now)
        if runs and len(runs & own) < _SURE * len(runs):
            some = frozenset(sorted(runs)[:most])
            sought[name] = _Sought(some, some & own)
    return edited, sought


def _pairs(sought: Mapping[str, _Sought], texts: _Texts) -> dict[str, list[_Pair]]:
    """Return the places that may be homes, by document: half of it or more stands there."""
    holders: dict[int, list[str]] = {}
    for name, one in sought.items():
        for run in one.runs:
            holders.setdefault(run, []).append(name)
    found: dict[str, list[_Pair]] = {}
    for place in sorted(texts.places) if sought else ():
        there = _runs(texts.now(place))
        came = there - _runs(texts.before(place))
        for name in _most_held(came, holders, place):
            runs = sought[name].runs
            if len(runs & there) >= _LEAST * len(runs):
                found.setdefault(name, []).append(_Pair(place, runs & came))
    return found


def _most_held(
    came: Collection[int], holders: Mapping[int, Sequence[str]], place: str
) -> list[str]:
    """Return the documents of which a place has most that was not there."""
    counts = Counter[str]()
    for run in came:
        names = holders.get(run, ())
        if len(names) <= _COMMON:
            counts.update(name for name in names if name != place)
    return [name for name, _ in counts.most_common(_MOST_HELD)]


def _weights(
    sought: Mapping[str, _Sought], pairs: Mapping[str, Sequence[_Pair]], before: Path
) -> Mapping[int, float]:
    """Return what runs count: the less, the more chunks had them."""
    named = {*pairs, *(one.place for of_name in pairs.values() for one in of_name)}
    counts = dict.fromkeys((run for name in named & sought.keys() for run in sought[name].runs), 0)
    for words in _each_words(before):
        for run in _runs(words) & counts.keys():
            counts[run] += 1
    return {run: 1 / max(1, count) for run, count in counts.items()}


def _each_words(path: Path) -> Iterator[list[int]]:
    for _, chunk in each_chunk(path):
        yield [zlib.crc32(word.encode()) for word in _WORD.findall(chunk.text.casefold())]


def _home(
    name: str, one: _Sought, pairs: Sequence[_Pair], weights: Mapping[int, float]
) -> str | None:
    """Return the place that clearly has the text of a document; of near ones that in its folder."""
    shares = {pair.place: _came(one, pair.came, weights) for pair in pairs}
    best = max(shares.values())
    if best < max(_LEAST, _share(one, weights) + _NEARER):
        return None
    near = [place for place, share in shares.items() if share > best - _APART]
    folder = PurePosixPath(name).parent
    here = [place for place in near if PurePosixPath(place).parent == folder]
    only = near if len(near) == 1 else here
    return only[0] if len(only) == 1 else None


def _came(one: _Sought, came: frozenset[int], weights: Mapping[int, float]) -> float:
    """Return which share of a document came to a place; of what it alone had, if that is less."""
    alone = frozenset(run for run in one.runs if weights[run] == 1)
    parts = [_Sought(runs, came & runs) for runs in (one.runs, alone) if runs]
    return min(_share(part, weights) for part in parts)


def _share(one: _Sought, weights: Mapping[int, float]) -> float:
    """Return which share of a document stands under its own id."""
    return sum(weights[run] for run in one.own) / sum(weights[run] for run in one.runs)
