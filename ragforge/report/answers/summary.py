"""What the graded answers of one system say."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from ragforge.measures.rates import Rate
from ragforge.report.answers.diagnosis import Diagnosis, diagnoses
from ragforge.report.answers.rates import (
    AnswerSlice,
    LengthCheck,
    answer_rates,
    answer_slices,
    check_length,
)
from ragforge.report.answers.records import Relevance, SystemRecords

VERDICTS: Final = ("correct", "partial", "incorrect", "not_attempted")


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """The graded answers of one system."""

    system: str
    verdicts: dict[str, int]
    n_failed: int
    """Answers that could not be had or graded."""
    n_ungraded: int
    """Answers that nobody tried to grade yet."""
    n_gradable: int
    """Queries of the set whose answers can be graded."""
    n_unanswered: int
    """Those of them to which the system gave no answer at all."""
    n_unchecked: int
    """Graded answers that were not checked for hallucination."""
    rates: dict[str, Rate]
    """By the names of `answer_rates.RATES`; the bounds are over all queries that can be graded,
    answered or not, but for hallucination: there they are over all answers."""
    slices: tuple[AnswerSlice, ...]
    length: LengthCheck
    diagnoses: tuple[Diagnosis, ...]


def summarise_answers(records: SystemRecords, relevance: Relevance) -> AnswerSummary:
    """Summarise the answers of one system."""
    done = records.graded
    verdicts = Counter(grade.verdict for grade in done)
    return AnswerSummary(
        system=records.system,
        verdicts={verdict: verdicts[verdict] for verdict in VERDICTS},
        n_failed=len(records.without_grade),
        n_ungraded=len(records.ungraded),
        n_gradable=len(records.gradable),
        n_unanswered=len(records.unanswered),
        n_unchecked=sum(grade.has_hallucination is None for grade in done),
        rates=answer_rates(records),
        slices=answer_slices(records),
        length=check_length(records),
        diagnoses=diagnoses(records, relevance),
    )
