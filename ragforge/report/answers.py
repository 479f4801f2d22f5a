"""What the graded answers of one system say, and whether retrieval or the model is to blame."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ragforge.records import Answer, AnswerGrade
from ragforge.report.estimate import Estimate, estimate

VERDICTS: Final = ("correct", "partial", "incorrect", "not_attempted")
CONTEXT_DEPTH: Final = 5
"""Ranks of a run that stand for the context of an answer that does not name its own chunks."""
READINGS: Final = {
    (True, True): "works",
    (True, False): "the model",
    (False, True): "lucky",
    (False, False): "fix retrieval first",
}
"""What to make of (retrieval is good, answer is good)."""

NO_ANSWER: Final = "no answer"
NOT_GRADED: Final = "no graded answer"
NO_RELEVANT: Final = "no relevant chunk known"
NO_CONTEXT: Final = "nothing was retrieved"
NOT_JUDGED: Final = "a retrieved chunk has no judgment"

Grades = Mapping[str, Mapping[str, int | None]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of the diagnosis grid."""

    retrieval_is_good: bool
    answer_is_good: bool
    query_ids: tuple[str, ...]

    @property
    def reading(self) -> str:
        """What the combination means."""
        return READINGS[self.retrieval_is_good, self.answer_is_good]


@dataclass(frozen=True, slots=True)
class Undecided:
    """Queries that fit no field of the grid, and why."""

    reason: str
    query_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Retrieval against answer, query by query."""

    run: str
    """Whose top ranks stand in where an answer names no chunks; "" where all name theirs."""
    cells: tuple[Cell, ...]
    """In the order of `READINGS`."""
    undecided: tuple[Undecided, ...]


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
    score: Estimate
    """Its bounds are over all queries that can be graded, answered or not."""
    hallucination: Estimate
    """Share of answers that claim what no retrieved chunk says."""
    n_unchecked: int
    """Graded answers that were not checked for hallucination."""
    diagnoses: tuple[Diagnosis, ...]


@dataclass(frozen=True, slots=True)
class SystemRecords:
    """The records of one answer system, by query."""

    system: str
    answers: Mapping[str, Answer]
    grades: Mapping[str, AnswerGrade]
    failed: frozenset[str]
    """Queries for which no graded answer could be had."""
    gradable: frozenset[str]
    """Queries of the set that have an expected answer or are meant to have none."""

    @property
    def unanswered(self) -> frozenset[str]:
        """The queries that could be graded, and to which the system gave no answer at all."""
        return self.gradable - self.answers.keys() - self.grades.keys() - self.failed


@dataclass(frozen=True, slots=True)
class Relevance:
    """What is known about relevance, to hold contexts against."""

    grades: Grades
    threshold: int
    rankings: Mapping[str, Mapping[str, Sequence[str]]]
    """Chunk ids, best first, by run and query."""


def summarise_answers(records: SystemRecords, relevance: Relevance) -> AnswerSummary:
    """Summarise the answers of one system."""
    grades = records.grades
    done = [grade for grade in grades.values() if grade.verdict is not None]
    failed = {query_id for query_id, grade in grades.items() if grade.verdict is None}
    failed |= records.failed - {grade.query_id for grade in done}
    verdicts = Counter(grade.verdict for grade in done)
    checked = [grade.has_hallucination for grade in done if grade.has_hallucination is not None]
    nothing = [None] * len(failed)
    n_absent = len(records.gradable - records.grades.keys() - failed)
    return AnswerSummary(
        system=records.system,
        verdicts={verdict: verdicts[verdict] for verdict in VERDICTS},
        n_failed=len(failed),
        n_ungraded=len(records.answers.keys() - grades.keys() - failed),
        n_gradable=len(records.gradable),
        n_unanswered=len(records.unanswered),
        score=estimate([*(grade.score for grade in done), *nothing], n_absent),
        hallucination=estimate([*map(float, checked), *nothing]),
        n_unchecked=len(done) - len(checked),
        diagnoses=_diagnoses(records, relevance),
    )


def _diagnoses(records: SystemRecords, relevance: Relevance) -> tuple[Diagnosis, ...]:
    own = {query_id: answer.chunk_ids for query_id, answer in records.answers.items()}
    asked = sorted(records.grades.keys() | records.failed | records.gradable)
    done = [query_id for query_id, grade in records.grades.items() if grade.verdict is not None]
    if all(own.get(query_id) for query_id in done) or not relevance.rankings:
        return (_diagnose("", asked, own, records, relevance),)
    found = []
    for run, rankings in relevance.rankings.items():
        contexts = {
            query_id: own.get(query_id) or tuple(rankings.get(query_id, ())[:CONTEXT_DEPTH])
            for query_id in asked
        }
        found.append(_diagnose(run, asked, contexts, records, relevance))
    return tuple(found)


def _diagnose(
    run: str,
    query_ids: Iterable[str],
    contexts: Mapping[str, Sequence[str]],
    records: SystemRecords,
    relevance: Relevance,
) -> Diagnosis:
    cells: dict[tuple[bool, bool], list[str]] = {key: [] for key in READINGS}
    undecided: dict[str, list[str]] = {}
    unanswered = records.unanswered
    for query_id in query_ids:
        answer = records.grades.get(query_id)
        context = contexts.get(query_id, ())
        retrieval = _is_good(relevance.grades.get(query_id, {}), context, relevance.threshold)
        if query_id in unanswered:
            undecided.setdefault(NO_ANSWER, []).append(query_id)
        elif answer is None or answer.verdict is None:
            undecided.setdefault(NOT_GRADED, []).append(query_id)
        elif isinstance(retrieval, str):
            undecided.setdefault(retrieval, []).append(query_id)
        else:
            cells[retrieval, answer.verdict == "correct"].append(query_id)
    return Diagnosis(
        run,
        tuple(Cell(*key, tuple(found)) for key, found in cells.items()),
        tuple(Undecided(reason, tuple(found)) for reason, found in sorted(undecided.items())),
    )


def _is_good(
    grades: Mapping[str, int | None], context: Sequence[str], threshold: int
) -> bool | str:
    """Return whether a relevant chunk was retrieved, or why that cannot be told.

    A chunk without a judgment may be relevant: it leaves a query open that has no other hit.
    """
    found = [grades.get(chunk_id) for chunk_id in context]
    known = [grade for grade in found if grade is not None]
    if any(grade >= threshold for grade in known):
        return True
    if not any(grade is not None and grade >= threshold for grade in grades.values()):
        return NO_RELEVANT
    if not context:
        return NO_CONTEXT
    return False if len(known) == len(found) else NOT_JUDGED
