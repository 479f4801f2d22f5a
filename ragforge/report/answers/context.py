"""How well the contexts were chosen, and what the chunks nobody needed did to the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Difference, Rate, difference_of_means, interval_of, mean_rate
from ragforge.measures.samples import mean
from ragforge.records import AnswerGrade
from ragforge.report.answers.records import Grades, Relevance, SystemRecords


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
        query_id: _needed(relevance.grades, query_id, context, relevance.threshold)
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
    grades: Grades, query_id: str, context: Sequence[str], threshold: int
) -> list[bool | None]:
    """Return for each chunk whether it was needed; None where nobody can say."""
    known = grades.get(query_id, {})
    found = [known.get(chunk_id) for chunk_id in dict.fromkeys(context)]
    return [None if grade is None else grade >= threshold for grade in found]


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
    """Tell whether a checked answer claims what no chunk says, or contradicts what is expected."""
    is_refuted = any(fact.status == "contradicted" for fact in grade.facts)
    is_wrong = not grade.facts and grade.verdict == "incorrect"
    return bool(grade.has_hallucination) or is_refuted or is_wrong
