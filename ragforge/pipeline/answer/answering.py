"""Grading the answers of a RAG system: by facts that are drawn first, or as a whole."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.evaluating.answers.records import (
    answer_digest,
    context_digest,
    expectation_of,
    facts_digest,
    is_of_other,
)
from ragforge.evaluating.formatting import plural
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.query_selection import recall
from ragforge.files.text import checked_name
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.answer.answer_files import (
    AnswerFile,
    expecting,
    given_grades,
    read_answer_file,
)
from ragforge.pipeline.answer.asking_systems import refuse_to_replace_answers
from ragforge.pipeline.backend import NO_CALLS, Backend, open_backend
from ragforge.pipeline.job import Job, all_failed
from ragforge.pipeline.observer_events import emit_answer_grades
from ragforge.pipeline.text_grades import grade_retrieved
from ragforge.records import Answer, AnswerGrade, Fact, Failure, Query
from ragforge.stages.answer.facts import draw_facts, keeping_facts, lacks_facts
from ragforge.stages.answer.lexical import LexicalAnswerJudge
from ragforge.stages.answer.stage import Case, grade_answers, graded_by_rule
from ragforge.stages.asking import Asker
from ragforge.stages.runner import Collected, Judge, Workers

EXTRACTING = "extract_facts"
GRADING = "grade_facts"
GRADING_AT_ONCE = "grade_answer"


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


@dataclass(frozen=True, slots=True)
class Grading:
    """Answers whose queries have their facts as far as these can be had, and who grades them."""

    cases: list[Case]
    judge: Judge[Case, AnswerGrade]


async def grade_system(
    dataset: Dataset, answers_path: Path, system: str, job: Job
) -> AnsweringResult:
    """Take the answers of a system into a dataset and grade them.

    Where answers bring grades and no judge is asked for, these are the grades, and answers without
    one are not graded. Where one is, its grades count, and those of the file are kept beside the
    answers.

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
    dataset = _with_chosen_queries(dataset, answers_path)
    taken = read_answer_file(dataset, answers_path, job.observer, job.mode.graded_by)
    answers, todo = taken.answers, taken.todo
    if not job.mode.dry_run:
        _write_answers(dataset, system, taken)
    given = given_grades(todo, answers)
    if given and is_offline(job.settings.model.name) and not job.mode.with_judge:
        if n_without := len(todo) - len(given):
            told = f"{n_without} of {len(todo)} answers bring no grade, and are not graded"
            job.observer(Event("note", message=told))
        return _by_file(dataset, system, given, taken, answers_path, job)
    _note_given_grades(todo, answers, job.observer)
    _note_unknown_passages(taken.unknown, job.observer)
    return await _by_judge(dataset, system, taken, job)


async def _by_judge(dataset: Dataset, system: str, taken: AnswerFile, job: Job) -> AnsweringResult:
    """Grade answers by the model that the settings name, or by the offline baseline."""
    todo = taken.todo
    async with open_backend(job, grading_prompt(job), dataset, "facts", "answer") as backend:
        grading = await prepare_grading(dataset, todo, backend, job)
        by = _GradedBy(grading.cases, taken.answers)
        stay: dict[str, AnswerGrade] = {}

        def keep(graded: Collected[AnswerGrade]) -> None:
            if not job.mode.dry_run:
                kept = _not_reached(dataset, system, grading.cases, graded)
                stay.update(_not_replaced(dataset, system, by, graded))
                _write(dataset, system, graded, by, job.observer, [*kept, *stay.values()])
                backend.note_in(dataset)

        graded = await grade_answers(
            grading.cases,
            grading.judge,
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
    if stay:
        told = (
            f"the judge failed on {plural(len(stay), 'answer')} with a grade from before: it stays"
        )
        job.observer(Event("note", message=told))
    grades = [stay.get(grade.query_id, grade) for grade in graded.results]
    return AnsweringResult(system, backend.name, len(todo), grades, graded.failures, estimate=None)


def _with_chosen_queries(dataset: Dataset, path: Path) -> Dataset:
    """Return the dataset with the queries chosen that the set's own answers in a file are for."""
    if dataset.chosen is not None or not path.is_file():
        return dataset
    selection = dataset.manifest.selection_of(digest_file(path))
    if selection is None:
        return dataset
    return dataset.choosing(recall(dataset.accepted_queries(), selection))


def _by_file(
    dataset: Dataset,
    system: str,
    given: list[AnswerGrade],
    taken: AnswerFile,
    path: Path,
    job: Job,
) -> AnsweringResult:
    """Keep the grades that the answers brought as those that count."""
    if job.mode.dry_run:
        return AnsweringResult(system, path.name, len(given), [], [], dict(NO_CALLS), path.name)
    by = _GradedBy(taken.todo, taken.answers)
    _write(dataset, system, Collected(given, []), by, job.observer)
    return AnsweringResult(system, path.name, len(given), given, [], None, path.name)


def _write_answers(dataset: Dataset, system: str, taken: AnswerFile) -> None:
    """Write answers; what is left of other ones under their name must not stand beside them."""
    answers = taken.answers
    if taken.expected:
        dataset.write_queries(expecting(dataset.all_queries(), taken.expected))
    name = f"answers/{system}.jsonl"
    before = dataset.manifest.files.get(name)
    with dataset.alone():
        dataset.add_retrieved_texts(taken.texts, "")
        dataset.write_answers(system, answers)
        dataset.drop_uncited_texts()
    grade_retrieved(dataset)
    if dataset.manifest.files.get(name) == before:
        return
    failures = [
        Failure(what="ask", key=f"{system}/{query_id}", kind="error", message=why)
        for query_id, why in taken.failed.items()
    ]
    dataset.replace_failures("ask", failures, lambda key: key.startswith(f"{system}/"))
    if system in dataset.answer_grade_names():
        dataset.write_answer_grades(system, [])


def grading_prompt(job: Job) -> str:
    """Return the name of the prompt that answers are graded with."""
    return GRADING_AT_ONCE if job.mode.single_call else GRADING


async def prepare_grading(
    dataset: Dataset, todo: list[Case], backend: Backend, job: Job
) -> Grading:
    """Return answers, in their order, with what they are graded by, and who grades them.

    Facts that are missing are drawn and written; not in a dry run.

    Args:
        dataset: Keeps the facts.
        todo: Any number of answers to a query.
        backend: The model that grades, with the prompt of `grading_prompt`.
        job: Calls in flight, and who is told.

    Raises:
        DataError: A query has two facts of one id.
        EndpointError, BudgetError: The run was stopped; what was drawn is written.
    """
    from ragforge.stages.answer.llm import LLMAnswerJudge

    if backend.asker is None:
        return Grading(todo, LexicalAnswerJudge())
    if job.mode.single_call:
        return Grading(todo, LLMAnswerJudge(backend.asker))
    return await _with_facts(dataset, todo, backend.asker, backend, job)


class _GradedBy:
    """Tells grades what they were given to, and by what."""

    def __init__(self, cases: Iterable[Case], answers: Iterable[Answer]) -> None:
        self._cases = {case.query.query_id: case for case in cases}
        self._answers = {answer.query_id: answer for answer in answers}

    def noted_in(self, grade: AnswerGrade) -> AnswerGrade:
        """Return a grade that knows what was expected, the answer and its context."""
        case = self._cases[grade.query_id]
        query = case.query
        digests = {
            "expected_sha256": expectation_of(query),
            "facts_sha256": facts_digest(query) if grade.facts else "",
            "answered_sha256": answer_digest(self._answers[grade.query_id]),
            "context_sha256": context_digest(case.contexts),
        }
        return grade.model_copy(update=digests)

    def is_same_judge(self, old: AnswerGrade, failed: AnswerGrade) -> bool:
        """Whether a grade from before is of the judge that failed."""
        a, b = old.provenance, failed.provenance
        if a is None or b is None or (a.kind, a.model, a.protocol) != (b.kind, b.model, b.protocol):
            return False
        # Where no answer is expected there are no facts: another prompt of the judge is asked.
        is_by_facts = self._cases[old.query_id].query.answerable
        return a.prompt_sha256 == b.prompt_sha256 or not is_by_facts

    def is_of_now(self, old: AnswerGrade) -> bool:
        """Whether a grade from before is of the answer, its context and what is expected now."""
        case = self._cases[old.query_id]
        return (
            not is_of_other(old, case.query)
            and old.answered_sha256 in ("", answer_digest(self._answers[old.query_id]))
            and old.context_sha256 in ("", context_digest(case.contexts))
        )


def _write(
    dataset: Dataset,
    system: str,
    graded: Collected[AnswerGrade],
    by: _GradedBy,
    observer: Observer,
    kept: Sequence[AnswerGrade] = (),
) -> None:
    """Write grades, those that are kept in the place of others of their answers."""
    mine = f"{system}/"
    grades = {grade.query_id: by.noted_in(grade) for grade in graded.results}
    stays = {f"{mine}{grade.query_id}" for grade in kept if grade.query_id not in grades}
    grades |= {grade.query_id: grade for grade in kept}
    dataset.write_answer_grades(system, grades.values())
    emit_answer_grades(system, graded.results, observer)
    dataset.replace_failures(
        "answer", graded.failures, lambda key: key.startswith(mine) and key not in stays
    )


def _not_reached(
    dataset: Dataset, system: str, cases: Iterable[Case], graded: Collected[AnswerGrade]
) -> list[AnswerGrade]:
    """Return the grades from before of answers that a run which was stopped did not come to."""
    if system not in dataset.answer_grade_names():
        return []
    left = {case.query.query_id for case in cases} - {grade.query_id for grade in graded.results}
    return [grade for grade in dataset.answer_grades(system) if grade.query_id in left]


def _not_replaced(
    dataset: Dataset, system: str, by: _GradedBy, graded: Collected[AnswerGrade]
) -> dict[str, AnswerGrade]:
    """Return the grades from before that failures take no place of, by query.

    They are the judge's own, and where it failed on all answers, those of any.
    """
    failed = {grade.query_id: grade for grade in graded.results if grade.failure is not None}
    if not failed or system not in dataset.answer_grade_names():
        return {}
    is_for_nothing = all(grade.failure or grade.rule for grade in graded.results)
    return {
        old.query_id: old
        for old in dataset.answer_grades(system)
        if old.failure is None and old.query_id in failed
        if by.is_of_now(old) and (is_for_nothing or by.is_same_judge(old, failed[old.query_id]))
    }


def _refuse_total_failure(judge: str, graded: Collected[AnswerGrade]) -> None:
    if len(graded.failures) == len(graded.results):
        what = f"grading failed on all {len(graded.results)} answers"
        raise all_failed(judge, what, graded.failures[0])


def _note_given_grades(todo: Sequence[Case], answers: Iterable[Answer], observer: Observer) -> None:
    """Tell what becomes of grades that came with answers, where a judge grades all of them."""
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


async def _with_facts(
    dataset: Dataset,
    cases: Sequence[Case],
    asker: Asker,
    backend: Backend,
    job: Job,
) -> Grading:
    """Draw the facts that the answers left to a judge are graded by, and write them.

    Facts that a query has already stay as they are, unless they were drawn from another expected
    answer. In a dry run nothing is written, and facts
    that would have to be drawn are stood for by the expected answer.

    Args:
        dataset: Keeps the facts.
        cases: Answers, also those that a rule decides.
        asker: The model with the prompt that grades by facts.
        backend: Lends the other prompts.
        job: Calls in flight, and who is told.

    Raises:
        DataError: A query has two facts of one id.
        EndpointError, BudgetError: The run was stopped; what was drawn is written.
    """
    from ragforge.stages.answer.llm import DividedJudge, FactJudge, LLMAnswerJudge

    read = [case for case in cases if graded_by_rule(case) is None]
    _refuse_doubled_ids(dataset, read)
    unanswerable = any(not case.query.answerable for case in read)
    otherwise = backend.with_prompt(GRADING_AT_ONCE) if unanswerable else None
    asked = {case.query.query_id: case.query for case in read}
    drawn = await _draw(asked.values(), dataset, backend, job)
    undrawn = {failure.key: failure for failure in drawn.failures}
    queries = {query.query_id: query for query in drawn.results}
    if backend.tally is not None and job.collector is None:
        guessed = _guessed(asked.values(), undrawn)
        queries |= guessed
        _note_guessed_facts(len(guessed), job.observer)
    by_facts = FactJudge(asker, undrawn)
    return Grading(
        [replace(case, query=queries.get(case.query.query_id, case.query)) for case in cases],
        DividedJudge(by_facts, LLMAnswerJudge(otherwise)) if otherwise else by_facts,
    )


async def _draw(
    queries: Iterable[Query], dataset: Dataset, backend: Backend, job: Job
) -> Collected[Query]:
    dry_run = backend.tally is not None
    todo = [query for query in queries if lacks_facts(query)]

    def keep(drawn: Collected[Query]) -> None:
        if not dry_run:
            _write_facts(dataset, drawn, {query.query_id for query in todo})
            backend.note_in(dataset)

    asker = backend.with_prompt(EXTRACTING) if todo else None
    if asker is None:
        nothing: Collected[Query] = Collected()
        keep(nothing)
        return nothing
    return await draw_facts(todo, asker, backend.stage_workers(job), keep)


def _write_facts(dataset: Dataset, drawn: Collected[Query], tried: set[str]) -> None:
    """Put facts beside what the dataset holds now, and failures in the place of older ones."""
    queries = keeping_facts(dataset.all_queries(), drawn.results)
    if drawn.results:
        edited, before = dataset.changed_by_hand("queries.jsonl"), dataset.manifest
        dataset.write_queries(queries)
        if edited:
            # Else `generate` would take the file for its own and write over the edit.
            dataset.write_manifest(before)
    open_ids = {query.query_id for query in queries if lacks_facts(query)}
    dataset.replace_failures(
        "facts", drawn.failures, lambda key: key in tried or key not in open_ids
    )


def _guessed(queries: Iterable[Query], undrawn: dict[str, Failure]) -> dict[str, Query]:
    """Return queries whose facts are still to be asked for, with the expected answer for a fact.

    Where a stored reply was no use there will be no facts, and no call to grade by them.
    """
    open_ids = {key for key, failure in undrawn.items() if failure.kind == "error"}
    return {
        query.query_id: query.model_copy(
            update={
                "facts": (Fact(fact_id="f1", text=query.expected_answer or query.query),),
                "facts_by": None,
            }
        )
        for query in queries
        if query.query_id in open_ids
    }


def _note_guessed_facts(n_undrawn: int, observer: Observer) -> None:
    if n_undrawn:
        observer(
            Event(
                "note",
                message=f"{n_undrawn} queries have no facts yet: a call each to draw them is "
                "counted, and one an answer to grade it by facts that are guessed here",
            )
        )


def _refuse_doubled_ids(dataset: Dataset, cases: Iterable[Case]) -> None:
    for query in (case.query for case in cases):
        ids = [fact.fact_id for fact in query.facts]
        if len(set(ids)) < len(ids):
            raise DataError(
                f"{dataset.path / 'queries.jsonl'}: query {query.query_id}: facts: expected "
                f"distinct fact_ids, got {', '.join(ids)}"
            )
