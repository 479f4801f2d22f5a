"""What generation plans, and what it turned away."""

from typing import Annotated

from pydantic import Field

from ragforge.records.queries import Difficulty, QueryType
from ragforge.records.record import NonEmpty, Record


class Slot(Record):
    """A query to be written: of which kind, about what; a row of `plan.jsonl`."""

    slot_id: NonEmpty
    """`CELL-ATTEMPT`, such as 000012-0: the cell of the quota, and which source is tried for it."""
    type: QueryType
    difficulty: Difficulty
    persona: str
    language: NonEmpty
    stratum: str
    """Document group, heading level and topic of the source."""
    chunk_ids: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    """What is shown to the writer, in the order of the hops: one chunk, or several."""
    doc_ids: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    """Of the chunks, in their order."""


class Rejected(Record):
    """A candidate that a gate stopped; a row of `rejected.jsonl`."""

    slot_id: NonEmpty
    place: Annotated[int, Field(ge=0)]
    """Among the candidates of its slot, from 0."""
    question: str
    answer: str
    code: NonEmpty
    """Of the gate: a rule's, or `GATE_fail` and `GATE_unknown` of a check by a model."""
    reason: str = ""
