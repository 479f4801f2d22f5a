"""What people say of answers."""

from typing import Annotated, Self

from ragforge.deferred import hashlib
from ragforge.records.judgments import FactVerdict, Verdict
from ragforge.records.model import Field, model_validator
from ragforge.records.record import NonEmpty, Record


class AnswerSample(Record):
    """Which answers people are asked to label; `answer_sample.json`.

    Queries are drawn, each with the answers of all systems, so that these are compared on the same.
    """

    seed: int
    systems: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    query_ids: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    """In the order in which they were drawn; a larger sample goes on behind them."""
    n_queries: Annotated[int, Field(ge=1)]
    """That have an answer of each system."""

    @property
    def probability(self) -> float:
        """That a query was drawn."""
        return min(len(self.query_ids) / self.n_queries, 1.0)


class AnswerLabel(Record):
    """What one person says of one drawn answer; a row of `answer_labels.jsonl`.

    Verdict and score follow from the facts, by the rule that a judge's follow by; where the query
    has none the person gives the verdict.
    """

    query_id: NonEmpty
    system: NonEmpty
    answer_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the answer as it was shown; see `answer_sha256`."""
    expected_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """What was expected when it was labelled, as of an `AnswerGrade`; "" where it is not known."""
    facts_sha256: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """The same of the facts that were ticked."""
    probability: Annotated[float, Field(gt=0, le=1)]
    """That the query was drawn."""
    labeller: NonEmpty
    verdict: Verdict | None
    """None where the labeller skipped the answer."""
    score: Annotated[float, Field(ge=0, le=1)] | None
    facts: tuple[FactVerdict, ...] = ()
    says_more: bool = False
    """Whether the answer also states something that is none of the facts."""
    skipped: bool = False
    seconds: Annotated[float, Field(ge=0)] | None = None
    """From the answer's being shown to the label; None where nobody measured."""
    at: str = ""
    """When, UTC, ISO 8601 with seconds; "" where it is not recorded."""

    @model_validator(mode="after")
    def _is_verdict_or_skip(self) -> Self:
        if self.skipped == (self.verdict is not None):
            raise ValueError("expected a verdict, or skipped: true with verdict: null")
        return self


def answer_sha256(answer: str) -> str:
    """Return what tells an answer from others of a system to a query."""
    return hashlib.sha256(answer.encode()).hexdigest()
