"""Markup that services put into the texts of their hits: highlights, paragraphs, entities of HTML.

Documents may hold the same as text: what is about HTML has tags of its own. So nothing is taken out
for good here; whoever knows the documents tells which reading of a text they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ragforge.deferred import html, pattern
from ragforge.files.text import normalise

_INLINE: Final = frozenset("a b code em font hi highlight hl i mark s small span strong u".split())
"""Tags within a line; all others part words."""
_BLOCKS: Final = frozenset(
    "br div dd dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre section table tbody td th thead tr ul".split()
)
_TAG: Final = pattern(
    rf"</?({'|'.join(sorted(_INLINE | _BLOCKS, key=len, reverse=True))})(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_ENTITY: Final = pattern(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

_CLOSING: Final = pattern(r"[<{\[]{1,2}/([\w-]{1,32})[>}\]]{1,2}")
_DOUBLED: Final = pattern(r"(?:@@|%%|\$\$|\{\{|<<)/?[\w-]{1,32}(?:@@|%%|\$\$|\}\}|>>)")
_TARGET: Final = pattern(r"(?<=\])\([^()\s]*(?:\s+\"[^\"]*\")?\)")


def marks_of(text: str) -> list[str]:
    """Return the tags and entities of a text, as they stand in it."""
    return [found[0] for pattern in (_TAG, _ENTITY) for found in pattern.finditer(text)]


def without_markup(text: str) -> str:
    """Return a text by which those are equal that differ in markup, blanks and form alone."""
    read = normalise(text)
    for _ in range(2):  # What is about entities is escaped once more.
        read = _ENTITY.sub(_as_read, read)
    return "".join(_TAG.sub(" ", read).split())


def without_foreign_marks(text: str) -> str:
    """Return a text without marks of names that are closed, and without the targets of links.

    Services choose their own, such as {{hl}}word{{/hl}}, <hit>word</hit> or @@word@@.
    """
    if not any(mark in text for mark in ("</", "{/", "[/", "](", "@@", "%%", "$$", "{{", "<<")):
        return text
    bare = _TARGET.sub("", _DOUBLED.sub("", text))
    names = {found[1] for found in _CLOSING.finditer(bare)}
    for name in sorted(names):
        bare = re.sub(rf"[<{{\[]{{1,2}}/?{re.escape(name)}(?:\s[^<>]*)?[>}}\]]{{1,2}}", "", bare)
    return bare


def readings_of(text: str) -> Iterator[str]:
    """Yield a text as it is, then without tags, then with its entities read.

    Where it has tags of several names, those of one name alone are taken out as well: a text about
    HTML may come with highlights.
    """
    yield text
    if "<" not in text and "&" not in text:
        return
    seen = {text}
    names = dict.fromkeys(found[1].lower() for found in _TAG.finditer(text))
    subsets = [frozenset(names), *(frozenset({name}) for name in names), frozenset[str]()]
    for taken_out in subsets:
        bare = _without(text, taken_out)
        for reading in (bare, _ENTITY.sub(_as_read, bare)):
            stripped = reading.strip()
            if stripped and reading not in seen:
                seen.add(reading)
                yield stripped


def _without(text: str, names: frozenset[str]) -> str:
    """Return a text without the tags of some names, a blank in the place of those of blocks."""

    def left(found: re.Match[str]) -> str:
        name = found[1].lower()
        if name not in names:
            return found[0]
        return "" if name in _INLINE else " "

    return _TAG.sub(left, text)


def _as_read(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])
