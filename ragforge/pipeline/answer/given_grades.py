"""What a file of answers brings beside them: grades, expected answers, and totals of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ragforge.evaluating.formatting import plural
from ragforge.files.formats.answers import AnswerRow
from ragforge.records import Answer, AnswerGrade, GivenGrade, Query
from ragforge.stages.answer.cases import Case

_EXAMPLES: Final = 3
_ROUNDED: Final = 0.006
"""By how much a total may differ from what its rows come to, as it may be rounded."""
_PERCENT: Final = 100
_NAMES: Final = {
    "correct": "correct rate",
    "partial": "partially correct rate",
    "hallucination": "hallucination rate",
    "score": "average score",
}


def given_grades(todo: Iterable[Case], answers: Iterable[Answer]) -> list[AnswerGrade]:
    """Return the grades that came with answers, of those that can be graded; [] if one has none."""
    given = {answer.query_id: answer.given for answer in answers}
    grades = []
    for case in todo:
        grade = given.get(case.query.query_id)
        if grade is None:
            return []
        grades.append(_as_grade(case.query.query_id, grade))
    return grades


def _as_grade(query_id: str, given: GivenGrade) -> AnswerGrade:
    return AnswerGrade(
        query_id=query_id,
        verdict=given.verdict,
        score=given.score,
        has_hallucination=given.has_hallucination,
        explanation=given.explanation,
        provenance=given.provenance,
    )


def expected_answers(
    rows: Iterable[AnswerRow], queries: Iterable[Query]
) -> tuple[dict[str, str], list[str]]:
    """Return expected answers for queries that have none, and what is to be told of them.

    Where the set has an expected answer, it stands. A query that no chunk is to answer has none.

    Args:
        rows: Answers with the ids of their queries.
        queries: Those of the set.
    """
    by_id = {query.query_id: query for query in queries}
    new: dict[str, str] = {}
    differing: list[str] = []
    for row in rows:
        query = by_id.get(row.query_id)
        if query is None or row.expected_answer is None or not query.answerable:
            continue
        if not query.expected_answer:
            new[row.query_id] = row.expected_answer
        elif _folded(row.expected_answer) != _folded(query.expected_answer):
            differing.append(row.query_id)
    told = []
    if new:
        n = plural(len(new), "query gets its expected answer", "queries get their expected answers")
        told.append(f"{n} from the file, as the set has none: {_some(new)}")
    if differing:
        n = plural(
            len(differing),
            "expected answer of the file differs from that of the set, which stands",
            "expected answers of the file differ from those of the set, which stand",
        )
        told.append(f"{n}: {_some(differing)}")
    return new, told


def lone_scores(rows: Iterable[AnswerRow]) -> Iterator[str]:
    """Yield what is to be told of rows that have a score and no verdict."""
    alone = [row for row in rows if row.lone_score]
    taken = [row for row in alone if row.grade is not None]
    left = [row for row in alone if row.grade is None]
    if taken:
        n = plural(len(taken), "answer brings", "answers bring")
        yield f"{n} a score alone: 1 is taken as correct, 0.5 as partial, 0 as incorrect"
    if left:
        n = plural(len(left), "answer brings a score", "answers bring scores")
        yield (
            f"{n} alone that are not 0, 0.5 or 1, such as {left[0].lone_score}: no grade, and not "
            "used; say isCorrect or verdict beside a score"
        )


def wrong_totals(rows: Sequence[AnswerRow], totals: Mapping[str, float]) -> Iterator[str]:
    """Yield the totals of a file that its rows contradict, in words.

    Args:
        rows: All of the file, also those whose question the set does not ask.
        totals: As `read_totals` returns them; a rate may be in percent.
    """
    n_said = totals.get("questions")
    if n_said is not None and n_said != len(rows):
        yield f"it says {n_said:g} questions, and holds {len(rows)}"
    grades = [row.grade for row in rows if row.grade is not None]
    if len(grades) < len(rows):
        return
    for name, values in _values(grades).items():
        claimed = totals.get(name)
        if claimed is None or len(values) < len(rows):
            continue
        mean = sum(values) / len(values)
        if min(abs(claimed - mean), abs(claimed / _PERCENT - mean)) > _ROUNDED:
            yield f"it says {_NAMES[name]} {claimed:g}, and its rows come to {mean:.3f}"


def _values(grades: Sequence[GivenGrade]) -> dict[str, list[float]]:
    """Return what rates and means are of; a row without a value has none."""
    return {
        "correct": [float(grade.verdict == "correct") for grade in grades],
        "partial": [float(grade.verdict == "partial") for grade in grades],
        "hallucination": [
            float(grade.has_hallucination)
            for grade in grades
            if grade.has_hallucination is not None
        ],
        "score": [grade.score for grade in grades if grade.score is not None],
    }


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _some(query_ids: Iterable[str]) -> str:
    return ", ".join(sorted(query_ids)[:_EXAMPLES])
