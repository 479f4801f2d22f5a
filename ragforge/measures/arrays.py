"""Measuring with numpy: judged hits of many queries at a time, and columns as arrays.

For rankings in memory the interpreter takes no step for a chunk: scores are packed as they are, and
the ranks of all hits of a batch are found by one binary search over arrays. Most of the time goes
into fetching what dicts refer to; so a few queries at a time are read to the end. The columns are
those of `ragforge.measures.columns`.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise, starmap
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragforge.measures.columns import Column
from ragforge.measures.hit_table import LARGEST_GRADE, LEAST_GRADE, Rows, Table
from ragforge.measures.locating import (
    Judgments,
    RankedChunks,
    add_rankings,
    falls,
    rank_ties,
)

BATCH_CHUNKS: Final = 1 << 15
"""Chunks of a batch: small enough for the cache, many enough to forget what a call costs."""
_DRAWN_CHUNKS: Final = 1 << 12
"""Chunks whose scores are read before the judged ones are looked up: they are in the cache then."""
_GRADE_BITS: Final = 11
"""Bits for a grade less the least one."""
_EXACT: Final = 2.0**53
_DEEP: Final = 30
"""Chunks retrieved for each judged one."""
_MOST_HELD: Final = 1 << 18
"""Hits or judged chunks of which columns are kept; of more, they are made again when needed."""
_EMPTY: Final[dict[str, float]] = {}


class Batch(NamedTuple):
    """Queries with their judgments and scores, aligned."""

    query_ids: list[str]
    judgments: list[Mapping[str, int]]
    scores: list[Mapping[str, float]]
    lengths: NDArray[np.int64]
    """How many chunks each ranking has."""


def add_batches(
    table: Table,
    query_ids: list[str],
    qrels: Mapping[str, Judgments],
    run: Mapping[str, RankedChunks],
) -> Iterator[str]:
    """Add queries to a table, and yield those that have to be looked at one by one.

    They are those of `add_rankings`, to which batches go that hold anything but dicts of numbers:
    failed judgments, rankings without scores, NaN. The table is grown in the order of the ids, so
    the caller adds a yielded query before it asks for the next.
    """
    for batch in _batches(query_ids, qrels, run):
        if _is_deep(batch) or not _add(table, batch):
            yield from add_rankings(table, batch.query_ids, qrels, run)


def _is_deep(batch: Batch) -> bool:
    """Whether copying all scores into an array takes longer than searching the judged ones.

    That is so for long rankings that come best first, of which the first one is taken as a sample.
    """
    scores = batch.scores[0]
    deep = batch.lengths.sum() > _DEEP * sum(map(len, batch.judgments))
    return bool(deep) and isinstance(scores, dict) and falls(scores.values())


def _batches(
    query_ids: list[str], qrels: Mapping[str, Judgments], run: Mapping[str, RankedChunks]
) -> Iterator[Batch]:
    if not query_ids:
        return
    rankings: list[Any] = [run.get(query_id, _EMPTY) for query_id in query_ids]
    lengths = np.fromiter(map(len, rankings), np.int64, len(rankings))
    number = np.cumsum(lengths) // BATCH_CHUNKS
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(query_ids)]
    for cut in starmap(slice, pairwise(cuts)):
        judgments: list[Any] = [qrels[query_id] for query_id in query_ids[cut]]
        yield Batch(query_ids[cut], judgments, rankings[cut], lengths[cut])


class _Drawn(NamedTuple):
    """The numbers of a batch."""

    scores: NDArray[np.float64]
    """Of all chunks."""
    grades: NDArray[np.int64]
    """Of all judged chunks."""
    judged: NDArray[np.float64]
    """Scores of all judged chunks; NaN for those that were not retrieved."""


def _add(table: Table, batch: Batch) -> bool:
    """Add a batch; return False, having done nothing, where it needs a closer look."""
    kinds = {*map(type, batch.judgments), *map(type, batch.scores)}
    if not all(issubclass(kind, dict) for kind in kinds):
        return False
    try:
        drawn = _drawn(batch)
    except struct.error:
        return False
    scores, grades, _ = drawn
    # Whole numbers that large are rounded by the packing, and then tie.
    if not (np.abs(scores) < _EXACT).all() and _inexact(scores):
        return False
    if len(grades) and (grades.max() > LARGEST_GRADE or grades.min() < LEAST_GRADE):
        return False
    disordered = _order(scores, batch.lengths)
    table.extend(_located(batch, drawn, disordered))
    return True


def _drawn(batch: Batch) -> _Drawn:
    """Read all scores and grades, a few queries at a time.

    Raises:
        struct.error: One is no number, or a grade no whole one.
    """
    n_judged = sum(map(len, batch.judgments))
    n_chunks = int(batch.lengths.sum())
    scores, grades, judged = (bytearray(8 * n) for n in (n_chunks, n_judged, n_judged))
    step = max(1, _DRAWN_CHUNKS * len(batch.lengths) // max(1, n_chunks))
    at, judged_at = 0, 0
    for start in range(0, len(batch.lengths), step):
        few = slice(start, start + step)
        by_score, by_grade = batch.scores[few], batch.judgments[few]
        _pack("q", grades, judged_at, list(_values(by_grade)))
        at = _pack("d", scores, at, list(_values(by_score)))
        judged_at = _pack("d", judged, judged_at, _scores_of_judged(by_grade, by_score))
    return _Drawn(np.frombuffer(scores), np.frombuffer(grades, np.int64), np.frombuffer(judged))


def _inexact(scores: NDArray[np.float64]) -> bool:
    """Whether a score is NaN or may have been a whole number that a float cannot hold."""
    return bool(np.isnan(scores).any() or (np.abs(scores[np.isfinite(scores)]) >= _EXACT).any())


def _order(scores: NDArray[np.float64], lengths: NDArray[np.int64]) -> set[int]:
    """Order the scores of each query downwards, in place; return the queries changed."""
    ends = np.cumsum(lengths)
    rises = scores[1:] > scores[:-1]
    rises[ends[(ends > 0) & (ends < len(scores))] - 1] = False
    disordered = set(np.searchsorted(ends, np.flatnonzero(rises), side="right").tolist())
    for query in disordered:
        own = scores[ends[query] - lengths[query] : ends[query]]
        own.sort()
        own[:] = own[::-1].copy()
    return disordered


def _located(batch: Batch, drawn: _Drawn, disordered: set[int]) -> Rows:
    """Find the hits of a batch.

    Args:
        batch: The queries.
        drawn: Their numbers; scores fall within a query, grades are in the order of the judgments.
        disordered: Queries whose scores are not in the order of their chunks.
    """
    scores, grades, judged_scores = drawn
    n_queries = len(batch.lengths)
    queries = np.arange(n_queries)
    n_judged = np.fromiter(map(len, batch.judgments), np.int64, n_queries)
    judged_at = np.repeat(queries, n_judged)
    retrieved = np.flatnonzero(~np.isnan(judged_scores))
    at = judged_at[retrieved]
    own = judged_scores[retrieved]
    ends = np.cumsum(batch.lengths)
    starts = ends - batch.lengths
    firsts = _first_not_above(own, scores, starts[at], ends[at])
    ranks = firsts - starts[at] + 1
    hits = _Hits(at, own, retrieved, ranks)
    tied = _tied(own, scores, firsts, ends[at])
    if tied.any():
        _settle_ties(batch, hits, set(at[tied].tolist()), scores, disordered)
    # Sorting numbers is faster than finding an order of them, so the grades go along.
    ordered = (at * (len(scores) + 1) + ranks << _GRADE_BITS) + (grades[retrieved] - LEAST_GRADE)
    ordered.sort()
    best_first = np.sort(judged_at * (1 << 20) - grades)
    return Rows(
        query_ids=batch.query_ids,
        n_retrieved=batch.lengths,
        hit_ends=np.cumsum(np.bincount(at, minlength=n_queries)),
        at=at,
        ranks=(ordered >> _GRADE_BITS) - at * (len(scores) + 1),
        grades=(ordered & ((1 << _GRADE_BITS) - 1)) + LEAST_GRADE,
        judged_ends=np.cumsum(n_judged),
        judged=judged_at * (1 << 20) - best_first,
    )


class _Hits(NamedTuple):
    """Judged chunks that were retrieved, by query."""

    at: NDArray[np.int64]
    """For each the index of its query."""
    scores: NDArray[np.float64]
    places: NDArray[np.int64]
    """For each its place among all judged chunks."""
    ranks: NDArray[np.int64]


def _settle_ties(
    batch: Batch,
    hits: _Hits,
    queries: set[int],
    scores: NDArray[np.float64],
    disordered: set[int],
) -> None:
    """Correct, in place, the ranks in queries where judged chunks share scores with others."""
    chunk_ids = list(chain.from_iterable(batch.judgments))
    ends = np.cumsum(batch.lengths)
    for query in queries:
        own = slice(*np.searchsorted(hits.at, [query, query + 1]).tolist())
        judged = [chunk_ids[place] for place in hits.places[own].tolist()]
        ranks = dict(zip(judged, hits.ranks[own].tolist(), strict=True))
        if query in disordered:
            rank_ties(ranks, set(hits.scores[own].tolist()), batch.scores[query])
        else:
            all_scores = scores[ends[query] - batch.lengths[query] : ends[query]]
            _rank_ties_in_order(ranks, batch.scores[query], all_scores)
        hits.ranks[own] = list(ranks.values())


def _tied(
    own: NDArray[np.float64],
    scores: NDArray[np.float64],
    firsts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which hits share their score with the chunk behind the first that has it."""
    if len(own) == 0:
        return np.zeros(0, np.bool_)
    behind = firsts + 1
    alike: NDArray[np.bool_] = scores.take(behind, mode="clip") == own
    return alike & (behind < ends)


def _rank_ties_in_order(
    ranks: dict[str, int], ranking: Mapping[str, float], scores: NDArray[np.float64]
) -> None:
    """Do as `rank_ties` where chunks of one score stand together, in a slice of the ranking.

    Args:
        ranks: Chunk id to the rank that the highest of its score has; is changed.
        ranking: Chunk ids, best first, with their scores.
        scores: The same scores.
    """
    chunk_ids = list(ranking)
    firsts = np.fromiter(ranks.values(), np.int64, len(ranks)) - 1
    n_not_lower = len(scores) - np.searchsorted(scores[::-1], scores[firsts], side="left")
    groups: dict[int, list[str]] = {}
    ends = n_not_lower.tolist()
    for (chunk_id, rank), end in zip(list(ranks.items()), ends, strict=True):
        if end > rank:
            if rank not in groups:
                groups[rank] = sorted(chunk_ids[rank - 1 : end])
            ranks[chunk_id] = end - bisect_left(groups[rank], chunk_id)


def _scores_of_judged(
    judgments: list[Mapping[str, int]], scores: list[Mapping[str, float]]
) -> list[float]:
    """Return the scores of all judged chunks; NaN for those that were not retrieved."""
    return [
        by_chunk.get(chunk_id, nan)
        for judged, by_chunk in zip(judgments, scores, strict=True)
        for chunk_id in judged
    ]


def _pack(kind: str, buffer: bytearray, at: int, values: list[Any]) -> int:
    """Write numbers: faster than numpy does it, and it takes no text for a number.

    Returns:
        The byte behind the last one.

    Raises:
        struct.error: A value is no number, or no whole one where that is asked for.
    """
    struct.pack_into(f"{len(values)}{kind}", buffer, at, *values)
    return at + 8 * len(values)


def _values(mappings: list[Any]) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, mappings))


def _first_not_above(
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    """For each value find the first of the falling `scores[start:end]` that is not above it."""
    places = starts.copy()
    for bit in reversed(range(int((ends - starts).max(initial=0)).bit_length())):
        last = places + ((1 << bit) - 1)
        # Beyond the end of the query anything may be read, as it is not looked at.
        all_above = (scores.take(last, mode="clip") > values) & (last < ends)
        places += all_above.astype(np.int64) << bit
    return places


class ArrayHits:
    """Hits as arrays."""

    __slots__ = ("at", "counts", "grades", "indices", "lowest", "ranks")

    def __init__(self, columns: "ArrayColumns", lowest: int) -> None:
        self.lowest = lowest
        self.indices: NDArray[np.int64] = np.flatnonzero(columns.grades >= lowest)
        self.at: NDArray[np.int32] = columns.at[self.indices]
        self.ranks: NDArray[np.int32] = columns.all_ranks[self.indices]
        self.grades: NDArray[np.int16] = columns.grades[self.indices]
        self.counts: dict[int | None, NDArray[np.int64]] = {}
        """What `ArrayColumns.count` found, by cutoff: P@k, R@k and Success@k share it."""


class ArrayColumns:
    """Columns as arrays."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.n_queries = len(table.query_ids)
        self.n_retrieved: Column = np.frombuffer(table.n_retrieved, np.int64)
        self.at = np.frombuffer(table.at, np.int32)
        self.all_ranks = np.frombuffer(table.ranks, np.int32)
        self.grades = np.frombuffer(table.grades, np.int16)
        self._hits: dict[int, ArrayHits] = {}
        self._n_judged: dict[int, NDArray[np.int64]] = {}

    def hits(self, lowest: int) -> ArrayHits:
        """See `Columns`."""
        if lowest in self._hits:
            return self._hits[lowest]
        found = ArrayHits(self, lowest)
        if len(self.grades) <= _MOST_HELD:
            self._hits[lowest] = found
        return found

    def each(self, function: Callable[..., Any], *columns: Column) -> Column:
        """See `Columns`."""
        return function(*columns)

    def least(self, column: Column, other: Column | int) -> Column:
        """See `Columns`."""
        return np.minimum(column, other)

    def ratio(self, part: Column, whole: Column) -> Column:
        """See `Columns`."""
        return np.divide(part, whole, out=np.zeros(len(part)), where=whole != 0)

    def n_judged(self, lowest: int) -> Column:
        """See `Columns`."""
        if lowest not in self._n_judged:
            parts = _some_at_a_time(np.diff(self._judged_starts))
            counts = [self._n_judged_of(queries, lowest) for queries in parts]
            self._n_judged[lowest] = np.concatenate(counts)
        return self._n_judged[lowest]

    def _n_judged_of(self, queries: slice, lowest: int) -> NDArray[np.int64]:
        starts = self._judged_starts[queries.start : queries.stop + 1]
        is_counted = self._judged[starts[0] : starts[-1]] >= lowest
        above = np.concatenate([[0], np.cumsum(is_counted)])
        counts: NDArray[np.int64] = np.diff(above[starts - starts[0]])
        return counts

    def ideal(
        self, gain: Callable[[int], float], discount: Callable[[int], float], cutoff: int | None
    ) -> Column:
        """See `Columns`."""
        # Grades come highest first, so that those above 0 are the first ones.
        counts = self.n_judged(1) if cutoff is None else np.minimum(self.n_judged(1), cutoff)
        parts = _some_at_a_time(counts)
        return np.concatenate([self._ideal(gain, discount, of, counts[of]) for of in parts])

    def _ideal(
        self,
        gain: Callable[[int], float],
        discount: Callable[[int], float],
        queries: slice,
        counts: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return the ideals of some queries, of which so many judged chunks count."""
        at = np.repeat(np.arange(len(counts)), counts)
        ranks = np.arange(1, len(at) + 1) - np.repeat(np.cumsum(counts) - counts, counts)
        grades = self._judged[self._judged_starts[queries][at] + ranks - 1]
        terms = _looked_up(gain, grades) / _looked_up(discount, ranks)
        return _totals(at, terms, len(counts))

    def of_query(self, column: Column, hits: ArrayHits) -> Column:
        """See `Columns`."""
        return column[hits.at]

    def count(self, hits: ArrayHits, cutoff: Column | int | None) -> Column:
        """See `Columns`."""
        if cutoff is not None and not isinstance(cutoff, int):
            return np.bincount(hits.at[hits.ranks <= cutoff[hits.at]], minlength=self.n_queries)
        if cutoff not in hits.counts:
            at = hits.at if cutoff is None else hits.at[hits.ranks <= cutoff]
            hits.counts[cutoff] = np.bincount(at, minlength=self.n_queries)
        return hits.counts[cutoff]

    def total(self, hits: ArrayHits, terms: Column, cutoff: int | None) -> Column:
        """See `Columns`."""
        if cutoff is None:
            return _totals(hits.at, terms, self.n_queries)
        near = hits.ranks <= cutoff
        return _totals(hits.at[near], terms[near], self.n_queries)

    def first(self, hits: ArrayHits) -> Column:
        """See `Columns`."""
        found = np.zeros(self.n_queries, np.int64)
        found[hits.at[::-1]] = hits.ranks[::-1]  # The last one written is the first of a query.
        return found

    def ranks(self, hits: ArrayHits) -> Column:
        """See `Columns`."""
        return hits.ranks

    def at_rank(self, function: Callable[[int], float], hits: ArrayHits) -> Column:
        """See `Columns`."""
        return _looked_up(function, hits.ranks)

    def at_grade(self, function: Callable[[int], float], hits: ArrayHits) -> Column:
        """See `Columns`."""
        return _looked_up(function, hits.grades)

    def seen(self, hits: ArrayHits, lowest: int | None) -> Column:
        """See `Columns`."""
        if lowest == hits.lowest:
            places = np.arange(1, len(hits.at) + 1)
            return places - np.searchsorted(hits.at, hits.at)
        if lowest is None:
            return hits.indices + 1 - self._starts[hits.at]
        above = np.concatenate([[0], np.cumsum(self.grades >= lowest)])
        return above[hits.indices + 1] - above[self._starts[hits.at]]

    def product_above(self, hits: ArrayHits, factors: Column) -> Column:
        """See `Columns`."""
        places = self.seen(hits, hits.lowest)
        products = np.ones(len(factors))
        for place in range(2, int(places.max(initial=1)) + 1):
            here = np.flatnonzero(places == place)
            products[here] = products[here - 1] * factors[here - 1]
        return products

    def listed(self, column: Column) -> Sequence[Any]:
        """See `Columns`."""
        return array(column.dtype.char, column.tobytes())

    @cached_property
    def _judged(self) -> NDArray[np.int16]:
        return np.frombuffer(self.table.judged, np.int16)

    @cached_property
    def _judged_starts(self) -> NDArray[np.int64]:
        return np.frombuffer(self.table.judged_starts, np.int64)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.frombuffer(self.table.starts, np.int64)


def _some_at_a_time(counts: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of the queries, each of not many more judged chunks than are held.

    Args:
        counts: Judged chunks of each query.
    """
    cuts = np.flatnonzero(np.diff(np.cumsum(counts) // _MOST_HELD)) + 1
    return starmap(slice, pairwise([0, *cuts.tolist(), len(counts)]))


def _totals(
    at: NDArray[np.signedinteger], terms: NDArray[np.float64], n_queries: int
) -> NDArray[np.float64]:
    """Add terms one after the other, the order that `Columns` promises."""
    # Of no terms at all, bincount makes whole numbers.
    return np.bincount(at, terms, n_queries).astype(np.float64)


def _looked_up(
    function: Callable[[int], float], keys: NDArray[np.signedinteger]
) -> NDArray[np.float64]:
    if len(keys) == 0:
        return np.zeros(0)
    low, high = int(keys.min()), int(keys.max())
    if high - low > 4 * len(keys):
        distinct, inverse = np.unique(keys, return_inverse=True)
        return np.array(list(map(function, distinct.tolist())), np.float64)[inverse]
    of_each = np.array(list(map(function, range(low, high + 1))), np.float64)
    found: NDArray[np.float64] = of_each[keys - low]
    return found
