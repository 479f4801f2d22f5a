"""Stale passages: an older version of what the corpus also holds in a newer one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from ragforge.corpus.near_duplicates import PERMUTATIONS, minhashes
from ragforge.deferred import dataclass, pattern
from ragforge.deferred import numpy as np
from ragforge.records import Chunk

if TYPE_CHECKING:
    import numpy.typing as npt

_PRE = r"(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre)[-.]?\d*)?"
_IN_ID = pattern(
    rf"(?<![^/_\-@.])(?:(?:version|release|v)[-_]?(\d+(?:\.\d+)*{_PRE})|(\d+(?:\.\d+)+{_PRE}))"
    r"(?![^/_\-.])",
    re.IGNORECASE,
)
_IN_TEXT = pattern(
    rf"\b(?:v|version\s+|release\s+)(\d+(?:\.\d+)*{_PRE})\b|(?<![\w.])(\d+\.\d+\.\d+{_PRE})(?![\w.]*\d)",
    re.IGNORECASE,
)
_DIGIT = pattern(r"\d")
_DATE = pattern(r"(?<!\d)((?:19|20)\d\d-(?:0[1-9]|1[0-2])(?:-(?:[0-2]\d|3[01]))?)(?!\d)")
_YEAR = pattern(r"(?<![^/_\-@.])((?:19|20)\d\d)(?![^/_\-.])")
_RETIRED = pattern(
    r"\b(?:superseded|archived|obsolete|outdated|withdrawn|no longer (?:valid|in force))\b",
    re.IGNORECASE,
)
_RETIRED_ID = pattern(
    r"(?<![^/_\-@.])(?:old|archived?|superseded|obsolete|outdated|legacy)(?![^/_\-.])[/_\-]?",
    re.IGNORECASE,
)
_OPENING_CHARS = 200
"""Of a text, where a document says that it is none of today."""
_STAGE = pattern(r"([a-z]+)")
_STAGES = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "pre": 3, "rc": 4}

Order = tuple[tuple[int, int], ...]
"""Comes out in the order of versions: numbers by value, `rc` and the like before the release."""

LEAST_JACCARD: Final = 0.6
"""Share of word triples that two passages share, as their sketches estimate it (+- 0.09)."""
_BANDS = 32
"""Of 4 rows: a pair of Jaccard 0.6 is a candidate with a probability of 0.99."""
_NEIGHBOURS = 3
_BATCH = 1000
_FEWEST_WORDS = 10
_Stale = tuple[int, int, str]
"""Row of the older chunk, row of the newer one, and why the first is older."""
Words: TypeAlias = "Callable[[int], npt.NDArray[np.uint64]]"
"""Returns the words of a row as numbers, equal for equal words."""
_Rows: TypeAlias = "npt.NDArray[np.int64]"
_Digests: TypeAlias = "npt.NDArray[np.uint32]"


@dataclass(frozen=True, slots=True)
class Version:
    """A version as it is written, and what it sorts by."""

    text: str
    order: Order

    @property
    def is_date(self) -> bool:
        """Whether this is a date."""
        return bool(_DATE.fullmatch(self.text))


@dataclass(frozen=True, slots=True)
class _Member:
    """A document as one version of several: `0.27.0/api.md` is `*/api.md` at 0.27.0."""

    family: str
    version: Version


def version_order(version: str) -> Order:
    """Return the sort key of a version or ISO date; `1.2` and `1.2.0` are the same."""
    numbers, *stage = _STAGE.split(version.lower(), maxsplit=1)
    release = [int(number) for number in re.findall(r"\d+", numbers)]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    before = [(-1, _STAGES.get(word, 0)) for word in stage[:1]]
    further = [(1, int(number)) for number in re.findall(r"\d+", "".join(stage[1:]))]
    return (*((1, number) for number in release), *before, *further, (0, 0))


def member_of(doc_id: str) -> _Member | None:
    """Return the family of a document and its version, by the first version in its id.

    Dates are none: pages of several dates may all be valid.
    """
    found = _IN_ID.search(doc_id)
    if found is None or _DATE.search(doc_id, max(0, found.start() - 8), found.end() + 8):
        return None
    text = found[1] or found[2]
    family = f"{doc_id[: found.start()]}*{doc_id[found.end() :]}"
    return _Member(family, Version(text, version_order(text)))


def _member_by_year(doc_id: str) -> _Member | None:
    """Return the family of a document and its year: `returns-2024.md` is `returns-*.md` of 2024.

    A year alone says little, as pages of several years may all be valid: see `_is_retired`.
    """
    found = _YEAR.search(doc_id)
    if found is None or _DATE.search(doc_id):
        return None
    family = f"{doc_id[: found.start()]}*{doc_id[found.end() :]}"
    return _Member(family, Version(found[1], version_order(found[1])))


def _is_retired(title: str, text: str) -> bool:
    """Whether a document says of itself, in title or opening, that another took its place."""
    return bool(_RETIRED.search(title) or _RETIRED.search(text[:_OPENING_CHARS]))


def _name_of_today(doc_id: str) -> str | None:
    """Return the id of a document without a word such as `old` or `archive` in it.

    Returns:
        `returns.md` for `returns-old.md` and `archive/returns.md`; None where no word says so.
    """
    found = _RETIRED_ID.search(doc_id)
    if found is None:
        return None
    before = doc_id[: found.start()]
    return f"{before if found[0][-1] in '/_-' else before.rstrip('_-')}{doc_id[found.end() :]}"


def mentioned_version(text: str) -> Version | None:
    """Return the latest version that a text mentions; the latest date where it mentions none."""
    # Most texts have no digit, which is found out much faster.
    if not _DIGIT.search(text):
        return None
    versions = [found[1] or found[2] for found in _IN_TEXT.finditer(text)]
    dates = [] if versions else [found[1] for found in _DATE.finditer(text)]
    known = [Version(found, version_order(found)) for found in versions or dates]
    return max(known, key=lambda version: version.order, default=None)


@dataclass(frozen=True, slots=True)
class _VersionedChunk:
    row: int
    doc_id: str
    version: Version


class Staleness:
    """Finds older versions by the ids of documents, else by what similar texts mention.

    A version in an id is enough; a year counts where the older document says that it is none of
    today; a word such as `old` where there is a document of the same name without it.
    """

    def __init__(self) -> None:
        self._members: dict[str, _Member | None] = {}
        self._families: dict[str, dict[Version, dict[tuple[str, ...], int]]] = {}
        self._rows: list[tuple[int, _Member, tuple[str, ...]]] = []
        self._mentions: list[_VersionedChunk] = []
        self._starts: dict[str, int] = {}
        self._of_years: dict[str, _Member | None] = {}
        self._retired: set[str] = set()
        self._names_of_today: dict[str, str | None] = {}
        self._suspects: list[tuple[int, str]] = []

    def add(self, row: int, chunk: Chunk) -> None:
        """Take a chunk."""
        self._take_name(row, chunk)
        if chunk.doc_id not in self._members:
            self._members[chunk.doc_id] = member_of(chunk.doc_id)
        member = self._members[chunk.doc_id]
        if member is not None:
            versions = self._families.setdefault(member.family, {})
            versions.setdefault(member.version, {}).setdefault(chunk.heading_path, row)
            self._rows.append((row, member, chunk.heading_path))
        elif version := mentioned_version(chunk.text):
            self._mentions.append(_VersionedChunk(row, chunk.doc_id, version))

    def stale(self, words: Words) -> Iterator[_Stale]:
        """Yield the stale chunks, each row once.

        Args:
            words: Of any row that was added.
        """
        seen = set[int]()
        for stale in chain(self._by_id(), self._by_name(), self._by_text(words)):
            if stale[0] not in seen:
                seen.add(stale[0])
                yield stale

    def _take_name(self, row: int, chunk: Chunk) -> None:
        """Collect signs of age in the name of a document and its opening."""
        doc_id = chunk.doc_id
        if doc_id not in self._starts:
            self._starts[doc_id] = row
            self._of_years[doc_id] = _member_by_year(doc_id)
            self._names_of_today[doc_id] = _name_of_today(doc_id)
            if _is_retired(" ".join(chunk.heading_path[:1]), chunk.text):
                self._retired.add(doc_id)
        if self._names_of_today[doc_id] or (self._of_years[doc_id] and doc_id in self._retired):
            self._suspects.append((row, doc_id))

    def _by_name(self) -> Iterator[_Stale]:
        """Yield the chunks of documents whose name or opening says that they are old."""
        newest: dict[str, tuple[Version, str]] = {}
        for doc_id, member in self._of_years.items():
            if member and doc_id not in self._retired:
                latest = newest.get(member.family)
                if latest is None or latest[0].order < member.version.order:
                    newest[member.family] = member.version, doc_id
        for row, doc_id in self._suspects:
            member, today = self._of_years[doc_id], self._names_of_today[doc_id]
            if member and member.family in newest and doc_id in self._retired:
                version, newer = newest[member.family]
                if member.version.order < version.order:
                    here = f"{member.version.text} is older than {version.text}"
                    yield row, self._starts[newer], f"{here}, and says so; see"
            elif today in self._starts:
                yield row, self._starts[today], "its name says that it is old; see"

    def _by_id(self) -> Iterator[_Stale]:
        """Yield the chunks of a document of which there is a newer version."""
        newest = {
            family: max(versions, key=lambda version: version.order)
            for family, versions in self._families.items()
        }
        for row, member, path in self._rows:
            latest = newest[member.family]
            if member.version.order == latest.order:
                continue
            there = self._families[member.family][latest]
            here = f"{member.version.text} is older than {latest.text}"
            if path in there:
                yield row, there[path], f"{here}: the same section is"
            else:
                yield row, next(iter(there.values())), f"{here}, where the document begins with"

    def _by_text(self, words: Words) -> Iterator[_Stale]:
        """Yield passages that are like one of another document which mentions a later version."""
        mentions = sorted(
            (item for item in self._mentions if len(words(item.row)) >= _FEWEST_WORDS),
            key=lambda item: (item.version.order, item.row),
        )
        digests = _digests([item.row for item in mentions], words)
        superseded: dict[int, tuple[int, str]] = {}
        for older, newer in _alike(digests):
            chunk, newer_chunk = mentions[older], mentions[newer]
            if chunk.row not in superseded and (why := _superseded(chunk, newer_chunk)):
                superseded[chunk.row] = newer_chunk.row, why
        yield from ((row, newer, why) for row, (newer, why) in sorted(superseded.items()))


def _digests(rows: list[int], words: Words) -> _Digests:
    parts = [np.zeros((0, PERMUTATIONS), np.uint32)]
    for at in range(0, len(rows), _BATCH):
        numbers = [words(row) for row in rows[at : at + _BATCH]]
        lengths = np.array([len(part) for part in numbers], np.int64)
        parts.append(minhashes(np.concatenate(numbers), lengths))
    return np.concatenate(parts)


def _alike(digests: _Digests) -> Iterator[tuple[int, int]]:
    """Yield pairs that are alike, the lower number first.

    In each bucket of a band, each is compared with the next few and with the last, the newest.
    """
    count = len(digests)
    wide = digests.reshape(count, _BANDS, PERMUTATIONS // _BANDS)
    seen: _Rows = np.zeros(0, np.int64)
    for band in range(_BANDS):
        _, bucket = np.unique(wide[:, band], axis=0, return_inverse=True)
        order = np.argsort(bucket.ravel(), kind="stable")
        ends = np.searchsorted(bucket.ravel()[order], bucket.ravel()[order], side="right") - 1
        places = np.arange(len(order))
        for partners in (*(places + step for step in range(1, _NEIGHBOURS + 1)), ends):
            within = (partners <= ends) & (partners > places)
            seen = np.union1d(seen, order[places[within]] * count + order[partners[within]])
    for at in range(0, len(seen), _BATCH):
        ones, others = np.divmod(seen[at : at + _BATCH], count)
        alike = (digests[ones] == digests[others]).mean(axis=1) >= LEAST_JACCARD
        yield from zip(ones[alike].tolist(), others[alike].tolist(), strict=True)


def _superseded(older: _VersionedChunk, newer: _VersionedChunk) -> str:
    """Return why one passage is an older version of another; "" where it is none."""
    is_same = older.version.order == newer.version.order or older.doc_id == newer.doc_id
    if is_same or older.version.is_date != newer.version.is_date:
        return ""
    return f"mentions {older.version.text}, and {newer.version.text} is mentioned in"
