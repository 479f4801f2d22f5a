"""What became of the queries of a set when its corpus changed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ragforge.records import Failure, ItemChange, Query
from ragforge.stages.generate.splits import Connections


@dataclass(frozen=True, slots=True)
class SettledItem:
    """A query as the next version has it.

    Args:
        before: As the parent has it; None where it is new.
        query: As it is now; its evidence has its new places.
        change: What became of it; None where it was kept to the byte.
        is_moved: Whether the places of its evidence changed, so that what the evidence says of
            chunks has to be told anew.
    """

    before: Query | None
    query: Query
    change: ItemChange | None = None
    is_moved: bool = False


@dataclass(slots=True)
class SettledSet:
    """All queries of the next version.

    Args:
        items: One for each query of the parent and each new one, sorted by id.
        failures: Checks that gave no result; their queries are quarantined.
        broken_pins: What happened to queries that a person pinned; nothing may be published.
        n_calls: Calls that checked queries, those that the store answered included.
        connections: What the queries rest on, once that is settled.
        splits: What became of queries that came to stand between the splits.
    """

    items: list[SettledItem] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    broken_pins: list[ItemChange] = field(default_factory=list)
    n_calls: int = 0
    connections: Connections = field(default_factory=Connections)
    splits: list[ItemChange] = field(default_factory=list)

    @property
    def queries(self) -> list[Query]:
        """The queries as they are now."""
        return [item.query for item in self.items]

    def replace(self, changed: Iterable[SettledItem]) -> None:
        """Put items in the place of those with their ids; others are added."""
        by_id = {item.query.query_id: item for item in self.items}
        by_id |= {item.query.query_id: item for item in changed}
        self.items = [by_id[query_id] for query_id in sorted(by_id)]
