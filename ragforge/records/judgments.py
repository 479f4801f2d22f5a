"""Rankings and answers of systems, the grades they were given, and where a grade comes from.

A grade may say nothing about quality: those of the offline baseline count shared words, and those
of `ragforge mock` are made up. Both show that things run, and neither which of two systems is
better. A quote that stands in a chunk is a fact, whichever rule cut the query out of the text; that
of a query that a mock made up is none.
"""

import operator
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

from ragforge.deferred import dataclass, hashlib
from ragforge.records.canaries import since_drift
from ragforge.records.model import Field, computed_field, model_validator
from ragforge.records.record import FailureKind, Grade, NonEmpty, Provenance, Record

_QUESTION_DIGITS: Final = 16

_RELEVANT: Final = 2
_NOT_RELEVANT: Final = 1
Level = Literal["chunk", "document"]
"""What a judgment is of: a chunk, or a whole document."""
Source = Literal["judge", "human", "evidence", "carried"]
Verdict = Literal["correct", "partial", "incorrect", "not_attempted"]
FactStatus = Literal["supported", "partial", "missing", "contradicted"]
Expectation = Literal["unchanged", "not raised", "lowered", "not relevant"]
"""What the grade of a sound judge does under an attack; not relevant is a grade below 2."""
JUDGED: Final = "judge"
"""Source of a grade that somebody, or a rule, gave after looking; also where it was carried on."""


class Hit(Record):
    """One retrieved chunk. Higher scores rank first; ties are broken by id, descending."""

    chunk_id: NonEmpty
    score: float


class Ranking(Record):
    """What a retriever returned for one query, best first."""

    query_id: NonEmpty
    ranking: tuple[Hit, ...]
    latency_s: Annotated[float, Field(ge=0)] | None = None
    query_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The first 16 digits of that of the question, as it was asked; "" where it is not known."""

    def for_question(self, asked: str) -> "Ranking":
        """Return it with what was asked."""
        return self.model_copy(update={"query_sha256": question_digest(asked)})


def expectation_digest(asked: str, expected_answer: str | None, *, answerable: bool = True) -> str:
    """Return what tells a question with what is expected from others under the same id."""
    refusal = "" if answerable else "\0not answerable"
    return question_digest(f"{asked}\0{expected_answer or ''}{refusal}")


def settled_verdict(verdict: Verdict, *, answerable: bool) -> Verdict:
    """Return what a verdict comes to: where there is no answer, to attempt none is correct."""
    return "correct" if verdict == "not_attempted" and not answerable else verdict


def question_digest(asked: str) -> str:
    """Return what tells a question from another one under the same id."""
    return hashlib.sha256(asked.encode()).hexdigest()[:_QUESTION_DIGITS]


def wording_digest(asked: str) -> str:
    """Return what tells the words of a question from others under the same id.

    Case, blanks and marks at the end make no other words.
    """
    return question_digest(" ".join(asked.casefold().split()).rstrip(" .?!"))


class PoolEntry(Record):
    """A chunk in a query's pool; a row of `pool.jsonl`."""

    query_id: NonEmpty
    chunk_id: NonEmpty
    probes: dict[str, Annotated[int, Field(ge=1)]]
    """Name of each probe that found it, such as `bm25:query`, to the rank it gave it, from 1."""


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


class QuoteGrade(Record):
    """A grade that a person gave to a quote, wherever it stands."""

    quote: NonEmpty
    grade: Grade
    again: Annotated[bool, Field(exclude_if=operator.not_)] = False
    """Whether the quote stands at an earlier place of the document too, whose chunks have the
    grade: they and this one are one thing to find."""


class Judgment(Record):
    """A grade of one chunk for one query: 0 off topic, 1 same topic, 2 part of the answer, 3 all.

    `grade` is None where the judge failed; the pair then counts as unjudged, with bounds. It is
    None, too, where people list a chunk as relevant and grade others: that is no failure.
    """

    query_id: NonEmpty
    chunk_id: NonEmpty
    """Where a whole document was judged, the id of the document."""
    level: Level = Field(default="chunk", exclude_if=lambda level: level == "chunk")
    grade: Grade | None
    contains_answer: bool | None = None
    evidence: str = ""
    reasoning: str = ""
    source: Source = "judge"
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
    relevant: Annotated[bool | None, Field(exclude_if=lambda value: value is None)] = None
    """Whether people list the chunk as relevant, where no threshold on the grades of the set says
    so: then this decides binary measures, and the grade, where there is one, the others."""
    quote_grades: Annotated[tuple[QuoteGrade, ...], Field(exclude_if=operator.not_)] = ()
    """What people gave to the quotes that the chunk holds, where that is not just `grade` for all
    of `evidence`: quotes that stand here in part, or several. They follow their quotes."""
    provenance: Provenance | None = None

    @property
    def is_failed(self) -> bool:
        """Whether nothing is known of the pair, though it was judged."""
        return self.grade is None and self.relevant is None

    @property
    def given_to_quotes(self) -> tuple[QuoteGrade, ...]:
        """What people gave to the quotes of the chunk, also to those that it holds in part."""
        if self.source != "human" or self.grade is None:
            return ()
        if self.quote_grades or not self.evidence:
            return self.quote_grades
        return (QuoteGrade(quote=self.evidence, grade=self.grade),)

    @property
    def only_repeats(self) -> bool:
        """Whether its grade is that of quotes which stand at earlier places of the document too."""
        given = self.quote_grades
        is_by_them = bool(given) and self.grade == max(one.grade for one in given)
        return is_by_them and all(one.again for one in given)

    @property
    def listed_grade(self) -> Grade | None:
        """The grade where it agrees with the list, else the nearest that does; None where failed.

        It is for what counts relevant chunks by grade 2 and above, such as pools; never for nDCG.
        """
        if self.relevant is None:
            return self.grade
        if self.relevant:
            return self.grade if self.grade is not None and self.grade >= _RELEVANT else _RELEVANT
        return self.grade if self.grade is None or self.grade < _RELEVANT else _NOT_RELEVANT


@dataclass(frozen=True, slots=True, eq=False)
class Grading:
    """What thousands of judgments say alike: all but their pair and words. Each is there once."""

    grade: Grade | None
    source: Source
    level: Level = "chunk"
    relevant: bool | None = None
    provenance: Provenance | None = None
    """Without the key of a call."""

    @property
    def is_failed(self) -> bool:
        """As of the judgments."""
        return self.grade is None and self.relevant is None

    @property
    def as_tuple(self) -> tuple[object, ...]:
        """All that it says."""
        return self.grade, self.source, self.level, self.relevant, self.provenance


JudgmentOrGrading: TypeAlias = Judgment | Grading
"""What is known of a pair, with words or without."""


def grading_of(judgment: Judgment) -> Grading:
    """Return what a judgment says but for its pair and words."""
    by = judgment.provenance
    who = by.model_copy(update={"call_key": ""}) if by is not None and by.call_key else by
    return Grading(judgment.grade, judgment.source, judgment.level, judgment.relevant, who)


class GivenGrade(Record):
    """A grade that came with an answer: somebody else's, whoever that was."""

    verdict: Verdict
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    has_hallucination: bool | None = None
    explanation: str = ""
    provenance: Provenance
    """Which file it came in."""

    def settled(self, *, answerable: bool) -> "GivenGrade":
        """Return the grade with the verdict that `settled_verdict` says, and the score of that."""
        verdict = settled_verdict(self.verdict, answerable=answerable)
        if verdict == self.verdict:
            return self
        score = None if self.score is None else 1.0
        return self.model_copy(update={"verdict": verdict, "score": score})


class Answer(Record):
    """What a RAG system answered, and the chunks it had in its context."""

    query_id: NonEmpty
    answer: str
    chunk_ids: tuple[str, ...] = ()
    n_unknown_passages: Annotated[int, Field(ge=0)] = 0
    """Further passages in its context that are in no chunk."""
    latency_s: Annotated[float, Field(ge=0)] | None = None
    cost_usd: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, exclude_if=lambda usd: usd is None)
    ] = None
    """What it cost, in US dollars; None where that is not known."""
    given: Annotated[GivenGrade | None, Field(exclude_if=lambda given: given is None)] = None
    """The grade that came with it; None where none did."""
    query_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The first 16 digits of that of the question that it answers; "" where it is not known."""


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
    expected_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The first 16 digits of that of the question and the expected answer that it was graded by,
    and of whether a refusal is expected; "" where it is not known."""
    facts_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The same of the facts that it was graded by; "" where it was by none, or none is known."""
    answered_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The same of the answer that was graded, with the chunks of its context; "" where it is not
    known."""
    context_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The same of the texts of these chunks; "" where they were not all known."""

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


LOCAL_MODEL_JUDGE: Final = "offline-minilm-"
"""How the name of the offline baseline begins where a local model judges relevance."""


@dataclass(frozen=True, slots=True)
class GradeOrigin:
    """Who gave a grade."""

    kind: str
    """A `JudgeKind`; "" where it is not recorded."""
    model: str = ""
    prompt: str = ""
    source: str = JUDGED
    """`judge`, `human`, or `evidence`: the chunk holds a quote of the query."""
    since: str = ""
    """The drift since which a judge is who it is; see `since_drift`."""

    @property
    def is_shared_words(self) -> bool:
        """Whether the offline baseline gave it, by the words that query and text share."""
        return self._is_of_baseline and not self.model.startswith(LOCAL_MODEL_JUDGE)

    @property
    def is_cosine(self) -> bool:
        """Whether the offline baseline gave it, by a local model."""
        return self._is_of_baseline and self.model.startswith(LOCAL_MODEL_JUDGE)

    @property
    def _is_of_baseline(self) -> bool:
        return self.kind == "baseline" and self.source != "evidence"

    @property
    def is_made_up(self) -> bool:
        """Whether `ragforge mock` gave it."""
        return self.kind == "mock"

    @property
    def says_nothing(self) -> bool:
        """Whether it says nothing about quality, so that no winner can rest on it."""
        return self._is_of_baseline or self.is_made_up


@lru_cache(maxsize=256)
def origin(kind: str, model: str, prompt: str, source: str, since: str = "") -> GradeOrigin:
    """Return one object for all grades of one origin."""
    if source == "human":
        return GradeOrigin("human", model, prompt, source)
    if source == "evidence":
        return GradeOrigin(kind, model, prompt, source)
    return GradeOrigin(kind, model, prompt, JUDGED, since)


def origin_of(graded: JudgmentOrGrading | AnswerGrade) -> GradeOrigin:
    """Return where a grade comes from."""
    source = JUDGED if isinstance(graded, AnswerGrade) else graded.source
    return origin_by(graded.provenance, source)


def origin_by(by: Provenance | None, source: str) -> GradeOrigin:
    """Return the origin of a grade with this provenance and source."""
    if by is None:
        return origin("", "", "", source)
    return origin(by.kind, by.model, by.prompt, source, since_drift(by.protocol))
