"""What the graded answers of one system say."""

from collections import Counter
from dataclasses import dataclass
from math import isnan
from statistics import fmean
from typing import Final

from ragforge.measures.agreement import confusion, kappa
from ragforge.measures.rates import Rate
from ragforge.records import AnswerGrade
from ragforge.report.answers.diagnosis import Diagnosis, diagnoses
from ragforge.report.answers.rates import (
    AnswerSlice,
    LengthCheck,
    answer_rates,
    answer_slices,
    check_length,
)
from ragforge.report.answers.records import Relevance, SystemRecords
from ragforge.report.selection import Part

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
    part: Part | None = None
    """The part of the queries that it is about; None where that is all."""
    given: "GivenBeside | None" = None
    """Grades that came with the answers, beside those of the judge; None where there are none, or
    where they are the ones that count."""


@dataclass(frozen=True, slots=True)
class GivenBeside:
    """The grades that came with answers, and how far those that count agree with them."""

    sources: tuple[str, ...]
    """Files that they came in."""
    n_given: int
    pairs: tuple[tuple[str, str, str], ...]
    """Query, verdict of the file and verdict of the judge, where both are; sorted."""
    mean_given: float | None
    """Score, over the answers that have one from both; None where there is none."""
    mean_judged: float | None

    @property
    def differing(self) -> tuple[str, ...]:
        """The queries whose verdicts differ."""
        return tuple(query_id for query_id, given, judged in self.pairs if given != judged)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa of the verdicts, without weights; None where it is not defined."""
        if not self.pairs:
            return None
        given = [VERDICTS.index(verdict) for _, verdict, _ in self.pairs]
        judged = [VERDICTS.index(verdict) for _, _, verdict in self.pairs]
        found = float(kappa(confusion(given, judged, len(VERDICTS))))
        return None if isnan(found) else found


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
        given=_given(records),
        part=records.part,
    )


def _given(records: SystemRecords) -> GivenBeside | None:
    given = {key: of.given for key, of in records.answers.items() if of.given is not None}
    judged = {
        key: grade
        for key, grade in records.grades.items()
        if key in given and grade.verdict is not None and not _is_of_file(grade)
    }
    if not judged:
        return None
    scored = [
        (one, other)
        for key, grade in judged.items()
        if (one := given[key].score) is not None and (other := grade.score) is not None
    ]
    return GivenBeside(
        sources=tuple(sorted({one.provenance.model for one in given.values()})),
        n_given=len(given),
        pairs=tuple((key, given[key].verdict, str(judged[key].verdict)) for key in sorted(judged)),
        mean_given=fmean(one for one, _ in scored) if scored else None,
        mean_judged=fmean(other for _, other in scored) if scored else None,
    )


def _is_of_file(grade: AnswerGrade) -> bool:
    return grade.provenance is not None and grade.provenance.kind == "file"
