"""Ranks of a few rows among the scores of their queries, without ordering the others."""

from typing import Final

import numpy as np

from ragforge.files.scan.rows import Flags, Floats, Positions, Rows, Words
from ragforge.files.scan.tokens import in_byte_order

_PAIRS: Final = 1 << 18
"""Compared at once."""
_COMPARED: Final = 32
"""Up to so many tied rows, comparing them with all others is faster than sorting: measured from
a hundred to a hundred thousand rows."""


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
