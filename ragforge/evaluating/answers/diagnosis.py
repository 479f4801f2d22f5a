"""Retrieval or the model: which of the two is to blame for a bad answer, query by query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import fsum
from typing import Final

from ragforge.deferred import dataclass
from ragforge.deferred import numpy as np
from ragforge.evaluating.answers.records import GradedContext, Relevance, SystemRecords
from ragforge.evaluating.runs import Qrels
from ragforge.measures.checked_samples import mean
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import (
    Difference,
    Rate,
    difference_of_means,
    interval_of,
    mean_rate,
    sample_rate,
)
from ragforge.measures.strata import Design
from ragforge.records import AnswerGrade

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
class ContextGroup:
    """Answers whose contexts are alike in what they hold besides relevant chunks."""

    score: Rate
    wrong_claims: Rate
    """Share of answers that claim something wrong, of those checked for hallucination."""


@dataclass(frozen=True, slots=True)
class ContextUse:
    """What the chunks before a system were good for."""

    precision: Rate
    """Share of an answer's chunks that were needed, in the mean over answers. Chunks without a
    judgment are left out of an answer's share; the bounds take them as not needed, and as needed.
    """
    n_chunks: int
    n_unjudged: int
    clean: ContextGroup
    """Answers made from relevant chunks only."""
    noisy: ContextGroup
    """Answers made from relevant chunks and irrelevant ones."""
    difference: Difference | None
    """Mean score of the noisy ones less that of the clean ones; None where a group is small."""
    n_open: int
    """Answers that a chunk without a judgment keeps out of both groups."""


def context_names(
    systems: Iterable[SystemRecords],
    grades: Qrels,
    rankings: Mapping[str, Mapping[str, Sequence[str]]],
) -> set[str]:
    """Return what contexts name and the set may not know as chunks, and what is graded beside it.

    Args:
        systems: With their own contexts.
        grades: By query and chunk.
        rankings: What stands for contexts where answers name none, by run and query.
    """
    names: set[str] = set()
    for system in systems:
        for query_id, answer in system.answers.items():
            graded, context = grades.get(query_id, {}), answer.chunk_ids
            if not context:
                tops = (of_run.get(query_id, ())[:CONTEXT_DEPTH] for of_run in rankings.values())
                context = tuple(chain.from_iterable(tops))
            if any(name not in graded for name in context):
                names |= {*context, *graded}
    return names


def context_use(
    records: SystemRecords, contexts: Mapping[str, Sequence[str]], relevance: Relevance
) -> ContextUse:
    """Hold the contexts of answers against the judgments.

    Queries that no chunk answers, by intent, are left out: they need none.

    Args:
        records: Of the system.
        contexts: Chunk ids by query.
        relevance: What is known about them.
    """
    answered = records.answers.keys() | records.grades.keys()
    needed = {
        query_id: [
            *_needed(relevance.grades, query_id, context, relevance.threshold),
            *[None] * _n_unknown(records, query_id),
        ]
        for query_id, context in contexts.items()
        if context and query_id in answered and _is_answerable(records, query_id)
    }
    groups: dict[str, list[str]] = {"clean": [], "noisy": [], "open": []}
    for query_id, flags in needed.items():
        if True in flags:
            kind = "noisy" if False in flags else "open" if None in flags else "clean"
            groups[kind].append(query_id)
    clean, noisy = records.only(groups["clean"]), records.only(groups["noisy"])
    return ContextUse(
        precision=_precision(list(needed.values())),
        n_chunks=sum(map(len, needed.values())),
        n_unjudged=sum(flags.count(None) for flags in needed.values()),
        clean=_group(clean),
        noisy=_group(noisy),
        difference=difference_of_means(_scores(clean), _scores(noisy)),
        n_open=len(groups["open"]),
    )


def _needed(
    grades: Qrels, query_id: str, context: Sequence[str], threshold: int
) -> list[bool | None]:
    """Return for each chunk whether it was needed; None where nobody can say."""
    known = grades.get(query_id, {})
    found = [known.get(chunk_id) for chunk_id in dict.fromkeys(context)]
    return [None if grade is None else grade >= threshold for grade in found]


def _n_unknown(records: SystemRecords, query_id: str) -> int:
    """Return how many passages an answer was made from that are named by no id."""
    answer = records.answers.get(query_id)
    return answer.n_unknown_passages if answer else 0


def _is_answerable(records: SystemRecords, query_id: str) -> bool:
    query = records.queries.get(query_id)
    return query is None or query.answerable


def _precision(needed: Sequence[list[bool | None]]) -> Rate:
    shares, low, high = [], [], []
    for flags in needed:
        n_good, n_open = flags.count(True), flags.count(None)
        if n_open < len(flags):
            shares.append(n_good / (len(flags) - n_open))
        low.append(n_good / len(flags))
        high.append((n_good + n_open) / len(flags))
    if not needed:
        return Rate(None, None, None, 0)
    values, n = np.array(shares), len(needed)
    return Rate(
        mean(values) if shares else None,
        interval_of(values),
        Ends(fsum(low) / n, fsum(high) / n),
        len(shares),
        n_absent=n - len(shares),
    )


def _scores(records: SystemRecords) -> list[float]:
    return [grade.score for grade in records.graded if grade.score is not None]


def _group(records: SystemRecords) -> ContextGroup:
    n_failed, n_ungraded = len(records.without_grade), len(records.ungraded & records.gradable)
    scores = _scores(records)
    checked = [grade for grade in records.graded if grade.has_hallucination is not None]
    wrong = [float(_says_wrong(grade)) for grade in checked]
    n_graded = len(records.graded)
    return ContextGroup(
        mean_rate(scores, n_failed, n_ungraded + n_graded - len(scores)),
        mean_rate(wrong, n_failed, n_ungraded + n_graded - len(checked)),
    )


def _says_wrong(grade: AnswerGrade) -> bool:
    """Whether a checked answer claims what no chunk says, or contradicts what is expected.

    Who graded in a file says of the first alone; an incorrect answer may just lack something.
    """
    if grade.provenance is not None and grade.provenance.kind == "file":
        return bool(grade.has_hallucination)
    is_refuted = any(fact.status == "contradicted" for fact in grade.facts)
    is_wrong = not grade.facts and grade.verdict == "incorrect"
    return bool(grade.has_hallucination) or is_refuted or is_wrong


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
    by_run = []
    for run, rankings in relevance.rankings.items():
        contexts = {
            query_id: own.get(query_id) or tuple(rankings.get(query_id, ())[:CONTEXT_DEPTH])
            for query_id in asked
        }
        by_run.append(_diagnose(run, asked, contexts, records, relevance))
    return tuple(by_run)


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
    graded = {item: relevance.graded_context(item, contexts.get(item, ())) for item in asked}
    for query_id in asked:
        answer = records.grades.get(query_id)
        of_query = graded[query_id]
        retrieval = _is_good(
            of_query, relevance.threshold, has_unknown=_n_unknown(records, query_id) > 0
        )
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
        tuple(
            Undecided(reason, tuple(query_ids_of_reason))
            for reason, query_ids_of_reason in sorted(undecided.items())
        ),
        context_use(
            records,
            {query_id: of_query.context for query_id, of_query in graded.items()},
            replace(relevance, grades={key: of_query.grades for key, of_query in graded.items()}),
        ),
    )


def _cells(
    query_ids: Mapping[tuple[bool, bool], Sequence[str]],
    undecided: Mapping[str, Sequence[str]],
    design: Design | None,
) -> tuple[Cell, ...]:
    decided = [query_id for ids in query_ids.values() for query_id in ids]
    absent = [query_id for ids in undecided.values() for query_id in ids]
    cells = []
    for key, ids in query_ids.items():
        values = {**dict.fromkeys(decided, 0.0), **dict.fromkeys(ids, 1.0)}
        if design is None:
            share = mean_rate(list(values.values()), n_absent=len(absent))
        else:
            share = sample_rate(values, (), absent, design)
        cells.append(Cell(*key, tuple(ids), share))
    return tuple(cells)


def _is_good(of_query: GradedContext, threshold: int, *, has_unknown: bool) -> bool | str:
    """Return whether a relevant chunk was retrieved, or why that cannot be told.

    A chunk without a judgment may be relevant, and a passage of which nothing is known may: either
    leaves a query open that has no other hit.
    """
    grades = of_query.grades
    relevant = [grades.get(chunk_id) for chunk_id in of_query.context]
    known = [grade for grade in relevant if grade is not None]
    if any(grade >= threshold for grade in known):
        return True
    if not any(grade is not None and grade >= threshold for grade in grades.values()):
        return NO_RELEVANT
    if has_unknown:
        return NOT_JUDGED
    if not of_query.context:
        return NO_CONTEXT
    return False if len(known) == len(relevant) else NOT_JUDGED
