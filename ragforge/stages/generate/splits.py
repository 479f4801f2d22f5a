"""Splits: queries of connected documents stay together, and where they were put once."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ragforge.records import Query

Split = Literal["dev", "test"]


def assign_splits(
    queries: Sequence[Query], documents: Mapping[str, Iterable[str]], dev_share: float
) -> list[Query]:
    """Return the queries, each with a split.

    Documents that a query needs together, or that hold near-duplicates of one another, are
    connected, and so are their queries: what tunes a system on dev must not give away the answers
    in test. A group goes where the hash of its first document says. What has a split keeps it; a
    new query whose group has queries in one split goes there too, and into test where its group
    has some in both, since a leak into dev harms nobody's decision on test.

    Args:
        queries: In any order.
        documents: For each query id the documents it rests on, near-duplicates included.
        dev_share: Share of the groups that goes into dev, in [0, 1].
    """
    groups = _Groups()
    for query in queries:
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
        query if query.split else query.model_copy(update={"split": split_of(query)})
        for query in queries
    ]


def _documents(query: Query, documents: Mapping[str, Iterable[str]]) -> list[str]:
    """Return what a query rests on; a query without any document is a group of its own."""
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
