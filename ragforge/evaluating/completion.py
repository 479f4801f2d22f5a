"""The figures of completed pools: yield of probes, depths, and estimated completeness.

Figures are over queries that the corpus answers; what is relevant to one that it should not answer
is a conflict.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ragforge.deferred import dataclass
from ragforge.records import PoolEntry

if TYPE_CHECKING:
    from ragforge.measures.capture_recapture import Completeness, TwoSamples

RELEVANT: Final = 2
"""The lowest grade of a chunk that holds a part of the answer."""


@dataclass(frozen=True, slots=True)
class PooledItem:
    """A query with its pool.

    Args:
        query_id: Its id.
        answerable: Whether the corpus is to answer it.
        depth: Ranks of each probe that are in the pool.
        sources: Ids of the chunks it was known to be about, in the pool or not.
        entries: The pool.
        grades: For each chunk, of the pool or not, the grade that stands; those without are absent.
    """

    query_id: str
    answerable: bool
    depth: int
    sources: frozenset[str]
    entries: Sequence[PoolEntry]
    grades: Mapping[str, int]

    def is_relevant(self, chunk_id: str) -> bool:
        """Whether a chunk has a grade that says so."""
        return self.grades.get(chunk_id, 0) >= RELEVANT

    @property
    def relevant_beyond_sources(self) -> list[PoolEntry]:
        """The relevant part of the pool, less the sources."""
        return [
            entry
            for entry in self.entries
            if entry.chunk_id not in self.sources and self.is_relevant(entry.chunk_id)
        ]


@dataclass(frozen=True, slots=True)
class ProbeYield:
    """Relevant chunks that a probe found beyond the sources, and those that no other found."""

    probe: str
    n_found: int
    n_only: int


@dataclass(frozen=True, slots=True)
class CompletionSummary:
    """The figures of a completion."""

    n_items: int
    n_answerable: int
    n_pairs: int
    """Pairs of a query and a chunk in the pools."""
    n_ungraded: int
    """Of those, without a grade."""
    n_calls: int
    """Replies that the grades in the pools come from."""
    grades: tuple[int, ...]
    """Pairs in the pools of grade 0, 1, 2 and 3."""
    others_mean: float | None
    """Relevant chunks beyond the sources, an answerable query."""
    others_high: float | None
    """The same if all pairs without a grade were relevant."""
    several_share: float | None
    """Of the answerable queries, those with more than one relevant chunk."""
    n_outside: int
    """Chunks with a relevant grade, from runs or people, that no pool holds."""
    probes: tuple[ProbeYield, ...]
    depths: tuple[tuple[int, int], ...]
    """Depth and number of pools that have it, ascending."""
    by_all: "Completeness"
    """Estimated from how many probes found a chunk."""
    by_two: "Completeness"
    """Estimated from the query against the source."""
    conflicts: tuple[str, ...]
    """Ids of unanswerable queries with a relevant chunk in the pool, sorted."""

    @property
    def at_most(self) -> "Completeness":
        """The lower of the two estimates, both of which are too high."""
        known = [one for one in (self.by_two, self.by_all) if one.share is not None]
        return min(known, key=lambda one: one.share or 0.0, default=self.by_all)

    @property
    def completeness(self) -> float | None:
        """Share of the relevant chunks beyond the sources that is in the pools, at most."""
        return self.at_most.share

    @property
    def low(self) -> float | None:
        """Lower end of its interval at 95 %; None where there is none."""
        return self.at_most.interval.low if self.at_most.interval else None

    @property
    def high(self) -> float | None:
        """Upper end, likewise."""
        return self.at_most.interval.high if self.at_most.interval else None


def summarise_completion(
    items: Sequence[PooledItem], *, n_calls: int, first: str = "query", second: str = "source"
) -> CompletionSummary:
    """Return the figures of the pools.

    Args:
        items: All that were completed.
        n_calls: Replies that the grades come from.
        first: Kind of probe, of any retriever, that is held against another.
        second: That other kind.
    """
    answerable = [item for item in items if item.answerable]
    from ragforge.measures.capture_recapture import completeness, completeness_by_two

    others = [item.relevant_beyond_sources for item in answerable]
    names = {name for item in answerable for entry in item.entries for name in entry.probes}
    n, n_others = len(answerable), sum(map(len, others))
    grades = Counter(item.grades.get(entry.chunk_id) for item in items for entry in item.entries)
    n_open = sum(_n_open(item) for item in answerable)
    return CompletionSummary(
        n_items=len(items),
        n_answerable=n,
        n_pairs=sum(len(item.entries) for item in items),
        n_ungraded=grades[None],
        n_calls=n_calls,
        grades=tuple(grades[grade] for grade in range(4)),
        others_mean=n_others / n if n else None,
        others_high=(n_others + n_open) / n if n else None,
        several_share=sum(map(_has_several, answerable)) / n if n else None,
        n_outside=sum(map(_n_outside, answerable)),
        probes=tuple(_yields(others, names)),
        depths=tuple(sorted(Counter(item.depth for item in items).items())),
        by_all=completeness([[len(entry.probes) for entry in each] for each in others], len(names)),
        by_two=completeness_by_two([_two_samples(each, first, second) for each in others]),
        conflicts=tuple(
            sorted(item.query_id for item in items if not item.answerable and _conflicts(item))
        ),
    )


def _yields(others: Iterable[Sequence[PoolEntry]], names: Iterable[str]) -> Iterator[ProbeYield]:
    every: Counter[str] = Counter()
    only: Counter[str] = Counter()
    for entries in others:
        for entry in entries:
            every.update(entry.probes.keys())
            if len(entry.probes) == 1:
                only.update(entry.probes.keys())
    for name in sorted(names):
        yield ProbeYield(name, every[name], only[name])


def _two_samples(entries: Iterable[PoolEntry], first: str, second: str) -> "TwoSamples":
    by = [{name.rpartition(":")[2] for name in entry.probes} for entry in entries]
    from ragforge.measures.capture_recapture import TwoSamples

    return TwoSamples(
        n_first=sum(first in kinds for kinds in by),
        n_second=sum(second in kinds for kinds in by),
        n_both=sum({first, second} <= kinds for kinds in by),
    )


def _n_open(item: PooledItem) -> int:
    return sum(
        entry.chunk_id not in item.sources and entry.chunk_id not in item.grades
        for entry in item.entries
    )


def _has_several(item: PooledItem) -> bool:
    chunks = item.sources | {entry.chunk_id for entry in item.entries}
    return sum(map(item.is_relevant, chunks)) > 1


def _n_outside(item: PooledItem) -> int:
    held = item.sources | {entry.chunk_id for entry in item.entries}
    return sum(chunk_id not in held for chunk_id in filter(item.is_relevant, item.grades))


def _conflicts(item: PooledItem) -> bool:
    return any(item.is_relevant(entry.chunk_id) for entry in item.entries)
