"""The records that cross a file or a stage: frozen, and closed to unknown fields."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator

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
FactStatus = Literal["supported", "partial", "missing", "contradicted"]
Stage = Literal["generate", "retrieve", "judge", "ask", "facts", "answer", "ground", "audit"]
FailureKind = Literal["invalid", "refused", "truncated", "filtered", "error"]
JudgeKind = Literal["llm", "baseline", "human", "rule"]
Expectation = Literal["unchanged", "not raised", "lowered", "not relevant"]
"""What the grade of a sound judge does under an attack; not relevant is a grade below 2."""
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
    """Key of the reply in the call store; "" where no call was made, or several were."""
    protocol: str = ""
    """How the model was asked where it was not by one call with one reply, such as "votes 5"."""


class Fact(Record):
    """A statement that an answer to a query has to make (vital), or may well make (okay)."""

    fact_id: NonEmpty
    text: NonEmpty
    importance: Literal["vital", "okay"] = "vital"


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
    status: Literal["accepted", "quarantined", "retired"] = "accepted"
    origin: Literal["synthetic", "human", "log"] = "synthetic"
    lineage: Provenance | None = None


class Vote(Record):
    """One of several grades that a judgment rests on; `grade` is None where it failed."""

    model: str
    grade: Grade | None
    failure: FailureKind | None = None
    vote: Annotated[int, Field(ge=0)] = 0
    """Which of several replies of this model."""
    permutation: Annotated[int, Field(ge=0)] = 0
    """Which order of the passages shown together."""
    position: Annotated[int, Field(ge=0)] | None = None
    """Place among the passages shown together, from 0; None where it was shown alone."""
    grade_mean: Annotated[float, Field(ge=0, le=3)] | None = None
    """Grade weighted by the probabilities the model gave; None where it gave none."""
    call_key: str = ""


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
    grade_mean: Annotated[float, Field(ge=0, le=3)] | None = None
    """Mean of the votes, or grade weighted by the model's probabilities; None where neither is."""
    entropy_bits: Annotated[float, Field(ge=0, le=2)] | None = None
    """How undecided the votes or probabilities are: 0 for one grade, 2 for all four alike."""
    votes: tuple[Vote, ...] = ()
    """All of them; none where one reply is all there was."""
    flags: tuple[str, ...] = ()
    """What is suspicious in the chunk's text; it did not change the grade."""
    copied_from: str = ""
    """Id of the chunk with the same text that was judged in this one's place; "" where none was."""
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
    n_unknown_passages: Annotated[int, Field(ge=0)] = 0
    """Further passages in its context that are in no chunk."""
    latency_s: Annotated[float, Field(ge=0)] | None = None


class FactVerdict(Record):
    """What an answer says of one fact."""

    fact_id: NonEmpty
    status: FactStatus
    quote: str = ""
    """The answer's own words; "" where the fact is missing."""


class Claim(Record):
    """A statement of an answer, held against the chunks the answer was made from."""

    text: NonEmpty
    """The answer's own words."""
    is_supported: bool
    quote: str = ""
    """The words of a chunk that say it; "" where none does."""
    chunk_ids: tuple[str, ...] = ()
    """The chunks that say it, the quoted one first; empty where they were not told apart."""


class AnswerGrade(Record):
    """How an answer compares with the expected one; None throughout where the judge failed."""

    query_id: NonEmpty
    verdict: Verdict | None
    score: Annotated[float, Field(ge=0, le=1)] | None
    has_hallucination: bool | None
    """Whether the answer claims what none of the retrieved chunks says; None if not checked."""
    explanation: str = ""
    strict_score: Annotated[float, Field(ge=0, le=1)] | None = None
    """The score if facts that are said in part counted as missing; None where facts were not."""
    facts: tuple[FactVerdict, ...] = ()
    claims: tuple[Claim, ...] = ()
    """What the answer says beyond the facts."""
    rule: str = ""
    """The rule that decided without a judge, such as "exact match"; "" where a judge did."""
    failure: FailureKind | None = None
    provenance: Provenance | None = None

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def is_correct(self) -> bool | None:
        """Whether the verdict is `correct`; never true together with `is_partially_correct`."""
        return None if self.verdict is None else self.verdict == "correct"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_partially_correct(self) -> bool | None:
        """Whether the verdict is `partial`."""
        return None if self.verdict is None else self.verdict == "partial"

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, given: Any) -> Any:  # noqa: ANN401  # anything may be given
        """Pass over what files hold of the fields that follow from the verdict."""
        if not isinstance(given, dict):
            return given
        derived = ("is_correct", "is_partially_correct")
        return {name: value for name, value in given.items() if name not in derived}


class Citation(Record):
    """A chunk that an answer cites for what it says."""

    sentence: str
    """What it is cited for, marks of citations left out."""
    chunk_id: NonEmpty
    """Of the chunk; what the answer cites where that is not in its context."""
    status: Literal["supports", "does not support", "not in the context"]


class Grounding(Record):
    """Whether an answer says only what its context says; there is no reference to compare with.

    `faithfulness` is None where a rule says why there is nothing to check, or the judge failed.
    """

    query_id: NonEmpty
    is_grounded: bool | None
    """Whether every claim is supported."""
    faithfulness: Annotated[float, Field(ge=0, le=1)] | None
    """Share of the claims that a chunk of the context supports."""
    claims: tuple[Claim, ...] = ()
    unclaimed: tuple[str, ...] = ()
    """The answer's words that claim nothing, as the judge sees it."""
    citations: tuple[Citation, ...] = ()
    """Those of sentences that claim something, and those that lead nowhere."""
    citation_precision: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the citations that support their sentence; None where there are none."""
    citation_recall: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of the sentences with claims whose claims are all supported by chunks cited for them;
    None where nothing is cited or claimed."""
    rule: Literal["", "nothing said", "abstains", "no context", "nothing claimed"] = ""
    """Why there is nothing to check; only "nothing claimed" is for a judge to find."""
    flags: tuple[str, ...] = ()
    """What is suspicious in the answer and its context; it did not change what was found."""
    failure: FailureKind | None = None
    provenance: Provenance | None = None


class AuditRate(Record):
    """A mean over queries with its 95 % interval, which resamples queries, and its bounds.

    Each query counts alike, with the mean over its pairs. Failures are in the bounds alone.
    """

    mean: float | None
    """None where no attacked pair has a grade."""
    low: float | None
    high: float | None
    """Ends of the interval; None with fewer than two queries, which tell nothing about others."""
    bound_low: float | None
    bound_high: float | None
    """The mean if every failure had come out lowest, and highest; None where there is no pair."""


class AuditExample(Record):
    """A pair on which a judge did what a sound one would not."""

    query_id: NonEmpty
    chunk_id: NonEmpty
    before: Grade
    after: Grade


class AttackFindings(Record):
    """What one kind of attack did to the grades of a judge."""

    attack: NonEmpty
    expects: Expectation
    n_pairs: Annotated[int, Field(ge=0)]
    """Pairs it was tried on; only such as have a plain grade that it could change."""
    n_queries: Annotated[int, Field(ge=0)]
    n_failed: Annotated[int, Field(ge=0)]
    """Pairs whose attacked text got no grade: neither flipped nor held."""
    swayed: AuditRate
    """Share of pairs on which the judge did not do what `expects` says."""
    flipped: AuditRate
    """Share whose grade changed, be that right or wrong."""
    raised: AuditRate
    """Share whose grade rose."""
    crossed: AuditRate
    """Share that changed sides between below grade 2 and grade 2 or above."""
    shift: AuditRate
    """Attacked grade less plain grade, -3 to 3."""
    worst: tuple[AuditExample, ...] = ()
    """Of the swayed pairs those whose grade moved furthest, at most five."""


class JudgeAudit(Record):
    """How a judge took texts that somebody tampered with; the contents of `judge_audit.json`."""

    judge: Provenance
    temperature: float | None
    """At which it was asked; None for one that is no model."""
    seed: int
    """Decides the sample and every draw of the attacks."""
    n_pairs: Annotated[int, Field(ge=0)]
    """Pairs in the sample."""
    n_queries: Annotated[int, Field(ge=0)]
    grades: Annotated[tuple[int, ...], Field(min_length=4, max_length=4)]
    """How many of the sample were plainly given grade 0, 1, 2 and 3."""
    n_plain: Annotated[int, Field(ge=0)]
    """Texts that were judged as they are: the sample, and the passages that replace or carry."""
    n_plain_failed: Annotated[int, Field(ge=0)]
    """Of these, how many got no grade; they are attacked no further."""
    attacks: tuple[AttackFindings, ...]


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
