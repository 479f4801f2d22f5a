"""Grading the answers of a RAG system."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ragforge.errors import DataError, EndpointError
from ragforge.files.formats.answers import AnswerRow, read_answers, read_totals
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import recall
from ragforge.files.text import checked_name, shown
from ragforge.llm.connect import OFFLINE
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.answer.asking_systems import Contexts, refuse_to_replace_answers
from ragforge.pipeline.answer.facts import GRADING, GRADING_AT_ONCE, Ready, ready_by_facts
from ragforge.pipeline.answer.given_grades import (
    expected_answers,
    given_grades,
    lone_scores,
    wrong_totals,
)
from ragforge.pipeline.backend import NO_CALLS, Backend, open_backend
from ragforge.pipeline.job import Job, Mode
from ragforge.records import Answer, AnswerGrade, Chunk, Failure, Query
from ragforge.retrieval import ContextPassage
from ragforge.stages.answer.cases import Case, cases, unknown_passages
from ragforge.stages.answer.lexical import LexicalAnswerJudge
from ragforge.stages.answer.llm import LLMAnswerJudge
from ragforge.stages.answer.stage import grade_answers
from ragforge.stages.generate.gates.repeated_questions import normal_question
from ragforge.stages.runner import Collected, Workers

_EXAMPLES: Final = 3


def with_query_ids(
    rows: Iterable[AnswerRow], queries: Iterable[Query], observer: Observer
) -> list[AnswerRow]:
    """Return the rows with the ids of their queries; those of no query are left out and told.

    An id goes before the question, unless it is just called id and no query has it: then it is the
    number of the row. Questions are the same that differ in case, blanks and punctuation alone.
    Where several queries ask the same, rows go to them in the order of the ids.

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
    for query in sorted(queries, key=lambda query: query.query_id):
        known[query.query_id] = query.query
        ids.setdefault(normal_question(query.query), []).append(query.query_id)
    named: list[AnswerRow] = []
    unasked: list[str] = []
    repeated: dict[str, str] = {}
    taken = set[str]()
    for row in rows:
        asked_by = _asked_by(row, ids, known)
        if not asked_by:
            unasked.append(row.question)
            continue
        query_id = next((one for one in asked_by if one not in taken), None)
        if query_id is None:
            raise DataError(f"{row.where}: {shown(row.question or row.query_id)} comes twice")
        if len(asked_by) > 1:
            repeated.setdefault(asked_by[0], row.question)
        taken.add(query_id)
        named.append(replace(row, query_id=query_id))
    _note_result(unasked, "no query of the set asks", observer)
    _note_result(list(repeated.values()), "several queries of the set ask", observer)
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


def _note_result(questions: list[str], what: str, observer: Observer) -> None:
    if questions:
        examples = ", ".join(shown(question) for question in questions[:_EXAMPLES])
        message = f"answers by question: {what} {len(questions)} of them: {examples}"
        observer(Event("note", message=message))


@dataclass(frozen=True, slots=True)
class AnsweringResult:
    """What grading came to."""

    system: str
    judge: str
    n_answers: int
    grades: list[AnswerGrade]
    failures: list[Failure]
    estimate: dict[str, object] | None
    given_by: str = ""
    """File whose grades these are; "" where a judge was asked."""


async def grade_system(
    dataset: Dataset, answers_path: Path, system: str, job: Job
) -> AnsweringResult:
    """Take the answers of a system into a dataset and grade them.

    Where each answer brings a grade and no judge is asked for, these are the grades. Where one is,
    its grades count, and those of the file are kept beside the answers.

    Args:
        dataset: Has queries with expected answers, and chunks.
        answers_path: File of answers.
        system: Name to keep them under.
        job: Model and budget. A dry run writes nothing.

    Raises:
        DataError: The file does not hold to its format, or answers none of the queries.
        EndpointError, BudgetError: The run was stopped, what was graded is written; or every
            answer failed.
    """
    refuse_to_replace_answers(dataset, checked_name(system))
    dataset = _as_made(dataset, answers_path)
    taken = _read(dataset, answers_path, job.observer, job.mode.graded_by)
    answers, todo = taken.answers, taken.todo
    if not job.mode.dry_run:
        _take_in(dataset, system, taken)
    given = given_grades(todo, answers)
    if given and job.settings.model.name == OFFLINE and not job.mode.with_judge:
        return _by_file(dataset, system, given, answers_path, job.mode)
    _note_given_grades(todo, answers, job.observer)
    _note_unknown_passages(taken.unknown, job.observer)
    return await _by_judge(dataset, system, todo, job)


async def _by_judge(dataset: Dataset, system: str, todo: list[Case], job: Job) -> AnsweringResult:
    """Grade answers by the model that the settings name, or by the offline baseline."""
    prompt = GRADING_AT_ONCE if job.mode.single_call else GRADING
    async with open_backend(job, prompt, dataset, "facts", "answer") as backend:

        def keep(graded: Collected[AnswerGrade]) -> None:
            if not job.mode.dry_run:
                _write(dataset, system, graded)
                backend.note_in(dataset)

        ready = await _ready(dataset, todo, backend, job)
        graded = await grade_answers(
            ready.cases,
            ready.judge,
            system=system,
            workers=Workers(
                backend.workers(job.settings.model.concurrency),
                silent if job.mode.dry_run else job.observer,
                backend.stop,
            ),
            keep=keep,
        )
        if job.mode.dry_run:
            return AnsweringResult(system, backend.name, len(todo), [], [], backend.estimate())
    _refuse_total_failure(backend.name, graded)
    return AnsweringResult(
        system, backend.name, len(todo), graded.results, graded.failures, estimate=None
    )


def _as_made(dataset: Dataset, path: Path) -> Dataset:
    """Return the dataset with the queries chosen that the set's own answers in a file are for."""
    if dataset.chosen is not None or not path.is_file():
        return dataset
    selection = dataset.manifest.selection_of(digest_file(path))
    if selection is None:
        return dataset
    return dataset.choosing(recall(dataset.accepted_queries(), selection))


def _by_file(
    dataset: Dataset, system: str, given: list[AnswerGrade], path: Path, mode: Mode
) -> AnsweringResult:
    """Keep the grades that the answers brought as those that count."""
    if mode.dry_run:
        return AnsweringResult(system, path.name, len(given), [], [], dict(NO_CALLS), path.name)
    _write(dataset, system, Collected(given, []))
    return AnsweringResult(system, path.name, len(given), given, [], None, path.name)


def _take_in(dataset: Dataset, system: str, taken: "_Taken") -> None:
    """Write answers; what is left of other ones under their name must not stand beside them."""
    answers = taken.answers
    if taken.expected:
        dataset.write_queries(_expecting(dataset.all_queries(), taken.expected))
    name = f"answers/{system}.jsonl"
    before = dataset.manifest.files.get(name)
    dataset.write_answers(system, answers)
    if dataset.manifest.files.get(name) == before:
        return
    dataset.replace_failures("ask", [], lambda key: key.startswith(f"{system}/"))
    if system in dataset.answer_grade_names():
        dataset.write_answer_grades(system, [])


async def _ready(dataset: Dataset, todo: list[Case], backend: Backend, job: Job) -> Ready:
    """Return the answers with what they are graded by, and who grades them."""
    if backend.asker is None:
        return Ready(todo, LexicalAnswerJudge())
    if job.mode.single_call:
        return Ready(todo, LLMAnswerJudge(backend.asker))
    return await ready_by_facts(dataset, todo, backend.asker, backend, job)


def _write(dataset: Dataset, system: str, graded: Collected[AnswerGrade]) -> None:
    mine = f"{system}/"
    dataset.write_answer_grades(system, graded.results)
    dataset.replace_failures("answer", graded.failures, lambda key: key.startswith(mine))


def _refuse_total_failure(judge: str, graded: Collected[AnswerGrade]) -> None:
    if len(graded.failures) == len(graded.results):
        first = graded.failures[0]
        raise EndpointError(
            f"{judge}: grading failed on all {len(graded.results)} answers; "
            f"the first: {first.kind}: {first.message}; --retry-failed asks again for replies that "
            "were no use"
        )


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a file of answers brings."""

    answers: list[Answer]
    todo: list[Case]
    """Those that can be graded."""
    expected: dict[str, str]
    """Expected answers of queries that have none."""
    unknown: list[int]
    """Passages of each answer that are in no chunk."""


def _expecting(queries: Iterable[Query], expected: Mapping[str, str]) -> list[Query]:
    return [
        query.model_copy(update={"expected_answer": expected[query.query_id]})
        if query.query_id in expected
        else query
        for query in queries
    ]


def _read(dataset: Dataset, path: Path, observer: Observer, graded_by: str) -> _Taken:
    """Return the answers of a file, and those of them that can be graded."""
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks()}
    everything = dataset.require_accepted_queries()
    given = list(read_answers(path, graded_by=graded_by))
    totals = (f"{told}; the rows count" for told in wrong_totals(given, read_totals(path)))
    for told in (*totals, *lone_scores(given)):
        observer(Event("note", message=f"{path}: {told}"))
    rows = with_query_ids(given, everything, observer)
    expected, notes = expected_answers(rows, everything)
    if (chosen := dataset.chosen) is not None:
        rows = [row for row in rows if row.query_id in chosen.query_ids]
        if not rows:
            raise DataError(f"{path}: answers none of the queries of {chosen.selection.in_words}")
    if not rows:
        raise DataError(
            f"{path}: none of its questions is one of {dataset.path}, whose first is "
            f"{shown(everything[0].query)}"
        )
    for message in notes:
        observer(Event("note", message=message))
    queries = _expecting(dataset.require_queries(), expected)
    answers = _resolved(rows, chunks)
    todo = list(cases(queries, answers, chunks))
    if not todo:
        raise DataError(
            f"{path}: answers none of the queries of {dataset.path} that have an expected "
            f"answer (its first query_id is {answers[0].query_id!r})"
        )
    if len(todo) < len(answers):
        left = len(answers) - len(todo)
        observer(Event("note", message=f"{left} answers have no query with an expected answer"))
    unknown = [unknown_passages(answer, chunks) for answer in answers]
    return _Taken(answers, todo, expected, unknown)


def _resolved(rows: list[AnswerRow], chunks: dict[str, Chunk]) -> list[Answer]:
    """Return the answers with the chunks that hold the passages their systems had before them."""
    contexts = Contexts(list(chunks.values()))
    answers = []
    for row in rows:
        named = contexts.find(ContextPassage((name,), (name,)) for name in row.chunk_ids)
        held = [contexts.quoted(passage.quote, passage.doc_id) for passage in row.passages]
        ids = [*named.chunk_ids, *(chunk_id for chunk_id in held if chunk_id is not None)]
        answers.append(
            Answer(
                query_id=row.query_id,
                answer=row.answer,
                chunk_ids=tuple(dict.fromkeys(ids)),
                n_unknown_passages=row.n_unknown_passages + named.n_unknown + held.count(None),
                latency_s=row.latency_s,
                given=row.grade,
            )
        )
    return answers


def _note_given_grades(todo: Sequence[Case], answers: Iterable[Answer], observer: Observer) -> None:
    """Say what becomes of grades that came with answers, where a judge grades all of them."""
    with_grade = {answer.query_id for answer in answers if answer.given is not None}
    n = sum(case.query.query_id in with_grade for case in todo)
    if n:
        told = f"{n} of {len(todo)} answers bring a grade; the judge grades all, and both stay"
        observer(Event("note", message=told))


def _note_unknown_passages(unknown: list[int], observer: Observer) -> None:
    concerned = sum(map(bool, unknown))
    if concerned:
        told = f"{sum(unknown)} retrieved passages are in no chunk; hallucination is not checked"
        observer(Event("note", message=f"{told} for the {concerned} answers that had them"))
