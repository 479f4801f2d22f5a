"""How good the answers of a system are: rates over its queries, over slices, and against length."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from math import fsum, isnan, log
from typing import Final

from ragforge.deferred import dataclass
from ragforge.evaluating.answers.diagnosis import Diagnosis, diagnoses
from ragforge.evaluating.answers.records import Relevance, SystemRecords, documents_of
from ragforge.evaluating.runs import NOT_SET, Latency, latency_of
from ragforge.evaluating.selection import Part
from ragforge.measures.agreement import confusion, kappa
from ragforge.measures.rates import LEAST_VALUES, Rate, Slope, mean_rate, sample_rate, slope
from ragforge.measures.verdict_ratios import (
    Kind,
    Verdicts,
    correct_given_attempted,
    correct_harmonic,
    of_sample,
)
from ragforge.records import AnswerGrade, Query

DIMENSIONS: Final = ("difficulty", "type", "category", "language", "document")
SLICED: Final = ("score", "correct", "hallucination")
"""The rates of a slice."""
SUSPICIOUS_P: Final = 0.01

_KINDS: Final[Mapping[str, Kind]] = {
    "correct": "correct",
    "partial": "wrong",
    "incorrect": "wrong",
    "not_attempted": "not_attempted",
}
VERDICTS: Final = ("correct", "partial", "incorrect", "not_attempted")


@dataclass(frozen=True, slots=True)
class AnswerSlice:
    """The answers to the queries that share a property; a query may be in several documents."""

    dimension: str
    value: str
    n_queries: int
    rates: dict[str, Rate]
    """Those of `SLICED`."""

    @property
    def is_small(self) -> bool:
        """Whether there are too few answers to read anything from."""
        return self.rates["score"].n < LEAST_VALUES


@dataclass(frozen=True, slots=True)
class LengthCheck:
    """Whether longer answers score better or worse, which may be the judge's taste."""

    slope: Slope
    """Of the score on the natural logarithm of the number of characters, of attempted answers."""

    @property
    def is_suspicious(self) -> bool:
        """Whether chance hardly explains the slope."""
        return self.slope.p is not None and self.slope.p < SUSPICIOUS_P


def answer_rates(records: SystemRecords) -> dict[str, Rate]:
    """Return all rates of a system, by the names of `RATES`."""
    return {name: rate(records) for name, rate in RATES.items()}


def answer_slices(records: SystemRecords) -> tuple[AnswerSlice, ...]:
    """Return the rates over slices of the queries that are or should be answered."""
    asked = records.gradable | records.grades.keys() | records.failed
    # Of a sample also what was not drawn: it says how much of a slice each stratum is.
    every = asked | (records.design.stratum_of.keys() if records.design else set())
    slices = []
    for dimension in DIMENSIONS:
        members: dict[str, list[str]] = {}
        for query_id in sorted(every & records.queries.keys()):
            for value in _values(records, records.queries[query_id], dimension):
                members.setdefault(value, []).append(query_id)
        if dimension == "category" and members.keys() == {NOT_SET}:
            continue
        for value, query_ids in sorted(members.items()):
            n_asked = len(asked.intersection(query_ids))
            if n_asked:
                part = records.only(query_ids)
                rates = {name: RATES[name](part) for name in SLICED}
                slices.append(AnswerSlice(dimension, value, n_asked, rates))
    return tuple(slices)


def check_length(records: SystemRecords) -> LengthCheck:
    """Hold the scores of attempted answers against their lengths.

    A refusal is short and scores 0: with those in, length would always seem to matter.
    """
    pairs = [
        (log(len(text)), grade.score)
        for grade in records.graded
        if grade.verdict != "not_attempted" and grade.score is not None
        if (text := _text(records, grade.query_id))
    ]
    return LengthCheck(slope([length for length, _ in pairs], [score for _, score in pairs]))


def mean_of(records: SystemRecords, values: Sequence[float | None]) -> Rate:
    """Return the mean over graded answers; the bounds count every query without a grade as well.

    Args:
        records: Of the system.
        values: One per graded answer; None where the grade does not say.
    """
    failed = records.without_grade
    ids = [grade.query_id for grade in records.graded]
    pairs = zip(ids, values, strict=True)
    known = {query_id: value for query_id, value in pairs if value is not None}
    absent = (records.gradable - records.grades.keys() - failed) | (set(ids) - known.keys())
    return _rate(records, known, absent)


def _rate(records: SystemRecords, known: Mapping[str, float], absent: Collection[str]) -> Rate:
    failed = records.without_grade
    if records.design is not None:
        return sample_rate(known, failed, absent, records.design)
    return mean_rate(list(known.values()), len(failed), len(absent))


def _share_of(verdict: str) -> Callable[[SystemRecords], Rate]:
    def share(records: SystemRecords) -> Rate:
        return mean_of(records, [float(grade.verdict == verdict) for grade in records.graded])

    return share


def _hallucination(records: SystemRecords) -> Rate:
    """Return the share of answers that claim what no chunk says; no answer cannot claim a thing."""
    checked = {
        grade.query_id: float(grade.has_hallucination)
        for grade in records.graded
        if grade.has_hallucination is not None
    }
    unchecked = {grade.query_id for grade in records.graded} - checked.keys()
    return _rate(records, checked, unchecked | (records.ungraded & records.gradable))


def _ratio(records: SystemRecords, plain: Callable[[Verdicts], Rate]) -> Rate:
    """Return a ratio of verdicts; of a sample, that of the set it was drawn from."""
    rate = plain(_verdicts(records))
    if records.design is None:
        return rate
    failed = records.without_grade
    missing = failed | (records.gradable - records.grades.keys())
    kinds: dict[str, Kind] = {
        grade.query_id: _KINDS[grade.verdict] for grade in records.graded if grade.verdict
    }
    return of_sample(rate, plain, kinds, missing, records.design)


def _verdicts(records: SystemRecords) -> Verdicts:
    given = [grade.verdict for grade in records.graded]
    failed = records.without_grade
    return Verdicts(
        given.count("correct"),
        given.count("partial") + given.count("incorrect"),
        given.count("not_attempted"),
        len(failed),
        len(records.gradable - records.grades.keys() - failed),
    )


def strict_score(grade: AnswerGrade) -> float | None:
    """Return the strict score; without facts the whole answer is the one fact there is."""
    if grade.strict_score is not None or grade.score is None:
        return grade.strict_score
    return grade.score if grade.verdict == "correct" else 0.0


def _values(records: SystemRecords, query: Query, dimension: str) -> tuple[str, ...]:
    if dimension == "document":
        return documents_of(query, records.documents) or (NOT_SET,)
    return (getattr(query, dimension) or NOT_SET,)


def _text(records: SystemRecords, query_id: str) -> str:
    answer = records.answers.get(query_id)
    return answer.answer.strip() if answer else ""


RATES: Final[dict[str, Callable[[SystemRecords], Rate]]] = {
    "correct": _share_of("correct"),
    "partial": _share_of("partial"),
    "incorrect": _share_of("incorrect"),
    "not_attempted": _share_of("not_attempted"),
    "correct_given_attempted": lambda records: _ratio(records, correct_given_attempted),
    "correct_harmonic_mean": lambda records: _ratio(records, correct_harmonic),
    "score": lambda records: mean_of(records, [grade.score for grade in records.graded]),
    "strict_score": lambda records: mean_of(records, [strict_score(g) for g in records.graded]),
    "hallucination": _hallucination,
    "decided_by_rule": lambda records: mean_of(
        records, [float(bool(grade.rule)) for grade in records.graded]
    ),
}


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
    outdated: str = ""
    """What is left out as queries were edited, in a sentence; "" where nothing is."""
    latency: Latency | None = None
    """How long answers took; None where none was timed."""
    n_answers: int = 0
    n_priced: int = 0
    """Answers whose cost is known."""
    usd_per_query: float | None = None
    """Mean cost of those, in US dollars; None where there are none."""

    @property
    def is_priced(self) -> bool:
        """Whether the cost of every answer is known."""
        return 0 < self.n_answers == self.n_priced


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
        value = float(kappa(confusion(given, judged, len(VERDICTS))))
        return None if isnan(value) else value


def summarise_answers(records: SystemRecords, relevance: Relevance) -> AnswerSummary:
    """Summarise the answers of one system."""
    done = records.graded
    verdicts = Counter(grade.verdict for grade in done)
    answers = records.answers.values()
    costs = [answer.cost_usd for answer in answers if answer.cost_usd is not None]
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
        outdated=records.outdated_text,
        latency=latency_of([each.latency_s for each in answers if each.latency_s is not None]),
        n_answers=len(answers),
        n_priced=len(costs),
        usd_per_query=fsum(costs) / len(costs) if costs else None,
    )


def _given(records: SystemRecords) -> GivenBeside | None:
    from statistics import fmean

    unanswerable = {key for key, query in records.queries.items() if not query.answerable}
    given = {
        key: of.given.settled(answerable=key not in unanswerable)
        for key, of in records.answers.items()
        if of.given is not None
    }
    judged = {
        key: grade
        for key, grade in records.grades.items()
        if key in given and grade.verdict is not None and not _is_of_file(grade)
    }
    if not judged:
        return None
    scored = [
        (grade_given, other)
        for key, grade in judged.items()
        if (grade_given := given[key].score) is not None and (other := grade.score) is not None
    ]
    return GivenBeside(
        sources=tuple(sorted({grade_given.provenance.model for grade_given in given.values()})),
        n_given=len(given),
        pairs=tuple((key, given[key].verdict, str(judged[key].verdict)) for key in sorted(judged)),
        mean_given=fmean(grade_given for grade_given, _ in scored) if scored else None,
        mean_judged=fmean(other for _, other in scored) if scored else None,
    )


def _is_of_file(grade: AnswerGrade) -> bool:
    return grade.provenance is not None and grade.provenance.kind == "file"
