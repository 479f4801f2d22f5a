"""What generating a set came to; the contents of `generation.json`."""

from typing import Annotated

from pydantic import Field

from ragforge.records.queries import Difficulty, QueryType
from ragforge.records.record import NonEmpty, Record

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


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


class FunnelStep(Record):
    """One step on the way from a plan to accepted queries."""

    name: NonEmpty
    unit: NonEmpty
    """What is counted: slots, candidates or queries."""
    n: Count
    """How many came to this step."""
    n_passed: Count
    low: Share | None
    high: Share | None
    """Wilson interval of the share that passed, 95 %; None where nothing came."""
    reasons: dict[str, Count]
    """Code of each reason to stop, to how many it stopped."""


class ShareRow(Record):
    """How many queries of a kind there are, against the plan."""

    margin: NonEmpty
    """type, difficulty, persona, language or group."""
    name: str
    target: Share | None
    """Share that was wanted; None where the plan has no say."""
    n: Count
    share: Share


class Spread(Record):
    """Quartiles of a figure over queries."""

    n: Count
    q1: float
    median: float
    q3: float


class Coverage(Record):
    """How much of a corpus the queries touch."""

    total: Count
    covered: Count
    uncovered: dict[str, Count]
    """Reason to how many were left out for it."""
    examples: dict[str, tuple[str, ...]]
    """Reason to some of their ids."""


class GenerationReport(Record):
    """What generating a set came to."""

    n_wanted: Count
    n_accepted: Count
    funnel: tuple[FunnelStep, ...]
    documents: Coverage
    chunks: Coverage
    shares: tuple[ShareRow, ...]
    variation: dict[str, Share]
    """Margin to the total variation between the shares wanted and got: 0 as planned, 1 disjoint."""
    n_duplicates: Count
    """Candidates stopped because the set has such a query."""
    overlap: Spread | None
    """Share of the content words of a query that stand in its chunk."""
    query_words: Spread | None
    real_overlap: float
    """Median overlap of real queries with the passage that answers them."""
    real_words: Spread | None
    """Length of the real queries that were given as a model; None where none were."""
    closed_book: dict[str, Count]
    agreement: dict[str, Count]
    evidence_rank: dict[str, Count]
    """Best rank of the evidence by BM25: 1, 2-3, 4-10, below."""
    difficulty: dict[str, dict[str, Count]]
    """Declared difficulty to measured difficulty to queries."""
    grades: dict[str, Count]
    splits: dict[str, Count]
    relevant_per_query: float | None
    """Mean number of chunks of grade >= 2; None where no pool was judged."""
    completeness: Share | None
    completeness_low: Share | None
    completeness_high: Share | None
    """Share of the relevant chunks that the pools are estimated to hold, with its interval."""
