"""Splits: queries of connected documents stay together, and where they were put once."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal

from ragforge.deferred import dataclass
from ragforge.records import Query, SourceDocument

Split = Literal["dev", "test"]


def assign_splits(
    queries: Sequence[Query], documents: Mapping[str, Iterable[str]], dev_share: float
) -> list[Query]:
    """Return the queries, each with a split.

    Documents that a query needs together, or that hold near-duplicates of one another, are
    connected, and so are their queries: what tunes a system on dev must not give away the answers
    in test. A group goes where the hash of its first document says. What has a split keeps it; a
    new query whose group has queries in one split goes there too, and into test where its group
    has some in both, since a leak into dev harms nobody's decision on test. What was taken out of
    its split stays in none, and connects nothing.

    Args:
        queries: In any order.
        documents: For each query id the documents it rests on, near-duplicates included.
        dev_share: Share of the groups that goes into dev, in [0, 1].
    """
    groups = _Groups()
    for query in queries:
        if query.split_before is not None:
            continue
        groups.join(_documents(query, documents))
    settled: dict[str, set[Split]] = {}
    for query in queries:
        if query.split is not None:
            group = groups.first(_documents(query, documents)[0])
            settled.setdefault(group, set()).add(query.split)

    def split_of(query: Query) -> Split:
        group = groups.first(_documents(query, documents)[0])
        before = settled.get(group, set())
        if before:
            return "dev" if before == {"dev"} else "test"
        return "dev" if _place(group) < dev_share else "test"

    return [
        query
        if query.split or query.split_before
        else query.model_copy(update={"split": split_of(query)})
        for query in queries
    ]


@dataclass(frozen=True, slots=True)
class Connections:
    """What queries rest on after a change.

    Args:
        documents: As for `assign_splits`.
        changed: Ids of queries that rest on other documents than before, or were out of use.
        added: Ids of new queries.
    """

    documents: Mapping[str, Iterable[str]] = field(default_factory=dict)
    changed: Collection[str] = frozenset()
    added: Collection[str] = frozenset()

    def clashes(self, queries: Iterable[Query]) -> dict[str, str]:
        """Return the accepted queries that connect the splits, each with one of the other split.

        Queries take their places one after the other: those that a person pinned, then those that
        rest on what they did, then the others, each kind by id. One that would be connected with a
        query of the other split clashes and, unless it is pinned, connects nothing. What was
        connected before is no fault of the change, so that a query that rests on what it did
        clashes only with a pinned one that does not. Nor is a new query where the splits are
        connected already. One that was taken out of its split is looked at as if it was in it.
        """
        places, clashing = _Places(), dict[str, str]()
        for query in sorted(queries, key=self._turn):
            split = query.split or query.split_before
            is_fixed = query.pinned is not None
            if query.status != "accepted" or split is None or (is_fixed and not query.split):
                continue
            name = query.query_id
            is_moved = name in self.changed or name in self.added
            documents = _documents(query, self.documents)
            met = places.met(documents, "test" if split == "dev" else "dev", moved=not is_moved)
            if met and not (name in self.added and places.is_mixed(documents)):
                clashing[name] = met
            if is_fixed or name not in clashing:
                places.take(documents, split, name, moved=is_moved)
        return clashing

    def _turn(self, query: Query) -> tuple[bool, bool, str]:
        is_moved = query.query_id in self.changed or query.query_id in self.added
        return query.pinned is None, is_moved, query.query_id


def _documents(query: Query, documents: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the documents that a query rests on; one without any is a group of its own."""
    return sorted(documents.get(query.query_id, ())) or [f"\n{query.query_id}"]


def _place(group: str) -> float:
    digest = hashlib.sha256(f"split\n{group}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / (1 << 64)


class _Groups:
    """Connected documents; the first by name stands for a group."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def first(self, name: str) -> str:
        root = name
        while self._above.get(root, root) != root:
            root = self._above[root]
        while self._above.get(name, name) != root:
            self._above[name], name = root, self._above[name]
        return root

    def join(self, names: Sequence[str]) -> None:
        for name in names:
            self._above.setdefault(name, name)
        roots = sorted({self.first(name) for name in names})
        for root in roots[1:]:
            self._above[root] = roots[0]


class _Places:
    """Which splits have queries on connected documents."""

    def __init__(self) -> None:
        self._groups = _Groups()
        self._taken: dict[str, dict[tuple[Split, bool], str]] = {}

    def met(self, documents: Sequence[str], split: Split, *, moved: bool) -> str:
        """Return a query of a split that these documents are connected with, "" for none.

        Args:
            documents: Of one query.
            split: Which split.
            moved: Whether only queries count that came to rest on other documents.
        """
        kinds = ((split, True),) if moved else ((split, False), (split, True))
        return next(
            (
                taken[kind]
                for taken in self._groups_with(documents)
                for kind in kinds
                if kind in taken
            ),
            "",
        )

    def is_mixed(self, documents: Sequence[str]) -> bool:
        """Whether one of the documents is connected with queries of both splits already."""
        return any(len({split for split, _ in taken}) > 1 for taken in self._groups_with(documents))

    def take(self, documents: Sequence[str], split: Split, name: str, *, moved: bool) -> None:
        """Connect the documents, with a query of a split on them."""
        together: dict[tuple[Split, bool], str] = {}
        for taken in self._groups_with(documents):
            together |= {kind: other for kind, other in taken.items() if kind not in together}
        together.setdefault((split, moved), name)
        self._groups.join(documents)
        self._taken[self._groups.first(documents[0])] = together

    def _groups_with(self, documents: Sequence[str]) -> list[dict[tuple[Split, bool], str]]:
        roots = sorted({self._groups.first(name) for name in documents})
        return [self._taken[root] for root in roots if root in self._taken]


def with_names(
    documents: Mapping[str, Iterable[str]], names: Mapping[str, tuple[str, ...]]
) -> dict[str, set[str]]:
    """Return documents by query with all names that they have and had."""
    return {
        query_id: {other for name in found for other in names.get(name, (name,))}
        for query_id, found in documents.items()
    }


def names_of(documents: Iterable[SourceDocument]) -> dict[str, tuple[str, ...]]:
    """Return all ids that a document has and had by each of them; only where there are several."""
    all_names: dict[str, tuple[str, ...]] = {}
    for document in documents:
        if document.aliases:
            names = (document.doc_id, *document.aliases)
            all_names |= {name: (*all_names.get(name, ()), *names) for name in names}
    return all_names
