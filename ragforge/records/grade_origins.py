"""Where a grade comes from, and whether it says anything about quality.

Grades of the offline baseline count shared words, and those of `ragforge mock` are made up: both
show that things run, and neither which of two systems is better. A quote that stands in a chunk is
a fact, whichever rule cut the query out of the text; that of a query that a mock made up is none.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ragforge.records.answers import AnswerGrade
from ragforge.records.provenance import Provenance
from ragforge.records.relevance import Judgment

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
