"""Where the texts of documents stand, once files have other names.

A name may go to another text: a chapter that comes first moves all others up by one. What is said
of a document, such as a label or a hit that names it, is said of what it told, and goes with that.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from typing import Final

from ragforge.corpus.chunk_files import renames
from ragforge.deferred import dataclass
from ragforge.records import Chunk

_WORD: Final = re.compile(r"\w+")
_EDITED_FROM: Final = 0.5
"""Share of words in common from which a text is an edited one, and not another."""

FindEdited = Callable[[Collection[str]], Collection[str]]
"""Returns those of some documents that say mostly what they said."""


@dataclass(frozen=True, slots=True)
class MovedDocuments:
    """Documents of before whose id is not the one of their text any more.

    Args:
        now: The id that has their text.
        gone: Those whose text is nowhere; the id may be that of another text now.
        replaced: Of all these, the ids that are those of other texts now.
    """

    now: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()


NONE_MOVED: Final = MovedDocuments()


def find_moved_documents(
    before: Mapping[str, str],
    now: Mapping[str, str],
    stayed: Mapping[str, str],
    find_edited: FindEdited,
) -> MovedDocuments:
    """Return where the texts of documents stand now.

    A document whose text stands under another id is edited, and copied before, where it says mostly
    what it said and did not make room for another; else it has moved.

    Args:
        before: Digests of the documents that are not as they were, by id.
        now: Digests of those that came or say something else, by id.
        stayed: By digest the first id of a document that is as it was.
        find_edited: Asked once at most.
    """
    fixed = renames(
        {name: digest for name, digest in before.items() if name not in now},
        {name: digest for name, digest in now.items() if name not in before},
    )
    taken = set(fixed.values())
    found = fixed | renames(
        {name: digest for name, digest in before.items() if name not in fixed},
        {name: digest for name, digest in now.items() if name not in taken},
    )
    for name, digest in before.items():
        if name not in found and digest in stayed:
            found[name] = stayed[digest]
    told = {*before.values(), *stayed}
    doubtful = {
        name
        for name, other in found.items()
        if name in now and now[name] not in told and other not in found
    }
    edited = {*find_edited(doubtful)} if doubtful else set()
    moved = {name: other for name, other in sorted(found.items()) if name not in edited}
    places = {*moved.values()}
    gone = (before.keys() - moved.keys()) & ((before.keys() - now.keys()) | places)
    return MovedDocuments(moved, frozenset(gone), frozenset({*moved, *gone} & now.keys()))


def edited_documents(
    doc_ids: Collection[str], before: Iterable[Chunk], now: Iterable[Chunk]
) -> set[str]:
    """Return those of some documents that say mostly what they said.

    Args:
        doc_ids: Which.
        before: Chunks before, of these documents among others.
        now: Likewise now.
    """
    then, later = _words(doc_ids, before), _words(doc_ids, now)
    return {
        name
        for name in doc_ids
        if 2 * (then[name] & later[name]).total()
        >= _EDITED_FROM * (then[name].total() + later[name].total())
    }


def _words(doc_ids: Collection[str], chunks: Iterable[Chunk]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {name: Counter() for name in doc_ids}
    for chunk in chunks:
        if chunk.doc_id in found:
            found[chunk.doc_id].update(_WORD.findall(chunk.text.casefold()))
    return found
