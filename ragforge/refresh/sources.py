"""The chunks that queries were made of: followed where they moved, let go where they are gone."""

from collections.abc import Iterable
from dataclasses import replace

from ragforge.records import Query
from ragforge.refresh.corpus.diff import CorpusDiff
from ragforge.refresh.grades.moved_chunks import MovedChunks, find_moved
from ragforge.refresh.items.settled import SettledItem


def with_sources(items: Iterable[SettledItem], diff: CorpusDiff) -> list[SettledItem]:
    """Return the items of which a source chunk is gone, with what they have of sources now.

    A chunk that reads the same under another id goes by that; one that does not is left out, so
    that a query may have none. That is no news of the query: what it asks and what proves it are as
    they were. The sources of a query with quotes are the chunks of these, which follow the quotes.

    Args:
        items: As they are settled.
        diff: What changed in the corpus.
    """
    named = [item for item in items if item.query.source_chunk_ids and _is_in_use(item.query)]
    wanted = {one for item in named for one in item.query.source_chunk_ids}
    if not wanted:
        return []
    moves = find_moved(diff, wanted)
    return [
        replace(item, query=_placed(item.query, moves))
        for item in named
        if not moves.gone.isdisjoint(item.query.source_chunk_ids)
    ]


def _is_in_use(query: Query) -> bool:
    return query.status == "accepted" or (query.status != "retired" and not query.evidence)


def _placed(query: Query, moves: MovedChunks) -> Query:
    """Return a query with one place of each chunk that is there: one text is one source."""
    places = (moves.of(chunk_id) for chunk_id in query.source_chunk_ids)
    now = tuple(dict.fromkeys(of[0] for of in places if of))
    return query.model_copy(update={"source_chunk_ids": now})
