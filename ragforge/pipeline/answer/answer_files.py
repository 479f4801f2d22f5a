"""A file of answers: their queries and chunks, and the grades that it brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.answers.records import is_outdated
from ragforge.evaluating.formatting import plural
from ragforge.files.formats.answers import AnswerRow, graded_by_scores, read_answers, read_totals
from ragforge.files.set.dataset import Dataset, text_as_chunk
from ragforge.files.text import shown
from ragforge.observe import Event, Observer
from ragforge.records import Answer, AnswerGrade, GivenGrade, Query, RetrievedText, Verdict
from ragforge.records.judgments import question_digest
from ragforge.retrieval import ContextPassage
from ragforge.stages.answer.stage import Case, cases, unknown_passages
from ragforge.stages.generate.gates.repeated_questions import normal_question

if TYPE_CHECKING:
    from ragforge.pipeline.answer.asking_systems import PassageFinder, PlacedAnswers

_EXAMPLES: Final = 3
_STOPS: Final = " .\u3002\u0964"
"""At the end of an expected answer they change nothing."""
_ROUNDED: Final = 0.006
"""By how much a total may differ from what its rows come to, as it may be rounded."""
_PERCENT: Final = 100
_NAMES: Final = {
    "correct": "correct rate",
    "partial": "partially correct rate",
    "hallucination": "hallucination rate",
    "score": "average score",
}


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """What a file of answers brings."""

    answers: list[Answer]
    todo: list[Case]
    """Those that can be graded."""
    expected: dict[str, str]
    """Expected answers of queries that have none."""
    unknown: list[int]
    """Passages of each answer that are in no chunk, and whose text is not known."""
    texts: list[RetrievedText]
    """What is in contexts and in no chunk, with its places."""
    failed: dict[str, str]
    """Queries on which the system failed, with the error that the file says."""


def read_answer_file(
    dataset: Dataset, path: Path, observer: Observer, graded_by: str
) -> AnswerFile:
    """Return the answers of a file, and those of them that can be graded."""
    from ragforge.pipeline.answer.asking_systems import PassageFinder
    from ragforge.pipeline.text_grades import standing_by_question

    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks()}
    everything = dataset.require_accepted_queries()
    given = graded_by_scores(read_answers(path, graded_by=graded_by))
    totals = (f"{told}; the rows count" for told in wrong_totals(given, read_totals(path)))
    for told in (*totals, *lone_scores(given), *other_verdicts(given)):
        observer(Event("note", message=f"{path}: {told}"))
    rows = with_query_ids(given, everything, observer)
    expected, notes = expected_answers(rows, everything)
    if (chosen := dataset.chosen) is not None:
        rows = [row for row in rows if row.query_id in chosen.query_ids]
        if not rows:
            raise DataError(f"{path}: answers none of the queries of {chosen.selection.in_words}")
    if not rows:
        raise DataError(
            f"{path}: none of its questions is that of one query of {dataset.path}, whose first is "
            f"{shown(everything[0].query)}"
        )
    failed = {row.query_id: row.failure for row in rows if row.failure}
    rows = _with_an_answer(rows, path, observer)
    queries = expecting(dataset.require_queries(), expected)
    there = list(dataset.texts_as_chunks())
    known = (text.chunk_id for text in there)
    finder = PassageFinder(list(chunks.values()), known, standing_by_question(dataset))
    by_id = {query.query_id: query for query in everything}
    asked = {query_id: query.asked for query_id, query in by_id.items()}
    placed = _resolved(rows, finder, asked)
    for message in filter(None, (*notes, finder.misnamed)):
        observer(Event("note", message=message))
    answers = placed.answers
    chunks |= {chunk.chunk_id: chunk for chunk in (*there, *map(text_as_chunk, placed.texts))}
    current = _to_questions_of_now(answers, by_id, observer)
    todo = list(cases(queries, current, chunks))
    if not todo:
        raise DataError(
            f"{path}: answers none of the queries of {dataset.path} that have an expected "
            f"answer (its first query_id is {answers[0].query_id!r})"
        )
    if len(todo) < len(current):
        left = len(current) - len(todo)
        observer(Event("note", message=f"{left} answers have no query with an expected answer"))
    unknown = [unknown_passages(answer, chunks) for answer in answers]
    return AnswerFile(answers, todo, expected, unknown, placed.texts, failed)


def _with_an_answer(rows: Sequence[AnswerRow], path: Path, observer: Observer) -> list[AnswerRow]:
    """Return the rows without failures, which are told.

    Raises:
        DataError: All are failures.
    """
    answered = [row for row in rows if not row.failure]
    if not answered:
        raise DataError(f"{path}: each row is a failure; the first: {rows[0].failure}")
    if n_failed := len(rows) - len(answered):
        n = plural(n_failed, "row has", "rows have")
        told = f"{path}: {n} an error in the place of an answer: no value, but a failure"
        observer(Event("note", message=told))
    return answered


def _to_questions_of_now(
    answers: Sequence[Answer], queries: Mapping[str, Query], observer: Observer
) -> list[Answer]:
    """Return the answers but for those to other questions than are asked now, which are told."""
    current = [answer for answer in answers if not is_outdated(answer, queries)]
    if n_outdated := len(answers) - len(current):
        told = f"{plural(n_outdated, 'answer')} to questions that were worded otherwise: not graded"
        observer(Event("note", message=told))
    return current


def with_query_ids(
    rows: Iterable[AnswerRow], queries: Iterable[Query], observer: Observer
) -> list[AnswerRow]:
    """Return the rows with the ids of their queries; those of no query are left out and told.

    An id goes before the question, unless it is just called id and no query has it: then it is the
    number of the row. Questions are the same that differ in case, blanks and punctuation alone.
    Where several queries ask the same, rows go to them in the order of the ids, those that count
    first; where these expect different answers, nobody knows which row is of which, and all are
    left out.

    Args:
        rows: Answers, some or all without an id.
        queries: Those of the dataset.
        observer: Told of questions that no query asks, and of those that several ask.

    Raises:
        DataError: A question is answered more often than it is asked, or is that of another query
            than the id.
    """
    ids: dict[str, list[str]] = {}
    known: dict[str, str] = {}
    expected: dict[str, tuple[str, bool]] = {}
    for query in sorted(queries, key=lambda query: (query.status != "accepted", query.query_id)):
        known[query.query_id] = query.query
        if query.status == "accepted":
            answer = _folded(query.expected_answer or "").rstrip(_STOPS)
            expected[query.query_id] = (answer, query.answerable)
        ids.setdefault(normal_question(query.query), []).append(query.query_id)
    named: list[AnswerRow] = []
    unasked: list[str] = []
    repeated: dict[str, str] = {}
    untold: dict[str, str] = {}
    taken = set[str]()
    for row in rows:
        asked_by = _asked_by(row, ids, known)
        if not asked_by:
            unasked.append(row.question)
            continue
        if len({expected[one] for one in asked_by if one in expected}) > 1:
            untold.setdefault(asked_by[0], row.question or row.asked)
            continue
        query_id = next((one for one in asked_by if one not in taken), None)
        if query_id is None:
            raise DataError(f"{row.where}: {shown(row.question or row.query_id)} comes twice")
        if len(asked_by) > 1:
            repeated.setdefault(asked_by[0], row.question)
        taken.add(query_id)
        named.append(replace(row, query_id=query_id))
    _note_questions(unasked, "no query of the set asks {} of them", observer)
    several = "several queries of the set ask {} of them"
    _note_questions(list(repeated.values()), several, observer)
    differing = (
        "{} of them left out, as several queries ask the same and expect different answers; name "
        "their query_id"
    )
    _note_questions(list(untold.values()), differing, observer)
    return named


def _asked_by(row: AnswerRow, ids: Mapping[str, list[str]], known: Mapping[str, str]) -> list[str]:
    """Return the ids of the queries that a row may be of."""
    if not row.query_id:
        return ids.get(normal_question(row.question), [])
    same = ids.get(normal_question(row.asked), []) if row.asked else []
    if not same or row.query_id in same:
        return [row.query_id]
    if row.query_id not in known and row.has_plain_id:
        return same
    asks = f"asks {shown(known[row.query_id])}" if row.query_id in known else "is not in the set"
    raise DataError(
        f"{row.where}: query {shown(row.query_id)} {asks}, and the question of the row, "
        f"{shown(row.asked)}, is that of {shown(same[0])}; leave the id or the question out"
    )


def _note_questions(questions: list[str], what: str, observer: Observer) -> None:
    if questions:
        examples = ", ".join(shown(question) for question in questions[:_EXAMPLES])
        message = f"answers by question: {what.format(len(questions))}: {examples}"
        observer(Event("note", message=message))


def expecting(queries: Iterable[Query], expected: Mapping[str, str]) -> list[Query]:
    """Return queries, those that lack an expected answer with the one that a file brings."""
    return [
        query.model_copy(update={"expected_answer": expected[query.query_id]})
        if query.query_id in expected
        else query
        for query in queries
    ]


def _resolved(
    rows: list[AnswerRow], contexts: PassageFinder, asked: Mapping[str, str]
) -> PlacedAnswers:
    """Return the answers with the chunks that hold the passages their systems had before them.

    Args:
        rows: The answers.
        contexts: Finds the chunks.
        asked: The question of each query.
    """
    answers = []
    for row in rows:
        question = asked.get(row.query_id, "")
        passages = (ContextPassage((name,), (name,)) for name in row.chunk_ids)
        named = contexts.find(passages, question)
        held = [contexts.quoted(passage.quote, passage.doc_id) for passage in row.passages]
        ids = [*named.chunk_ids, *(chunk_id for chunk_id in held if chunk_id is not None)]
        answers.append(
            Answer(
                query_id=row.query_id,
                answer=row.answer,
                chunk_ids=tuple(dict.fromkeys(ids)),
                n_unknown_passages=row.n_unknown_passages + named.n_unknown + held.count(None),
                latency_s=row.latency_s,
                cost_usd=row.cost_usd,
                query_sha256=row.query_sha256 or (question_digest(question) if question else ""),
                given=row.grade,
            )
        )
    return contexts.placed(answers)


def given_grades(todo: Iterable[Case], answers: Iterable[Answer]) -> list[AnswerGrade]:
    """Return the grades that came with answers, of those that can be graded and brought one."""
    given = {answer.query_id: answer.given for answer in answers}
    found = ((case.query, given.get(case.query.query_id)) for case in todo)
    return [
        _as_grade(query.query_id, grade.settled(answerable=query.answerable))
        for query, grade in found
        if grade is not None
    ]


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
    """Yield what is to be told of rows that have a score and no verdict.

    Args:
        rows: All of a file, as `graded_by_scores` returns them.
    """
    alone = [row for row in rows if row.lone_score]
    others = [row for row in alone if row.grade_of_score is None]
    n = plural(len(alone), "answer brings a score", "answers bring scores")
    if others:
        yield (
            f"{n} alone, and {len(others)} are not 0, 0.5 or 1, such as {others[0].lone_score}: "
            "another scale, on which 1 need not be correct; none is a grade, and none is used; say "
            "isCorrect or verdict beside a score"
        )
    elif alone:
        yield f"{n} alone: 1 is taken as correct, 0.5 as partial, 0 as incorrect"


def other_verdicts(rows: Iterable[AnswerRow]) -> Iterator[str]:
    """Yield what is to be told of verdicts that are no grades.

    Args:
        rows: All of a file.
    """
    others = [row.other_verdict for row in rows if row.other_verdict]
    if others:
        n = plural(len(others), "verdict is", "verdicts are")
        yield f"{n} none of {', '.join(get_args(Verdict))}, such as {others[0]}, and no grade"


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
    """Return the values of each rate and mean; a row without a value has none."""
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
