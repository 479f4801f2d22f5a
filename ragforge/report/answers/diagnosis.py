"""Retrieval or the model: which of the two is to blame for a bad answer, query by query."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ragforge.measures.rates import Rate, mean_rate, sample_rate
from ragforge.measures.strata import Design
from ragforge.report.answers.context import ContextUse, context_use
from ragforge.report.answers.records import Relevance, SystemRecords

CONTEXT_DEPTH: Final = 5
"""Ranks of a run that stand for the context of an answer that does not name its own chunks."""
READINGS: Final = {
    (True, True): "working",
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


@dataclass(frozen=True, slots=True)
class Cell:
    """One field of the diagnosis grid."""

    retrieval_is_good: bool
    answer_is_good: bool
    query_ids: tuple[str, ...]
    share: Rate
    """Of the queries that fit some field; the bounds let the undecided ones fall here or not."""

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
    """Retrieval against answer, query by query, for one notion of what the contexts were."""

    run: str
    """Whose top ranks stand in where an answer names no chunks; "" where all name theirs."""
    cells: tuple[Cell, ...]
    """In the order of `READINGS`."""
    undecided: tuple[Undecided, ...]
    context: ContextUse


def diagnoses(records: SystemRecords, relevance: Relevance) -> tuple[Diagnosis, ...]:
    """Diagnose a system: once by its own contexts, or with each run where it names none."""
    own = {query_id: answer.chunk_ids for query_id, answer in records.answers.items()}
    asked = sorted(records.grades.keys() | records.failed | records.gradable)
    if records.names_contexts or not relevance.rankings:
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
    asked = list(query_ids)
    held = {item: relevance.held_against(item, contexts.get(item, ())) for item in asked}
    for query_id in asked:
        answer = records.grades.get(query_id)
        of_query = held[query_id]
        retrieval = _is_good(of_query.grades, of_query.context, relevance.threshold)
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
        _cells(cells, undecided, records.design),
        tuple(Undecided(reason, tuple(found)) for reason, found in sorted(undecided.items())),
        context_use(
            records,
            {query_id: of_query.context for query_id, of_query in held.items()},
            replace(relevance, grades={key: of_query.grades for key, of_query in held.items()}),
        ),
    )


def _cells(
    found: Mapping[tuple[bool, bool], Sequence[str]],
    undecided: Mapping[str, Sequence[str]],
    design: Design | None,
) -> tuple[Cell, ...]:
    decided = [query_id for ids in found.values() for query_id in ids]
    absent = [query_id for ids in undecided.values() for query_id in ids]
    cells = []
    for key, ids in found.items():
        values = {**dict.fromkeys(decided, 0.0), **dict.fromkeys(ids, 1.0)}
        if design is None:
            share = mean_rate(list(values.values()), n_absent=len(absent))
        else:
            share = sample_rate(values, (), absent, design)
        cells.append(Cell(*key, tuple(ids), share))
    return tuple(cells)


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
