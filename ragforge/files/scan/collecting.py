"""From rows to hits: the judged rows are picked out, ranked and kept; the others are forgotten.

Ranks are of these few rows among the scores of their queries, without ordering the others.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import chain
from operator import itemgetter
from typing import Final

import numpy as np

from ragforge.files.scan.rows import Flags, Floats, Irregular, Positions, Rows, Words
from ragforge.files.scan.tokens import hash_texts, hash_words, in_byte_order, texts_of, words_of
from ragforge.measures.hit_table import JudgedHits, RunHits

_PAIRS: Final = 1 << 18
"""Compared at once."""
_COMPARED: Final = 32
"""Up to so many tied rows, comparing them with all others is faster than sorting: measured from
a hundred to a hundred thousand rows."""
_FILTER_BITS: Final = 16
_TWIN_BITS: Final = 32
_QUERY_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
Judgments = Mapping[str, int | None]
Qrels = Mapping[str, Judgments]
_EXAMPLES: Final = 4
_NO_JUDGMENTS: Final[Judgments] = {}


def ranks_of(rows: Rows, words: Words, wanted: Positions, queries: Positions) -> Positions:
    """Return the rank of some rows in the ranking of their query.

    The higher score comes first, of equal scores the larger id, in the order of UTF-8 bytes.

    Args:
        rows: The queries.
        words: The chunk ids of the rows.
        wanted: Numbers of rows, ascending.
        queries: The number of the query of each wanted row.
    """
    ranks = wanted - rows.firsts[queries] + 1
    unordered = _has_unordered(rows)[queries]
    if unordered.any():
        for query in sorted(set(queries[unordered].tolist())):
            chosen = slice(*queries.searchsorted([query, query + 1]).tolist())
            ranks[chosen] = _ranks_in(rows, words, query, wanted[chosen])
    return ranks


def scores_rise(rows: Rows) -> bool:
    """Whether a score is higher than the one before it, in the same query."""
    rises: Flags = rows.scores[1:] > rows.scores[:-1]
    rises[rows.firsts[1:] - 1] = False
    return bool(rises.any())


def falling_where_alike(scores: Floats, firsts: Positions) -> Floats:
    """Return scores, falling along the list in queries whose scores are all alike.

    Such scores order nothing, and the list does.

    Args:
        scores: Of all rows.
        firsts: The first row of each query.
    """
    differ = np.zeros(len(firsts), bool)
    steps: Flags = scores[1:] != scores[:-1]
    steps[firsts[1:] - 1] = False
    differ[firsts.searchsorted(np.flatnonzero(steps), side="right") - 1] = True
    if differ.all():
        return scores
    are_alike = np.repeat(~differ, np.diff(firsts, append=len(scores)))
    return np.where(are_alike, -np.arange(len(scores), dtype=np.float64), scores)


def _has_unordered(rows: Rows) -> Flags:
    """Return for each query whether a score is not lower than the one before it."""
    unordered: Flags = ~(rows.scores[1:] < rows.scores[:-1])
    unordered[rows.firsts[1:] - 1] = False
    flags = np.zeros(len(rows.firsts), bool)
    places = np.flatnonzero(unordered)
    if len(places):
        flags[rows.firsts.searchsorted(places, side="right") - 1] = True
    return flags


def _ranks_in(rows: Rows, words: Words, query: int, wanted: Positions) -> Positions:
    first = int(rows.firsts[query])
    is_last = query + 1 == len(rows.firsts)
    behind = len(rows.scores) if is_last else int(rows.firsts[query + 1])
    scores = rows.scores[first:behind]
    ascending = np.sort(scores)
    places = wanted - first
    own = scores[places]
    n_not_higher = ascending.searchsorted(own, side="right")
    ranks = len(scores) - n_not_higher + 1
    tied = n_not_higher - ascending.searchsorted(own) > 1
    if tied.any():
        ids = in_byte_order(words[first:behind])
        ranks[tied] += _count_ahead(scores, ids, places[tied])
    return ranks


def _count_ahead(scores: Floats, ids: Words, places: Positions) -> Positions:
    """Count for some rows of a query those that have the same score and a larger id."""
    count = _count_by_comparing if len(places) <= _COMPARED else _count_by_sorting
    return count(scores, ids, places)


def _count_by_comparing(scores: Floats, ids: Words, places: Positions) -> Positions:
    n_ahead = np.zeros(len(places), np.int64)
    step = max(_PAIRS // len(scores), 1)
    for at in range(0, len(places), step):
        chosen = places[at : at + step, np.newaxis]
        alike = scores == scores[chosen]
        ahead = np.zeros_like(alike)
        for column in ids.T:
            own = column[chosen]
            ahead |= alike & (column > own)
            alike &= column == own
        n_ahead[at : at + step] = np.count_nonzero(ahead, axis=1)
    return n_ahead


def _count_by_sorting(scores: Floats, ids: Words, places: Positions) -> Positions:
    own = scores[places]
    tied = np.flatnonzero(np.isin(scores, own))
    # The last key decides first.
    order = tied[np.lexsort((*ids[tied].T[::-1], scores[tied]))]
    positions = np.empty(len(scores), np.int64)
    positions[order] = np.arange(len(order))
    ends = scores[order].searchsorted(own, side="right")
    return ends - 1 - positions[places]


class _Lookup:
    """Finds rows by the hashes of their chunk ids; it keeps one table for all parts of a run."""

    def __init__(self) -> None:
        """Make the table."""
        self._table: Flags = np.zeros(1 << _FILTER_BITS, bool)

    def find(
        self, hashes: Words, firsts: Positions, chunk_ids: Sequence[Collection[str]]
    ) -> Positions:
        """Return the numbers of the rows that may hold one of the chunks looked for, ascending.

        Hardly one of them holds another chunk of the same hash.

        Args:
            hashes: Of the chunk ids of the rows.
            firsts: The first row of each query.
            chunk_ids: What is looked for in each query.
        """
        wanted = hash_texts(list(chain.from_iterable(chunk_ids)))
        queries = np.repeat(np.arange(len(firsts)), np.fromiter(map(len, chunk_ids), np.int64))
        slots = _slots(wanted)
        self._table[slots] = True
        rows = np.flatnonzero(self._table.take(_slots(hashes), mode="clip"))
        self._table[slots] = False
        if not len(rows):
            return rows
        keys = np.sort(_keys(wanted, queries))
        found = _keys(hashes[rows], firsts.searchsorted(rows, side="right") - 1)
        alike: Flags = keys.take(keys.searchsorted(found), mode="clip") == found
        return rows[alike]


def _refuse_repeated(hashes: Words, firsts: Positions) -> None:
    """Refuse queries in which two rows have the same hash, as those of one chunk have.

    Half of each hash is compared first: sorting 32 bits takes half the time of sorting 64.

    Raises:
        Irregular: There are such rows.
    """
    bits = (len(firsts) - 1).bit_length()
    if bits >= _TWIN_BITS:
        raise Irregular
    queries = np.arange(len(firsts), dtype=np.uint32) << np.uint32(_TWIN_BITS - bits)
    counts = np.diff(firsts, append=len(hashes))
    keys = (hashes >> np.uint64(_TWIN_BITS + bits)).astype(np.uint32)
    keys |= np.repeat(queries, counts)
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        rows = np.flatnonzero(np.isin(keys, repeated))
        whole = hashes[rows]
        order = np.lexsort((whole, keys[rows]))
        alike = (np.diff(whole[order]) == 0) & (np.diff(keys[rows][order]) == 0)
        if alike.any():
            raise Irregular


def _slots(hashes: Words) -> Positions:
    return (hashes >> np.uint64(64 - _FILTER_BITS)).view(np.int64)


def _keys(hashes: Words, queries: Positions) -> Words:
    return hashes + queries.view(np.uint64) * _QUERY_MULTIPLIER


class Collector:
    """Takes the rows of a part of a run and keeps its hits.

    Attributes:
        by_query: The hits of the queries that the qrels have.
        n_others: Queries that the qrels lack.
        smallest_others: The smallest of their ids.
        example: The smallest id of a query that is in the qrels with a judgment, and the smallest
            ids of its chunks; None where there is none.
        latencies_s: By query id, of those for which the file says it.
    """

    def __init__(self, qrels: Qrels) -> None:
        """Start with no query."""
        self.by_query: dict[str, JudgedHits] = {}
        self.n_others = 0
        self.smallest_others: list[str] = []
        self.example: tuple[str, list[str]] | None = None
        self.latencies_s: dict[str, float] = {}
        self._qrels = qrels
        self._lookup = _Lookup()
        self._query_hashes: list[Positions] = []

    def add(self, rows: Rows) -> None:
        """Take whole queries.

        Raises:
            Irregular: A query has come before, or lists a chunk twice, or an id is too long.
        """
        self._add_queries([*rows.query_ids, *rows.empty_query_ids])
        self.latencies_s.update(rows.latencies_s)
        for query_id in rows.empty_query_ids:
            if query_id in self._qrels:
                self.by_query[query_id] = JudgedHits(0, [], [])
        if rows.query_ids:
            self._add_rows(rows)

    def _add_rows(self, rows: Rows) -> None:
        words = words_of(rows.array, rows.id_starts, rows.id_ends)
        hashes = hash_words(words)
        _refuse_repeated(hashes, rows.firsts)
        ends = [*rows.firsts[1:].tolist(), len(rows.scores)]
        found = self._judged_ranks(rows, words, hashes)
        first = 0
        for query_id, end in zip(rows.query_ids, ends, strict=True):
            if query_id in self._qrels:
                hits = sorted(found.get(query_id, ()), key=itemgetter(0))
                self.by_query[query_id] = JudgedHits(
                    end - first, [rank for rank, _ in hits], [grade for _, grade in hits]
                )
            first = end
        self._keep_example(rows, words, ends)

    def query_hashes(self) -> Positions:
        """Return a hash of the id of each query."""
        return np.concatenate([np.zeros(0, np.int64), *self._query_hashes])

    def _add_queries(self, query_ids: list[str]) -> None:
        if len(set(query_ids)) < len(query_ids) or not self.by_query.keys().isdisjoint(query_ids):
            raise Irregular
        self._query_hashes.append(np.fromiter(map(hash, query_ids), np.int64, len(query_ids)))
        others = [query_id for query_id in query_ids if query_id not in self._qrels]
        self.n_others += len(others)
        self.smallest_others = nsmallest(_EXAMPLES, [*self.smallest_others, *others])

    def _judged_ranks(
        self, rows: Rows, words: Words, hashes: Words
    ) -> dict[str, list[tuple[int, int | None]]]:
        """Return rank and grade of the judged chunks by query, where there are any."""
        judgments = [self._qrels.get(query_id, _NO_JUDGMENTS) for query_id in rows.query_ids]
        wanted = self._lookup.find(hashes, rows.firsts, judgments)
        queries = rows.firsts.searchsorted(wanted, side="right") - 1
        ranks = ranks_of(rows, words, wanted, queries)
        ranked: dict[str, list[tuple[int, int | None]]] = {}
        for query, rank, chunk_id in zip(
            queries.tolist(), ranks.tolist(), texts_of(words[wanted]), strict=True
        ):
            judged = judgments[query]
            if chunk_id in judged:
                ranked.setdefault(rows.query_ids[query], []).append((rank, judged[chunk_id]))
        return ranked

    def _keep_example(self, rows: Rows, words: Words, ends: list[int]) -> None:
        smallest = min((q for q in rows.query_ids if self._qrels.get(q)), default=None)
        if smallest is not None and (self.example is None or smallest < self.example[0]):
            query = rows.query_ids.index(smallest)
            chunk_ids = texts_of(words[int(rows.firsts[query]) : ends[query]])
            self.example = (smallest, nsmallest(_EXAMPLES, chunk_ids))


def merged(collectors: Iterable[Collector]) -> RunHits:
    """Return the hits of a run from those of its parts, in their order.

    Raises:
        Irregular: A query is in two parts, or there is no query at all.
    """
    parts = list(collectors)
    hashes = np.sort(np.concatenate([part.query_hashes() for part in parts]))
    if not len(hashes) or (hashes[1:] == hashes[:-1]).any():
        raise Irregular
    by_query: dict[str, JudgedHits] = {}
    for part in parts:
        by_query.update(part.by_query)
    others = [query_id for part in parts for query_id in part.smallest_others]
    examples = [part.example for part in parts if part.example is not None]
    return RunHits(
        by_query,
        sum(part.n_others for part in parts),
        tuple(nsmallest(_EXAMPLES, others)),
        min(examples, default=None),
    )
