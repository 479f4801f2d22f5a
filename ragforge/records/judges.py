"""Where a grade comes from, and whether it says anything about quality.

Grades of the offline baseline count shared words, and those of `ragforge mock` are made up: both
show that things run, and neither which of two systems is better. A quote that stands in a chunk is
a fact, whichever rule cut the query out of the text; that of a query that a mock made up is none.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, Literal

from pydantic import Field

from ragforge.records.answers import AnswerGrade
from ragforge.records.record import Grade, NonEmpty, Provenance, Record
from ragforge.records.relevance import Judgment

Expectation = Literal["unchanged", "not raised", "lowered", "not relevant"]
"""What the grade of a sound judge does under an attack; not relevant is a grade below 2."""


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


JUDGED: Final = "judge"
"""Source of a grade that somebody, or a rule, gave after looking; also where it was carried on."""


@dataclass(frozen=True, slots=True)
class GradeOrigin:
    """Who gave a grade."""

    kind: str
    """A `JudgeKind`; "" where it is not recorded."""
    model: str = ""
    prompt: str = ""
    source: str = JUDGED
    """`judge`, `human`, or `evidence`: the chunk holds a quote of the query."""

    @property
    def is_shared_words(self) -> bool:
        """Whether the offline baseline gave it, by the words that query and text share."""
        return self.kind == "baseline" and self.source != "evidence"

    @property
    def is_made_up(self) -> bool:
        """Whether `ragforge mock` gave it."""
        return self.kind == "mock"

    @property
    def says_nothing(self) -> bool:
        """Whether it says nothing about quality, so that no winner can rest on it."""
        return self.is_shared_words or self.is_made_up


@lru_cache(maxsize=256)
def origin(kind: str, model: str, prompt: str, source: str) -> GradeOrigin:
    """Return one object for all grades of one origin."""
    if source == "human":
        return GradeOrigin("human", model, prompt, source)
    return GradeOrigin(kind, model, prompt, "evidence" if source == "evidence" else JUDGED)


def origin_of(graded: Judgment | AnswerGrade) -> GradeOrigin:
    """Return where the grade of a record comes from."""
    source = graded.source if isinstance(graded, Judgment) else JUDGED
    return origin_by(graded.provenance, source)


def origin_by(by: Provenance | None, source: str) -> GradeOrigin:
    """Return the origin of a grade with this provenance and source."""
    if by is None:
        return origin("", "", "", source)
    return origin(by.kind, by.model, by.prompt, source)
