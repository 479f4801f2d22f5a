"""Grading the answers of a RAG system."""

from dataclasses import dataclass
from pathlib import Path

from ragforge.config import Settings
from ragforge.errors import DataError, EndpointError
from ragforge.files.answers import AnswerRow, read_answers
from ragforge.files.dataset import Dataset
from ragforge.files.run_names import checked_name
from ragforge.files.values import shown
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.answered_questions import with_query_ids
from ragforge.pipeline.backend import EARNEST, Backend, Mode, of_stages, open_backend
from ragforge.pipeline.contexts import Contexts
from ragforge.pipeline.facts import GRADING, GRADING_AT_ONCE, Ready, ready_by_facts
from ragforge.records import Answer, AnswerGrade, Chunk, Failure
from ragforge.stages.answer.cases import Case, cases, unknown_passages
from ragforge.stages.answer.lexical import LexicalAnswerJudge
from ragforge.stages.answer.llm import LLMAnswerJudge
from ragforge.stages.answer.stage import grade_answers
from ragforge.stages.pouring import Collected
from ragforge.systems import Passage


@dataclass(frozen=True, slots=True)
class AnsweringResult:
    """What grading came to."""

    system: str
    judge: str
    n_answers: int
    grades: list[AnswerGrade]
    failures: list[Failure]
    estimate: dict[str, object] | None


async def grade_system(
    dataset: Dataset,
    answers_path: Path,
    system: str,
    settings: Settings,
    observer: Observer,
    mode: Mode = EARNEST,
) -> AnsweringResult:
    """Take the answers of a system into a dataset and grade them.

    Args:
        dataset: Has queries with expected answers, and chunks.
        answers_path: File of answers.
        system: Name to keep them under.
        settings: Model and budget.
        observer: Told of progress.
        mode: A dry run writes nothing.

    Raises:
        DataError: The file does not hold to its format, or answers none of the queries.
        EndpointError, BudgetError: The run was stopped, what was graded is written; or every
            answer failed.
    """
    checked_name(system)
    answers, todo = _read(dataset, answers_path, observer)
    if not mode.dry_run:
        _take_in(dataset, system, answers)
    async with open_backend(
        settings,
        GRADING_AT_ONCE if mode.single_call else GRADING,
        dataset.store_path,
        observer,
        mode=mode,
        failures=of_stages(dataset.failures, "facts", "answer"),
    ) as backend:

        def keep(graded: Collected[AnswerGrade]) -> None:
            if not mode.dry_run:
                _write(dataset, system, graded)
                backend.note_in(dataset)

        ready = await _ready(dataset, todo, backend, settings, observer, mode)
        graded = await grade_answers(
            ready.cases,
            ready.judge,
            system=system,
            concurrency=backend.workers(settings.model.concurrency),
            observer=silent if mode.dry_run else observer,
            keep=keep,
            on_stop=backend.stop,
        )
        if mode.dry_run:
            return AnsweringResult(system, backend.name, len(todo), [], [], backend.estimate())
    _refuse_total_failure(backend.name, graded)
    return AnsweringResult(
        system, backend.name, len(todo), graded.results, graded.failures, estimate=None
    )


def _take_in(dataset: Dataset, system: str, answers: list[Answer]) -> None:
    """Write answers; what is left of other ones under their name must not stand beside them."""
    name = f"answers/{system}.jsonl"
    before = dataset.manifest.files.get(name)
    dataset.write_answers(system, answers)
    if dataset.manifest.files.get(name) == before:
        return
    dataset.replace_failures("ask", [], lambda key: key.startswith(f"{system}/"))
    if system in dataset.answer_grade_names():
        dataset.write_answer_grades(system, [])


async def _ready(
    dataset: Dataset,
    todo: list[Case],
    backend: Backend,
    settings: Settings,
    observer: Observer,
    mode: Mode,
) -> Ready:
    if backend.asker is None:
        return Ready(todo, LexicalAnswerJudge())
    if mode.single_call:
        return Ready(todo, LLMAnswerJudge(backend.asker))
    return await ready_by_facts(dataset, todo, backend.asker, backend, settings, observer)


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


def _read(dataset: Dataset, path: Path, observer: Observer) -> tuple[list[Answer], list[Case]]:
    """Return the answers of a file, and those of them that can be graded."""
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks()}
    queries = dataset.require_queries()
    rows = with_query_ids(read_answers(path), queries, observer)
    if not rows:
        raise DataError(
            f"{path}: none of its questions is one of {dataset.path}, whose first is "
            f"{shown(queries[0].query)}"
        )
    answers = _resolved(rows, chunks)
    _tell_unknown([unknown_passages(answer, chunks) for answer in answers], observer)
    todo = list(cases(queries, answers, chunks))
    if not todo:
        raise DataError(
            f"{path}: answers none of the queries of {dataset.path} that have an expected "
            f"answer (its first query_id is {answers[0].query_id!r})"
        )
    if len(todo) < len(answers):
        left = len(answers) - len(todo)
        observer(Event("note", message=f"{left} answers have no query with an expected answer"))
    return answers, todo


def _resolved(rows: list[AnswerRow], chunks: dict[str, Chunk]) -> list[Answer]:
    """Return the answers with the chunks that hold the passages their systems had before them."""
    contexts = Contexts(list(chunks.values()))
    answers = []
    for row in rows:
        named = contexts.find(Passage((name,), (name,)) for name in row.chunk_ids)
        held = [contexts.quoted(passage.quote, passage.doc_id) for passage in row.passages]
        ids = [*named.chunk_ids, *(chunk_id for chunk_id in held if chunk_id is not None)]
        answers.append(
            Answer(
                query_id=row.query_id,
                answer=row.answer,
                chunk_ids=tuple(dict.fromkeys(ids)),
                n_unknown_passages=row.n_unknown_passages + named.n_unknown + held.count(None),
                latency_s=row.latency_s,
            )
        )
    return answers


def _tell_unknown(unknown: list[int], observer: Observer) -> None:
    concerned = sum(map(bool, unknown))
    if concerned:
        told = f"{sum(unknown)} retrieved passages are in no chunk; hallucination is not checked"
        observer(Event("note", message=f"{told} for the {concerned} answers that had them"))
