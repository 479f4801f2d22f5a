"""Versions and dates in names and texts: which of two documents is the older one."""

import re
from dataclasses import dataclass

_PRE = r"(?:[-.]?(?:a|b|rc|alpha|beta|dev|pre)[-.]?\d*)?"
_IN_ID = re.compile(
    rf"(?<![^/_\-@.])(?:(?:version|release|v)[-_]?(\d+(?:\.\d+)*{_PRE})|(\d+(?:\.\d+)+{_PRE}))"
    r"(?![^/_\-.])",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(
    rf"\b(?:v|version\s+|release\s+)(\d+(?:\.\d+)*{_PRE})\b|(?<![\w.])(\d+\.\d+\.\d+{_PRE})(?![\w.]*\d)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d-(?:0[1-9]|1[0-2])(?:-(?:[0-2]\d|3[01]))?)(?!\d)")
_YEAR = re.compile(r"(?<![^/_\-@.])((?:19|20)\d\d)(?![^/_\-.])")
_RETIRED = re.compile(
    r"\b(?:superseded|archived|obsolete|outdated|withdrawn|no longer (?:valid|in force))\b",
    re.IGNORECASE,
)
_RETIRED_ID = re.compile(
    r"(?<![^/_\-@.])(?:old|archived?|superseded|obsolete|outdated|legacy)(?![^/_\-.])[/_\-]?",
    re.IGNORECASE,
)
_OPENING_CHARS = 200
"""Of a text, where a document says that it is none of today."""
_STAGE = re.compile(r"([a-z]+)")
_STAGES = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, "pre": 3, "rc": 4}

Order = tuple[tuple[int, int], ...]
"""Comes out in the order of versions: numbers by value, `rc` and the like before the release."""


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
class Member:
    """A document as one version of several: `0.27.0/api.md` is `*/api.md` at 0.27.0."""

    family: str
    version: Version


def order_of(version: str) -> Order:
    """Return what versions and ISO dates sort by; `1.2` and `1.2.0` are the same."""
    numbers, *stage = _STAGE.split(version.lower(), maxsplit=1)
    release = [int(number) for number in re.findall(r"\d+", numbers)]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    before = [(-1, _STAGES.get(word, 0)) for word in stage[:1]]
    further = [(1, int(number)) for number in re.findall(r"\d+", "".join(stage[1:]))]
    return (*((1, number) for number in release), *before, *further, (0, 0))


def member_of(doc_id: str) -> Member | None:
    """Return the family of a document and its version, by the first version in its id.

    Dates are none: pages of several dates may all be valid.
    """
    found = _IN_ID.search(doc_id)
    if found is None or _DATE.search(doc_id, max(0, found.start() - 8), found.end() + 8):
        return None
    text = found[1] or found[2]
    family = f"{doc_id[: found.start()]}*{doc_id[found.end() :]}"
    return Member(family, Version(text, order_of(text)))


def member_by_year(doc_id: str) -> Member | None:
    """Return the family of a document and its year: `returns-2024.md` is `returns-*.md` of 2024.

    A year alone says little, as pages of several years may all be valid: see `is_retired`.
    """
    found = _YEAR.search(doc_id)
    if found is None or _DATE.search(doc_id):
        return None
    family = f"{doc_id[: found.start()]}*{doc_id[found.end() :]}"
    return Member(family, Version(found[1], order_of(found[1])))


def is_retired(title: str, text: str) -> bool:
    """Whether a document says of itself, in title or opening, that another took its place."""
    return bool(_RETIRED.search(title) or _RETIRED.search(text[:_OPENING_CHARS]))


def name_of_today(doc_id: str) -> str | None:
    """Return what a document would be called without a word such as `old` or `archive` in its id.

    Returns:
        `returns.md` for `returns-old.md` and `archive/returns.md`; None where no word says so.
    """
    found = _RETIRED_ID.search(doc_id)
    if found is None:
        return None
    before = doc_id[: found.start()]
    return f"{before if found[0][-1] in '/_-' else before.rstrip('_-')}{doc_id[found.end() :]}"


def mentioned(text: str) -> Version | None:
    """Return the latest version that a text mentions; the latest date where it mentions none."""
    versions = [found[1] or found[2] for found in _IN_TEXT.finditer(text)]
    dates = [] if versions else [found[1] for found in _DATE.finditer(text)]
    known = [Version(found, order_of(found)) for found in versions or dates]
    return max(known, key=lambda version: version.order, default=None)
