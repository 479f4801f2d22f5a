"""The records that cross a file or a stage: frozen, and closed to unknown fields."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Grade = Annotated[int, Field(strict=True, ge=0, le=3)]
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
    "temporal",
    "false_premise",
    "ambiguous",
    "keyword",
    "unanswerable",
]
Verdict = Literal["correct", "partial", "incorrect", "not_attempted"]
Stage = Literal["generate", "retrieve", "judge", "answer"]
FailureKind = Literal["invalid", "refused", "truncated", "filtered", "error"]
JudgeKind = Literal["llm", "baseline", "human", "rule"]
NonEmpty = Annotated[str, Field(min_length=1)]


class Record(BaseModel):
    """Base of all records: immutable, unknown fields refused, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Chunk(Record):
    """A passage of a document, the unit that is retrieved and judged."""

    chunk_id: NonEmpty
    doc_id: NonEmpty
    text: NonEmpty
    heading_path: tuple[str, ...] = ()
    """Titles of the sections around the chunk, outermost first."""
    start: Annotated[int, Field(ge=0)] = 0
    """Offset of the first character in the normalised document text, in code points."""
    end: Annotated[int, Field(ge=0)] = 0
    """Offset behind the last character; `document[start:end] == text`. 0 where unknown."""


class Evidence(Record):
    """A verbatim quote that holds the answer, or part of it."""

    doc_id: NonEmpty
    chunk_id: NonEmpty
    quote: NonEmpty
    start: Annotated[int, Field(ge=0)] | None = None
    end: Annotated[int, Field(ge=0)] | None = None
    """Offsets of the quote in the normalised document text; None where the chunk has none."""


class Provenance(Record):
    """Who made a record: enough to tell whether two records are comparable."""

    kind: JudgeKind
    model: str = ""
    prompt: str = ""
    prompt_sha256: str = ""
    call_key: str = ""
    """Key of the reply in the call store; "" where no call was made."""


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
    evidence: tuple[Evidence, ...] = ()
    source_chunk_ids: tuple[str, ...] = ()
    split: Literal["dev", "test"] | None = None
    status: Literal["accepted", "quarantined", "retired"] = "accepted"
    origin: Literal["synthetic", "human", "log"] = "synthetic"
    lineage: Provenance | None = None


class Judgment(Record):
    """A grade of one chunk for one query: 0 off topic, 1 same topic, 2 part of the answer, 3 all.

    `grade` is None where the judge failed; the pair then counts as unjudged, with bounds.
    """

    query_id: NonEmpty
    chunk_id: NonEmpty
    grade: Grade | None
    contains_answer: bool | None = None
    evidence: str = ""
    reasoning: str = ""
    source: Literal["judge", "human", "evidence", "carried"] = "judge"
    failure: FailureKind | None = None
    provenance: Provenance | None = None


class Hit(Record):
    """One retrieved chunk. Higher scores rank first; ties are broken by id, descending."""

    chunk_id: NonEmpty
    score: float


class Ranking(Record):
    """What a retriever returned for one query, best first."""

    query_id: NonEmpty
    ranking: tuple[Hit, ...]
    latency_s: Annotated[float, Field(ge=0)] | None = None


class Answer(Record):
    """What a RAG system answered, and the chunks it had in its context."""

    query_id: NonEmpty
    answer: str
    chunk_ids: tuple[str, ...] = ()


class AnswerGrade(Record):
    """How an answer compares with the expected one; None throughout where the judge failed."""

    query_id: NonEmpty
    verdict: Verdict | None
    score: Annotated[float, Field(ge=0, le=1)] | None
    has_hallucination: bool | None
    """Whether the answer claims what none of the retrieved chunks says; None if not checked."""
    explanation: str = ""
    failure: FailureKind | None = None
    provenance: Provenance | None = None


class Failure(Record):
    """A unit of work that gave no result. Never a value: the unit stays open."""

    what: Stage
    key: NonEmpty
    """The ids of the unit: `query_id`, `query_id/chunk_id`, `run/query_id` or `chunk_id`."""
    kind: FailureKind
    message: str
    raw: str = ""
    """The model's reply as it came."""
    call_keys: tuple[str, ...] = ()
    """Keys of the stored replies that were no use; forgotten when failed units are asked again."""
