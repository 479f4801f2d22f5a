"""Finding why runs did badly: records first, then the texts of a few chunks, in one pass."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.causes.catalogue import CauseCode, Causes
from ragforge.evaluating.causes.rules import (
    FULL_GRADE,
    Case,
    ChunkMarks,
    apply_rules,
    evidence_chunks,
)
from ragforge.evaluating.runs import PRIMARY, MeasuredRun, Task
from ragforge.measures import Measure, evaluate, parse_measure
from ragforge.measures.listed_relevance import grounds
from ragforge.records import Chunk

_ALIKE: Final = 1e-9
"""Differences that rounding makes."""
_SETS: Final = frozenset({"SetP", "SetF"})
"""Measures that are best where nothing but relevant chunks is retrieved."""


@dataclass(frozen=True, slots=True)
class _Bad:
    query_id: str
    value: float | None
    best: float | None
    state: CauseCode | None
    """Why there is no value."""


class CauseFinder:
    """Finds the causes of all queries on which runs did badly.

    Args:
        runs: Measured on the task; one in which there was nothing to measure has no causes.
        task: What the runs were measured on.
        measure: By which a query does badly: its value is below the best that its judgments
            allow, or it has none.

    Raises:
        UsageError: The measure cannot be taken.
    """

    def __init__(self, runs: Iterable[MeasuredRun], task: Task, measure: str = PRIMARY) -> None:
        self._task = task
        self._measure = parse_measure(measure)
        self._queries = {query.query_id: query for query in task.queries}
        grades = (grade for judged in task.qrels.values() for grade in judged.values())
        self._has_full_grades = any(grade == FULL_GRADE for grade in grades)
        self._marks = ChunkMarks()
        self._has_corpus = False
        self._missing = {item for key in task.qrels for item in task.relevant_in(key)}
        """Relevant chunks, and documents, that were not among the chunks taken."""
        best = _best(task, self._measure)
        self._runs = sorted(runs, key=lambda run: run.name)
        self._bad = {run.name: list(_bad(run, task, self._measure, best)) for run in self._runs}
        for _, _, case in self._cases():
            self._marks.compare(case.compared)
            self._look_for_quotes(case)

    def take(self, chunk: Chunk) -> None:
        """Take the next chunk of the corpus; most are of no account."""
        self._marks.take(chunk)
        self._missing -= {chunk.chunk_id, chunk.doc_id}
        self._has_corpus = True

    def causes(self) -> dict[str, dict[str, Causes]]:
        """Return why queries did badly, by run and query, both sorted."""
        by_run: dict[str, dict[str, Causes]] = {run.name: {} for run in self._runs}
        for name, bad, case in self._cases():
            codes = apply_rules(case)
            causes = Causes(
                query_id=bad.query_id,
                value=bad.value,
                best=bad.best,
                codes=tuple(codes),
                detail=next(iter(codes.values())),
            )
            by_run[name][bad.query_id] = causes
        return by_run

    def _cases(self) -> Iterator[tuple[str, _Bad, Case]]:
        for run in self._runs:
            for bad in self._bad[run.name]:
                yield run.name, bad, self._case(run, bad)

    def _case(self, run: MeasuredRun, bad: _Bad) -> Case:
        ranked, grades = run.ranked.get(bad.query_id, ()), self._task.qrels[bad.query_id]
        if self._task.is_complete:
            grades = {**dict.fromkeys(ranked, 0), **grades}
        return Case(
            query=self._queries[bad.query_id],
            state=bad.state,
            ranked=ranked,
            grades=grades,
            threshold=self._measure.rel or self._task.rel_threshold,
            measure=self._measure,
            marks=self._marks,
            has_full_grades=self._has_full_grades,
            noun=self._task.noun(bad.query_id),
            listed=self._listed(bad.query_id),
            absent=frozenset(self._missing) if self._has_corpus else frozenset(),
        )

    def _listed(self, query_id: str) -> frozenset[str] | None:
        """Return what a list calls relevant; None where the measure or the set goes by grades."""
        if self._measure.rel is not None or query_id not in self._task.relevant:
            return None
        return frozenset(self._task.relevant[query_id])

    def _look_for_quotes(self, case: Case) -> None:
        among = evidence_chunks(case.query, case.relevant)
        for item in case.query.evidence:
            self._marks.look_for(item.quote, among)
        self._marks.place(case.parts)


def _bad(
    run: MeasuredRun, task: Task, measure: Measure, best: Mapping[str, float]
) -> Iterator[_Bad]:
    """Yield the queries that did badly, sorted by id."""
    if run.scores is None:
        return
    scores = run.scores.rescore([measure], rel_threshold=task.rel_threshold)
    states: dict[str, CauseCode] = {
        **dict.fromkeys(scores.failed, "retriever_failed"),
        **dict.fromkeys(
            scores.without_judgments, "no_relevant_known" if task.is_complete else "not_judged"
        ),
        **dict.fromkeys(scores.judgments_failed, "judging_failed"),
    }
    found = [_Bad(query_id, None, None, state) for query_id, state in states.items()]
    for query_id, value in zip(scores.query_ids, scores.values(measure), strict=True):
        if value < best[query_id] - _ALIKE or not best[query_id]:
            found.append(_Bad(query_id, value, best[query_id], None))
    yield from sorted(found, key=lambda bad: bad.query_id)


def _best(task: Task, measure: Measure) -> dict[str, float]:
    """Return the highest value of each query that its judgments allow."""
    [ground] = grounds(task.qrels, task.relevant, [str(measure)], task.rel_threshold)
    lowest = (measure.rel or ground.rel_threshold) if measure.name in _SETS else 0
    ideal = {
        query_id: _ordered(judged, lowest) for query_id, judged in ground.qrels.items() if judged
    }
    if not ideal:
        return {}
    scores = evaluate(ground.qrels, ideal, [measure], rel_threshold=ground.rel_threshold)
    return dict(zip(scores.query_ids, scores.values(measure), strict=True))


def _ordered(judged: Mapping[str, int | None], lowest: int) -> list[str]:
    known = [(-grade, chunk_id) for chunk_id, grade in judged.items() if grade is not None]
    return [chunk_id for grade, chunk_id in sorted(known) if -grade >= lowest]
