"""Judgments of relevance."""

import hashlib
from typing import Annotated, Final, Literal

from pydantic import Field

from ragforge.records.record import FailureKind, Grade, NonEmpty, Provenance, Record

_QUESTION_DIGITS: Final = 16

_RELEVANT: Final = 2
_NOT_RELEVANT: Final = 1
Level = Literal["chunk", "document"]
"""What a judgment is of: a chunk, or a whole document."""


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


def question_digest(asked: str) -> str:
    """Return what tells a question from another one under the same id."""
    return hashlib.sha256(asked.encode()).hexdigest()[:_QUESTION_DIGITS]


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
    relevant: Annotated[bool | None, Field(exclude_if=lambda value: value is None)] = None
    """Whether people list the chunk as relevant, where no threshold on the grades of the set says
    so: then this decides binary measures, and the grade, where there is one, the others."""
    provenance: Provenance | None = None

    @property
    def is_failed(self) -> bool:
        """Whether nothing is known of the pair, though it was judged."""
        return self.grade is None and self.relevant is None

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
