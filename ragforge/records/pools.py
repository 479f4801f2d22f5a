"""Which chunks are judged for a query, and which probes found them."""

from typing import Annotated

from pydantic import Field

from ragforge.records.record import NonEmpty, Record


class PoolEntry(Record):
    """A chunk in a query's pool; a row of `pool.jsonl`."""

    query_id: NonEmpty
    chunk_id: NonEmpty
    probes: dict[str, Annotated[int, Field(ge=1)]]
    """Name of each probe that found it, such as `bm25:query`, to the rank it gave it, from 1."""
