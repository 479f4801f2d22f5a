"""When nothing differs: two runs with the same rankings, whatever queries nobody asked.

Equal values are not enough. Two rankings that differ may do alike on these queries and not on
others, so that their difference has an interval (see `unseen`). Nor is the same top k enough for a
measure that looks no deeper: the rankings differ below it, so the systems differ, and on other
queries they may above it. Only the same chunks in the same order, in every query, are one system
as far as can be told: the difference is 0, and so are the ends of its interval.
"""

from collections.abc import Mapping, Sequence

from ragforge.measures.samples import Floats


def have_same_rankings(a: Mapping[str, Sequence[str]], b: Mapping[str, Sequence[str]]) -> bool:
    """Whether two runs rank the same chunks in the same order, for the same queries.

    Args:
        a: Chunk ids by query, best first, to their end.
        b: The other's.
    """
    return a.keys() == b.keys() and all(list(a[query_id]) == list(b[query_id]) for query_id in a)


def is_identity(found: Floats, *, same_rankings: bool) -> bool:
    """Whether differences are 0 because nothing differs; of fewer than two nothing can be told.

    Args:
        found: Differences per query, shape (n,).
        same_rankings: Whether the rankings are the same, as `have_same_rankings`.
    """
    return same_rankings and len(found) > 1 and not found.any()
