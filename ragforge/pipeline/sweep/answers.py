"""The answers of a sweep: asked of a system from what configurations retrieved, and graded.

A system is asked each question with the same contexts once, whichever
configurations retrieved them; what a model is asked stands in the call store, what another system
answered in a file of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from ragforge.config import Settings
from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.errors import EndpointError, UsageError
from ragforge.evaluating.configurations import Configuration
from ragforge.evaluating.sweep_answers import (
    AnsweredConfiguration,
    AnswersForecast,
    SweepAnswers,
    compare_answers,
    names_best,
)
from ragforge.files.record_files import read_records, write_records
from ragforge.files.set.dataset import Dataset
from ragforge.observe import silent
from ragforge.pipeline.answer.answering import grading_prompt, prepare_grading
from ragforge.pipeline.backend import Backend, open_backend
from ragforge.pipeline.job import Job, all_failed
from ragforge.pipeline.sweep.answer_log import AnswerLog
from ragforge.pipeline.sweep.finals import Answering, Finals, Question
from ragforge.pipeline.sweep.rankings import digest
from ragforge.pipeline.sweep.spending import Spending
from ragforge.plugins import HandedOver, find, sources_digest
from ragforge.records import Failure, Query
from ragforge.retrieval.answerers import GROUP
from ragforge.retrieval.context_readers import ContextReader, make_context_reader
from ragforge.stages.answer.reading import PROMPT, ModelReader
from ragforge.stages.answer.stage import Case, grade_answers
from ragforge.stages.runner import Work, Workers, collect, nothing

_FAILURES: Final = "answers.failures.jsonl"
_IN_A_ROW: Final = 20
"""Failures that say that the system is down."""


@dataclass(slots=True)
class _Answers:
    """Answers by the key of the question, and why others have none."""

    texts: dict[str, str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where calls of answers are stored, and failures beside those of the set.

    Args:
        dataset: Has the call store.
        folder: Of the sweep.
    """

    dataset: Dataset
    folder: Path

    @property
    def store_path(self) -> Path:
        """The call store."""
        return self.dataset.store_path

    @property
    def path(self) -> Path:
        """The file of failures."""
        return self.folder / _FAILURES

    def failures(self) -> list[Failure]:
        """Return what failed before."""
        own = list(read_records(self.path, Failure)) if self.path.exists() else []
        return [*own, *self.dataset.failures()]

    def write(self, failures: Sequence[Failure]) -> None:
        """Write what failed.

        Raises:
            DataError: It cannot be written.
        """
        if failures or self.path.exists():
            write_records(self.path, failures, lambda item: (item.what, item.key))


def check_answering(answering: Answering, job: Job) -> ContextReader | None:
    """Return the system that answers, None for the model; refused is what cannot.

    Raises:
        UsageError: It cannot be made, takes no contexts, or is a model and none is named.
    """
    if answering.is_model:
        if is_offline(job.settings.model.name):
            raise UsageError(
                "--system model: the model answers from the contexts, and none is named; expected "
                "--model NAME (and --base-url URL), or a system of yours"
            )
        return None
    settings = job.settings
    return make_context_reader(
        answering.system, timeout_s=settings.model.timeout_s, services=settings.systems
    )


async def answer_finals(
    finals: Finals, place: AnswerPlace, answering: Answering, reader: ContextReader | None, job: Job
) -> SweepAnswers:
    """Have a system answer from what the finalists retrieved, and grade its answers.

    Args:
        finals: What is to be answered.
        place: Of calls and failures.
        answering: Who answers.
        reader: As `check_answering` returned it.
        job: Model and budget.

    Raises:
        UsageError: The system retrieves by itself.
        DataError: The disk is full.
        EndpointError, BudgetError: It was stopped, what was answered is kept; or all failed.
    """
    spending = Spending(job.observer)
    job = Job(job.settings, spending, job.mode, job.account)
    log = AnswerLog.opened(_log_path(place.folder, answering, job.settings), anew=answering.again)
    questions = finals.distinct
    n_kept = len(questions.keys() & log.answers.keys())
    async with open_backend(job, grading_prompt(job), place, "ask", "facts", "answer") as backend:
        try:
            answers = await _answers(questions, reader, log, backend, job)
            answered, failures = await _graded(finals, answers, place.dataset, backend, job)
        finally:
            backend.note_in(place.dataset)
        judge = backend.name
    place.write([*answers.failures.values(), *failures])
    if not any(each.grades for each in answered):
        raise all_failed(judge, f"grading failed on all {len(questions)} answers", failures[0])
    return SweepAnswers(
        system=str(answering.system),
        judge=judge,
        top=finals.top,
        results=compare_answers(answered, finals.design),
        n_queries=len(finals.query_ids),
        n_configurations=finals.n_configurations,
        n_left_out=finals.n_left_out,
        n_asked=0 if answering.is_model else len(questions) - n_kept,
        n_kept=n_kept,
        calls=spending.calls,
        cost_usd=spending.cost_usd,
        names_best=names_best(answered),
    )


async def forecast_finals(
    finals: Finals, place: AnswerPlace, answering: Answering, job: Job
) -> AnswersForecast:
    """Count what answers would take, without asking anything; a system of the user's is not made.

    Args:
        finals: What is to be answered.
        place: Of calls and failures.
        answering: Who answers.
        job: In a dry run.
    """
    path = None if answering.again else _log_path(place.folder, answering, job.settings)
    log = AnswerLog.opened(path)
    questions = finals.distinct
    kept = questions.keys() & log.answers.keys()
    async with open_backend(job, grading_prompt(job), place) as backend:
        answers = _Answers({key: log.answers[key] for key in kept})
        if answering.is_model:
            answers = await _answers(questions, None, log, backend, job)
        for key, question in questions.items():
            answers.texts.setdefault(key, _supposed_answer(question.query))
        await _graded(finals, answers, place.dataset, backend, job)
        estimate = backend.estimate()
    return AnswersForecast(
        system=str(answering.system),
        top=finals.top,
        n_configurations=len(finals.questions),
        n_queries=len(finals.query_ids),
        n_left_out=finals.n_left_out,
        asked=0 if answering.is_model else len(questions) - len(kept),
        kept=len(kept),
        estimate=estimate,
        is_exact=finals.is_exact,
    )


def _supposed_answer(query: Query) -> str:
    """Return an answer that no rule grades, about as long as the expected one."""
    return f"{query.asked} {query.expected_answer}"


def _log_path(folder: Path, answering: Answering, settings: Settings) -> Path | None:
    """Return where answers are kept; None for a model, and for an object that no digest tells."""
    system = answering.system
    if answering.is_model or isinstance(system, HandedOver):
        return None
    service = settings.systems.get(system)
    if service is not None:
        source = service.model_dump_json()
    elif system.startswith(("http:", "https:")):
        source = ""
    else:
        source = sources_digest(find(GROUP, system))
    return folder / f"answers-{digest(system, source)}.jsonl"


async def _answers(
    questions: Mapping[str, Question],
    reader: ContextReader | None,
    log: AnswerLog,
    backend: Backend,
    job: Job,
) -> _Answers:
    """Ask each question that has no answer yet."""
    found = _Answers({key: log.answers[key] for key in questions.keys() & log.answers.keys()})
    asker = backend.with_prompt(PROMPT) if reader is None else None
    by_whom = reader or (ModelReader(asker) if asker else None)
    assert by_whom is not None
    in_a_row = 0

    async def ask(question: Question) -> str:
        nonlocal in_a_row
        try:
            text = await by_whom.read(question.query.asked, question.contexts)
        except Exception as error:
            in_a_row += 1
            if reader is not None and in_a_row >= _IN_A_ROW:
                raise EndpointError(
                    f"the system failed on {in_a_row} questions in a row; the last: {error}"
                ) from error
            raise
        in_a_row = 0
        log.add(question.key, text)
        found.texts[question.key] = text
        return text

    n = job.settings.model.concurrency if reader else backend.workers(0)
    observer = silent if backend.tally else job.observer
    work: Work[Question, str] = Work(
        stage="ask", key=_failure_key, do=ask, workers=Workers(n, observer, backend.stop)
    )
    left = [each for key, each in questions.items() if key not in found.texts]
    asked = await collect(left, work)
    keys = {_failure_key(each): key for key, each in questions.items()}
    found.failures = {keys[failure.key]: failure for failure in asked.failures}
    if not found.texts and backend.tally is None:
        first = asked.failures[0]
        raise EndpointError(
            f"the system failed on all {len(questions)} questions; the first: {first.message}"
        )
    return found


def _failure_key(question: Question) -> str:
    return f"{question.query.query_id}/{question.key}"


async def _graded(
    finals: Finals, answers: _Answers, dataset: Dataset, backend: Backend, job: Job
) -> tuple[list[AnsweredConfiguration], list[Failure]]:
    """Return the grades of answers by configuration, and what could not be graded."""
    placed = [
        (configuration, Case(question.query, answers.texts[question.key], question.contexts))
        for configuration, of in finals.questions.items()
        for question in of.values()
        if question.key in answers.texts
    ]
    grading = await prepare_grading(dataset, [case for _, case in placed], backend, job)
    cases: dict[Configuration, list[Case]] = {item: [] for item in finals.questions}
    for (configuration, _), case in zip(placed, grading.cases, strict=True):
        cases[configuration].append(case)
    answered, failures = [], []
    for configuration in finals.questions:
        graded = await grade_answers(
            cases[configuration],
            grading.judge,
            system=configuration.name,
            workers=backend.stage_workers(job),
            keep=nothing,
        )
        failures += graded.failures
        tokens = finals.prompt_tokens.get(configuration, 0.0)
        answered.append(
            AnsweredConfiguration(
                configuration,
                {case.query.query_id: case.answer for case in cases[configuration]},
                {item.query_id: item for item in graded.results if item.verdict is not None},
                _failed(finals, configuration, answers, graded.failures),
                tokens,
            )
        )
    return answered, failures


def _failed(
    finals: Finals,
    configuration: Configuration,
    answers: _Answers,
    ungraded: Iterable[Failure],
) -> dict[str, str]:
    """Return why queries have no grade."""
    questions = finals.questions[configuration]
    failed = dict.fromkeys(set(finals.query_ids) - questions.keys(), "retrieval failed")
    for query_id, question in questions.items():
        if question.key not in answers.texts:
            failed[query_id] = f"no answer: {answers.failures[question.key].message}"
    for failure in ungraded:
        query_id = failure.key.removeprefix(f"{configuration.name}/")
        failed[query_id] = f"not graded: {failure.message}"
    return dict(sorted(failed.items()))
