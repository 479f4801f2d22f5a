"""Pools: what the probes found down to a depth, which grows while that still pays."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ragforge.records import PoolEntry
from ragforge.stages.complete.probes import Item, ProbeRanks


@dataclass(frozen=True, slots=True)
class Ranked:
    """All that the probes found for an item, at any rank.

    Args:
        query_id: Of the item.
        sources: Ids of the chunks that were known before any probe.
        ranks: For each chunk, the rank that each probe gave it, from 1.
    """

    query_id: str
    sources: frozenset[str]
    ranks: Mapping[str, Mapping[str, int]]

    def pool(self, depth: int, above: int = 0) -> list[str]:
        """Return the chunks whose best rank lies in (above, depth], sorted."""
        return sorted(
            chunk_id
            for chunk_id, ranks in self.ranks.items()
            if above < min(ranks.values()) <= depth
        )

    def entries(self, depth: int) -> list[PoolEntry]:
        """Return the pool with the ranks that lie within its depth, sorted."""
        return [
            PoolEntry(
                query_id=self.query_id,
                chunk_id=chunk_id,
                probes={
                    probe: rank
                    for probe, rank in sorted(self.ranks[chunk_id].items())
                    if rank <= depth
                },
            )
            for chunk_id in self.pool(depth)
        ]


@dataclass(frozen=True, slots=True)
class Growth:
    """How deep pools get.

    Args:
        first: Ranks of each probe in a pool at first.
        most: Ranks of each probe at most.
    """

    first: int
    most: int

    @property
    def start(self) -> int:
        """The depth of each pool at first."""
        return min(self.first, self.most)

    @property
    def block(self) -> int:
        """Ranks of each probe that are added at once, and whose yield decides about more.

        Half of the first ones: the top ranks of a probe nearly always hold something, and are no
        sign that there is more below. A block is then about one call of the judge.
        """
        return (self.first + 1) // 2

    def depths(self) -> list[int]:
        """Return all depths that a pool can have."""
        return [*range(self.start, self.most, self.block), self.most]

    def next_depth(
        self, ranked: Ranked, depth: int, is_relevant: Callable[[str], bool]
    ) -> int | None:
        """Return the depth to which a pool grows; None where it stays as it is.

        It grows where its last block brought a relevant chunk that no higher rank had, and that was
        not known from the start.

        Args:
            ranked: What the probes found.
            depth: Of the pool so far, one of `depths`.
            is_relevant: Whether a chunk of the pool has a grade that says so.
        """
        if depth >= self.most:
            return None
        new = set(ranked.pool(depth, max(0, depth - self.block))) - ranked.sources
        return min(depth + self.block, self.most) if any(map(is_relevant, new)) else None


def ranked_items(items: Iterable[Item], rankings: Iterable[ProbeRanks]) -> list[Ranked]:
    """Return the ranks of all probes for each item, in the order of the items."""
    by_query: dict[str, dict[str, dict[str, int]]] = {}
    for each in rankings:
        of_query = by_query.setdefault(each.query_id, {})
        for chunk_id, rank in each.ranks.items():
            of_query.setdefault(chunk_id, {})[each.probe] = rank
    return [
        Ranked(
            item.query_id,
            frozenset(source.chunk_id for source in item.sources),
            by_query.get(item.query_id, {}),
        )
        for item in items
    ]
