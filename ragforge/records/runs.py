"""What retrievers returned."""

from typing import Annotated

from pydantic import Field

from ragforge.records.record import NonEmpty, Record


class Hit(Record):
    """One retrieved chunk. Higher scores rank first; ties are broken by id, descending."""

    chunk_id: NonEmpty
    score: float


class Ranking(Record):
    """What a retriever returned for one query, best first."""

    query_id: NonEmpty
    ranking: tuple[Hit, ...]
    latency_s: Annotated[float, Field(ge=0)] | None = None
