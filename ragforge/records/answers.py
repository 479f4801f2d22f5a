"""Answers of RAG systems and their grades."""

from typing import Annotated, Any, Literal

from pydantic import Field, computed_field, model_validator

from ragforge.records.record import FailureKind, NonEmpty, Provenance, Record

Verdict = Literal["correct", "partial", "incorrect", "not_attempted"]
FactStatus = Literal["supported", "partial", "missing", "contradicted"]


class GivenGrade(Record):
    """A grade that came with an answer: somebody else's, whoever that was."""

    verdict: Verdict
    score: Annotated[float, Field(ge=0, le=1)] | None = None
    has_hallucination: bool | None = None
    explanation: str = ""
    provenance: Provenance
    """Which file it came in."""


class Answer(Record):
    """What a RAG system answered, and the chunks it had in its context."""

    query_id: NonEmpty
    answer: str
    chunk_ids: tuple[str, ...] = ()
    n_unknown_passages: Annotated[int, Field(ge=0)] = 0
    """Further passages in its context that are in no chunk."""
    latency_s: Annotated[float, Field(ge=0)] | None = None
    given: Annotated[GivenGrade | None, Field(exclude_if=lambda given: given is None)] = None
    """The grade that came with it; None where none did."""


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
