"""Where the texts of documents stand, once files have other names.

A name may go to another text: a chapter that comes first moves all others up by one. What is said
of a document, such as a label or a hit that names it, is said of what it told, and goes with that.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Final

from ragforge.corpus.chunk_files import renames
from ragforge.corpus.document_matches import DocumentMatches
from ragforge.deferred import dataclass, pattern

_FORMER: Final = pattern("former:(.+)@([^@]+)")
_DIGEST_CHARS: Final = 16

FindMatches = Callable[[Collection[str], Collection[str]], DocumentMatches]
"""Returns what became of documents of before by their words, under these ids of now."""


@dataclass(frozen=True, slots=True)
class MovedDocuments:
    """Documents of before whose id is not the one of their text any more.

    Args:
        now: The id that has their text.
        gone: Those whose text is nowhere; the id may be that of another text now.
        replaced: Of all these, the ids that are those of other texts now.
        digests: Of the texts of those that are gone, by id.
        came: The ids that came or say something else, by the beginnings of the digests of
            their texts.
    """

    now: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    digests: Mapping[str, str] = field(default_factory=dict)
    came: Mapping[str, Collection[str]] = field(default_factory=dict)

    def renamed(self, doc_id: str) -> str | None:
        """Return by what a hit goes now that names a document; None where nothing is known of it.

        Where its text is gone that is an id that no document has, which tells the text: so it finds
        back, and counts for no other text under the name.
        """
        if former := _FORMER.fullmatch(doc_id):
            came = self.came.get(former[2])
            return place_of(former[1], came) if came else None
        if doc_id in self.gone:
            return f"former:{doc_id}@{_short(self.digests[doc_id])}"
        return self.now.get(doc_id)


NONE_MOVED: Final = MovedDocuments()


def place_of(doc_id: str, places: Collection[str]) -> str:
    """Return which of some ids with one text a document has: its own, else the first."""
    return doc_id if doc_id in places else min(places)


def by_text(digests: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the ids of documents by the digests of their texts."""
    found: dict[str, list[str]] = {}
    for name, digest in digests.items():
        found.setdefault(digest, []).append(name)
    return found


def _short(digest: str) -> str:
    return digest[:_DIGEST_CHARS]


def find_moved_documents(
    before: Mapping[str, str],
    now: Mapping[str, str],
    stayed: Mapping[str, str],
    find_matches: FindMatches,
) -> MovedDocuments:
    """Return where the texts of documents stand now.

    A document whose text stands under another id is edited, and copied before, where it says mostly
    what it said and did not make room for another; else it has moved. One whose text stands nowhere
    word for word is edited where it says mostly what it said, has moved where its words are clearly
    those of another, and else is gone.

    Args:
        before: Digests of the documents that are not as they were, by id.
        now: Digests of those that came or say something else, by id.
        stayed: By digest the first id of a document that is as it was.
        find_matches: Asked once at most.
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
    new = {name for name, digest in now.items() if digest not in told}
    doubtful = {name for name, other in found.items() if name in new and other not in found}
    open_ = before.keys() - found.keys()
    is_asked = new and (doubtful or open_)
    matches = find_matches(doubtful | open_, new) if is_asked else DocumentMatches()
    exact = {name: other for name, other in found.items() if name not in matches.edited}
    near = {name: other for name, other in matches.homes.items() if name in open_}
    moved = dict(sorted((exact | near).items()))
    gone = before.keys() - moved.keys() - matches.edited
    return MovedDocuments(
        moved,
        frozenset(gone),
        frozenset({*moved, *gone} & now.keys()),
        {name: before[name] for name in gone},
        by_text({name: _short(digest) for name, digest in now.items()}),
    )
