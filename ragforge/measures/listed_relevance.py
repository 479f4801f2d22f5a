"""Relevance that is listed apart from grades: the list decides binary measures, grades the others.

Authors of small sets often give both, and mean both: "these three are relevant, and this is how
good each is". No threshold on the grades says so where a listed chunk has a lower grade than one
that is not listed.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from ragforge.measures.locating import Judgments
from ragforge.measures.measure_names import SYNTAX, Measure, parse_measure

Listed = Mapping[str, Collection[str]]
"""The relevant chunks by query; of a query that is not in it, the grades decide."""
LEAST_RELEVANT: Final = 1
"""Lowest grade that counts as relevant in what `labels_of` returns as binary."""
_BY_LIST: Final = frozenset(
    {*(name for name, syntax in SYNTAX.items() if "rel" in syntax.settings), "Judged"}
)


class LabelsInForce(NamedTuple):
    """What measures are computed on."""

    grades: Mapping[str, Judgments]
    rel_threshold: int | Literal["auto"]
    relevant: Listed | None
    """The lists that decide binary measures; None where grades do."""
    reading: str = ""
    """How that is read, in a sentence; "" where it is as usual."""


def lists_in_force(
    qrels: Mapping[str, Judgments], marks: Mapping[str, Mapping[str, bool]], rel_threshold: int
) -> dict[str, frozenset[str]]:
    """Return the relevant chunks of each query of which somebody listed some.

    Args:
        qrels: Grades by query and chunk; None where a judgment failed.
        marks: Whether a chunk is listed, by query; of graded chunks that have no mark, because
            others graded them later, the grade decides.
        rel_threshold: Lowest grade that counts as relevant there.
    """
    return {
        query_id: frozenset(
            (
                *(chunk_id for chunk_id, is_listed in marked.items() if is_listed),
                *(
                    chunk_id
                    for chunk_id, grade in qrels.get(query_id, {}).items()
                    if chunk_id not in marked and grade is not None and grade >= rel_threshold
                ),
            )
        )
        for query_id, marked in marks.items()
        if marked
    }


class MarkedLabels(NamedTuple):
    """What marks and grades of a set come to."""

    graded: Mapping[str, Judgments]
    lists: dict[str, frozenset[str]]


def marked_labels(
    qrels: Mapping[str, Judgments], marks: Mapping[str, Mapping[str, bool]], rel_threshold: int
) -> MarkedLabels:
    """Return grades and lists of a set; arguments as for `lists_in_force`.

    Where who listed chunks of a query did not say how good they are, each relevant one gains the
    same, also if others graded some later: what was listed would be worth nothing beside these.
    """
    lists = lists_in_force(qrels, marks, rel_threshold)
    if not lists:
        return MarkedLabels(qrels, {})
    labels = labels_of(qrels, lists, rel_threshold)
    graded = dict(labels.graded)
    for query_id in lists:
        marked, grades = marks[query_id], qrels.get(query_id, {})
        own = {chunk_id: grades.get(chunk_id) for chunk_id in marked}
        if not _is_graded(own, [chunk_id for chunk_id in marked if marked[chunk_id]]):
            graded[query_id] = labels.binary[query_id]
    return MarkedLabels(graded, lists)


class GradedAndBinary(NamedTuple):
    """One set of judgments for each kind of measure; both have the same queries."""

    graded: dict[str, dict[str, int | None]]
    binary: dict[str, dict[str, int | None]]
    """1 for what is relevant, 0 for what else has a label, None where a judgment failed."""


def labels_of(
    qrels: Mapping[str, Judgments], relevant: Listed, rel_threshold: int
) -> GradedAndBinary:
    """Return what graded and what binary measures are computed on.

    A listed chunk without a grade gets none: it is in no gain and in no ideal. Only where no chunk
    of a query has a grade above 0, and no listed one any, each listed one gains the same, which
    makes nDCG that of binary relevance. A graded chunk that is not listed is not relevant.

    Args:
        qrels: Grades by query and chunk; None where a judgment failed.
        relevant: The lists.
        rel_threshold: Lowest grade that counts as relevant for queries without a list.
    """
    graded, binary = dict[str, dict[str, int | None]](), dict[str, dict[str, int | None]]()
    for query_id in dict.fromkeys((*qrels, *relevant)):
        grades = qrels.get(query_id, {})
        listed = relevant.get(query_id)
        if listed is None:
            binary[query_id] = {
                chunk_id: None if grade is None else int(grade >= rel_threshold)
                for chunk_id, grade in grades.items()
            }
        else:
            unlisted = {
                chunk_id: None if grade is None else 0
                for chunk_id, grade in grades.items()
                if chunk_id not in listed
            }
            binary[query_id] = {**dict.fromkeys(listed, LEAST_RELEVANT), **unlisted}
        is_graded = listed is None or _is_graded(grades, listed)
        graded[query_id] = dict(grades) if is_graded else dict(binary[query_id])
    return GradedAndBinary(graded, binary)


def _is_graded(grades: Judgments, listed: Collection[str]) -> bool:
    """Whether grades say how good chunks are: some is above 0, or is of a listed chunk."""
    return any(grades.values()) or any(grades.get(chunk_id) is not None for chunk_id in listed)


class Ground(NamedTuple):
    """What some measures are computed on."""

    qrels: Mapping[str, Judgments]
    measures: tuple[str, ...]
    rel_threshold: int


def grounds(
    qrels: Mapping[str, Judgments],
    relevant: Listed | None,
    measures: Iterable[str],
    rel_threshold: int,
) -> tuple[Ground, ...]:
    """Return the labels that measures are computed on: one set of them, or two where lists decide.

    On each of them, measures can be computed as if there were no lists.

    Args:
        qrels: Grades by query and chunk; None where a judgment failed.
        relevant: The lists; none where grades decide all.
        measures: Canonical names.
        rel_threshold: Lowest grade that counts as relevant where no list says it.
    """
    names = tuple(measures)
    if not relevant:
        return (Ground(qrels, names, rel_threshold),)
    labels = labels_of(qrels, relevant, rel_threshold)
    graded = tuple(by_grades(names, has_lists=True))
    binary = tuple(name for name in names if name not in graded)
    both = (
        Ground(labels.graded, graded, rel_threshold),
        Ground(labels.binary, binary, LEAST_RELEVANT),
    )
    return tuple(ground for ground in both if ground.measures)


def by_grades(measures: Iterable[str], *, has_lists: bool) -> list[str]:
    """Return the measures, canonical names, that go by grades where there are lists, or none."""
    return [name for name in measures if not (has_lists and is_by_list(parse_measure(name)))]


def is_by_list(measure: Measure) -> bool:
    """Whether lists decide a measure: it asks for relevance, and names no grade for it."""
    return measure.name in _BY_LIST and measure.rel is None


class LabelledQuery(NamedTuple):
    """What an author says of one query."""

    grades: Mapping[str, int | None]
    listed: Collection[str]


def explaining_threshold(labelled: Iterable[LabelledQuery], highest_grade: int) -> int | None:
    """Return the lowest grade of all that are listed, where no unlisted chunk has it or a higher.

    Args:
        labelled: Queries with both grades and a list, which may be empty; others say nothing of a
            threshold.
        highest_grade: Of the scale: where no listed chunk has a grade, the threshold may be any up
            to it.

    Returns:
        A grade of at least 1: that of `evaluate` by default (2 where a grade is above 1, else 1)
        where it explains all lists, else the one nearest to it; None where none does, or where
        there is nothing to explain.
    """
    least_listed: int | None = None
    highest_unlisted, highest = 0, 0
    has_any = False
    for grades, listed in labelled:
        for chunk_id, grade in grades.items():
            if grade is None:
                continue
            has_any, highest = True, max(highest, grade)
            if chunk_id in listed:
                least_listed = grade if least_listed is None else min(least_listed, grade)
            else:
                highest_unlisted = max(highest_unlisted, grade)
    most = highest_grade if least_listed is None else least_listed
    if not has_any or most <= highest_unlisted or most < 1:
        return None
    usual = 2 if highest > 1 else 1
    return min(max(usual, highest_unlisted + 1), most)
