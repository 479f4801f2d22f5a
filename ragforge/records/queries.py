"""Queries, how they were drawn, selected and measured, and what generating them came to."""

import operator
from typing import Annotated, Literal

from ragforge.records.model import Field
from ragforge.records.record import Lineage, NonEmpty, Provenance, Record

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]

Draw = Literal["frequency", "rarity", "even"]
"""Which questions of a log are likelier drawn: those asked often, those asked seldom, or none."""

Difficulty = Literal["easy", "medium", "hard"]
QueryType = Literal[
    "fact",
    "definition",
    "procedure",
    "comparison",
    "why",
    "list",
    "troubleshooting",
    "multi_hop",
    "multi_hop_across",
    "two_in_one",
    "follow_up",
    "temporal",
    "false_premise",
    "ambiguous",
    "keyword",
    "unanswerable",
]
Behaviour = Literal["answer", "abstain", "correct_premise", "clarify"]
"""What a good system does: answer, say that the corpus does not tell, correct what the question
wrongly takes for granted, or ask which of several things is meant (or answer for each)."""
Gate = Literal[
    "self_contained", "independent_answer", "necessary_hops", "unanswerable", "premise", "ambiguity"
]
"""A check by a model that a generated query must pass."""


class RealQuery(Record):
    """A question that users asked, without anything about who asked it or when."""

    query: NonEmpty
    """In the spelling that is most frequent; e-mail addresses and long numbers are masked."""
    count: Annotated[int, Field(ge=1)] = 1
    """How often it was asked, with spellings that are nearly the same."""
    language: str = ""
    """As the log tells it; "" where it does not."""


class LogDraw(Record):
    """How a question of a log was drawn into a set."""

    batch: NonEmpty
    """What was drawn at once, such as a week: "2026-W47"."""
    log: NonEmpty
    """First 16 hex digits of a sha256 of what was asked in the log, and how often."""
    draw: Draw
    seed: Annotated[int, Field(ge=0)]
    wanted: Annotated[int, Field(ge=1)]
    """Questions that were to be drawn."""
    count: Annotated[int, Field(ge=1)]
    """How often it was asked in the log, with spellings that are nearly the same."""
    inclusion: Annotated[float, Field(gt=0, le=1)]
    """Probability with which the draw took it, among the questions that were not in the set."""
    share: Annotated[float, Field(gt=0, le=1)]
    """What these questions are of all that was asked in the log: what the batch stands for."""

    @property
    def weight(self) -> float:
        """How often it was asked for each time it could be drawn: weights a mean over traffic."""
        return self.count / self.inclusion


class Evidence(Record):
    """A verbatim quote that holds the answer, or part of it."""

    doc_id: NonEmpty
    chunk_id: NonEmpty
    quote: NonEmpty
    start: Annotated[int, Field(ge=0)] | None = None
    end: Annotated[int, Field(ge=0)] | None = None
    """Offsets of the quote in the normalised text of the file; None where the chunk has none."""
    prefix: str = ""
    suffix: str = ""
    """Up to 32 characters of the document before and after the quote, to tell equal quotes apart;
    cut at the ends of the chunk it was found in."""
    hop: Annotated[int, Field(ge=1)] = 1
    """Which step of the answer it holds; quotes of different hops are all needed."""


class Fact(Record):
    """A statement that an answer to a query has to make (vital), or may well make (okay)."""

    fact_id: NonEmpty
    text: NonEmpty
    importance: Literal["vital", "okay"] = "vital"


class Turn(Record):
    """What was said before a follow-up question."""

    role: Literal["user", "assistant"]
    text: NonEmpty


class GateResult(Record):
    """What a model said when it checked a query; unknown is no pass."""

    gate: Gate
    verdict: Literal["pass", "fail", "unknown"]
    reason: str = ""
    by: Provenance | None = None


class Measured(Record):
    """How hard a query turned out to be; labels, by which nothing is filtered."""

    bm25_rank: Annotated[int, Field(ge=1)] | None = None
    """Best rank of a chunk with evidence for the query; None where it is below `depth`."""
    dense_rank: Annotated[int, Field(ge=1)] | None = None
    depth: Annotated[int, Field(ge=0)] = 0
    """Ranks that were looked at; 0 where none were."""
    closed_book: Literal["solved", "not solved", "unknown"] = "unknown"
    """Whether a model answers without any text."""
    agreement: Literal["agrees", "in part", "differs", "unknown"] = "unknown"
    """Whether a model that sees the evidence alone gives the expected answer."""
    difficulty: Difficulty | None = None
    """From the rank and the agreement; None where they are not known."""


class Review(Record):
    """What a person decided about a query."""

    decision: Literal["approve", "edit", "reject"]
    by: NonEmpty
    note: str = ""
    random: bool = False
    """Whether it was drawn at random for review, so that it counts for the set's precision."""


class Pin(Record):
    """A person's word that a query is neither edited nor dropped by the tool."""

    by: NonEmpty
    note: str = ""


class Query(Record):
    """A question with what is known to be its true answer."""

    query_id: NonEmpty
    query: NonEmpty
    expected_answer: str | None = None
    difficulty: Difficulty | None = None
    type: QueryType | None = None
    persona: str | None = None
    language: str = "en"
    answerable: bool = True
    expected_behaviour: Behaviour = "answer"
    standalone: str = ""
    """What a follow-up question asks when it is put without what was said before; "" for others."""
    history: tuple[Turn, ...] = ()
    """What was said before a follow-up question."""
    category: str = ""
    """A person's own grouping, kept as it came."""
    facts: tuple[Fact, ...] = ()
    """What the expected answer comes to; drawn from it once, and open to a person's editing."""
    facts_by: Provenance | None = None
    """Who drew the facts; None where a person wrote them, or there are none."""
    facts_of: str = ""
    """From what they were drawn: the first 16 hex digits of the sha256 of the expected answer, ""
    where a person wrote them."""
    evidence: tuple[Evidence, ...] = ()
    source_chunk_ids: tuple[str, ...] = ()
    split: Literal["dev", "test"] | None = None
    split_before: Literal["dev", "test"] | None = None
    """The split that it left because its documents connect it with queries of the other one; it is
    in none since, and in no figure of either. None for all others."""
    status: Literal["accepted", "quarantined", "retired"] = "accepted"
    origin: Literal["synthetic", "human", "log"] = "synthetic"
    revision: Annotated[int, Field(ge=1)] = 1
    gates: tuple[GateResult, ...] = ()
    measured: Measured | None = None
    reviewed: Review | None = None
    pinned: Pin | None = None
    lineage: Lineage | None = None
    drawn: LogDraw | None = Field(default=None, exclude_if=lambda drawn: drawn is None)
    """How it was drawn from a log; None of any other query."""

    @property
    def asked(self) -> str:
        """What is retrieved and judged for: the question as it stands on its own."""
        return self.standalone or self.query


class ReviewEvent(Record):
    """A decision of a person, or its withdrawal; a line of `reviews.jsonl`, only ever added to."""

    at: NonEmpty
    """When, UTC, ISO 8601."""
    by: NonEmpty
    query_id: NonEmpty
    decision: Literal["approve", "edit", "reject", "pin", "undecided"]
    note: str = ""
    before: Query
    """As it stood until then: what it is again when its decisions are taken back."""


class Stratum(Record):
    """A part of the queries of a set, and how many of it were drawn."""

    stratum: NonEmpty
    n_queries: Annotated[int, Field(ge=1)]
    n_drawn: Annotated[int, Field(ge=0)]


class Selection(Record):
    """The queries that a run or answers were made for, or an evaluation was made on."""

    split: Literal["dev", "test"] | None = Field(
        default=None, exclude_if=lambda split: split is None
    )
    """Only its queries; None for those of all splits."""
    sample: Annotated[int, Field(ge=1)] | None = Field(
        default=None, exclude_if=lambda sample: sample is None
    )
    """How many were to be drawn; None where all were taken."""
    seed: Annotated[int, Field(ge=0)] = 0
    by: str = Field(default="", exclude_if=operator.not_)
    """The field of queries whose values are the strata; "" where there is none."""
    strata: tuple[Stratum, ...] = Field(default=(), exclude_if=operator.not_)
    """What was drawn from, sorted by name; () where nothing was drawn."""
    query_ids: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """Those drawn, sorted; recorded of runs and answers, so that they stay known where the set gets
    other queries."""

    @property
    def asked(self) -> tuple[object, ...]:
        """What was asked for, whatever there was to draw from."""
        return (self.split, self.sample, self.seed if self.sample else 0, self.by)

    @property
    def in_words(self) -> str:
        """How it is named in a sentence or a table, such as "sample 50, seed 7, by category"."""
        parts = [f"split {self.split}"] if self.split else []
        if self.sample:
            parts += [f"sample {self.sample}, seed {self.seed}"]
            parts += [f"by {self.by}"] if self.by else []
        return ", ".join(parts)

    @property
    def flags(self) -> str:
        """The flags that ask for it again."""
        parts = [f"--sample {self.sample} --seed {self.seed}"] if self.sample else []
        parts += [f"--by {self.by or 'none'}"] if self.sample else []
        parts += [f"--split {self.split}"] if self.split else []
        return " ".join(parts)


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
