"""Facts before grades: what answers are judged by is drawn first, and kept in the dataset."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragforge.errors import DataError
from ragforge.files.set.dataset import Dataset
from ragforge.observe import Event, Observer
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.job import Job
from ragforge.records import AnswerGrade, Fact, Failure, Query
from ragforge.stages.answer.by_facts import DividedJudge, FactJudge
from ragforge.stages.answer.cases import Case
from ragforge.stages.answer.facts import draw_facts, keeping_facts, lacks_facts
from ragforge.stages.answer.llm import LLMAnswerJudge
from ragforge.stages.answer.rules import graded_by_rule
from ragforge.stages.asking import Asker
from ragforge.stages.runner import Collected, Judge

EXTRACTING = "extract_facts"
GRADING = "grade_facts"
GRADING_AT_ONCE = "grade_answer"


@dataclass(frozen=True, slots=True)
class Ready:
    """Answers whose queries have their facts as far as these can be had, and who grades them."""

    cases: list[Case]
    judge: Judge[Case, AnswerGrade]


async def ready_by_facts(
    dataset: Dataset,
    cases: Sequence[Case],
    asker: Asker,
    backend: Backend,
    job: Job,
) -> Ready:
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
    read = [case for case in cases if graded_by_rule(case) is None]
    _refuse_doubled_ids(dataset, read)
    unanswerable = any(not case.query.answerable for case in read)
    otherwise = backend.with_prompt(GRADING_AT_ONCE) if unanswerable else None
    drawn = await _draw([case.query for case in read], dataset, backend, job)
    undrawn = {failure.key: failure for failure in drawn.failures}
    queries = {query.query_id: query for query in drawn.results}
    if backend.tally is not None:
        guessed = _guessed((case.query for case in read), undrawn)
        queries |= guessed
        _note_result(len(guessed), job.observer)
    by_facts = FactJudge(asker, undrawn)
    return Ready(
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
            _write(dataset, drawn, {query.query_id for query in todo})
            backend.note_in(dataset)

    asker = backend.with_prompt(EXTRACTING) if todo else None
    if asker is None:
        nothing: Collected[Query] = Collected()
        keep(nothing)
        return nothing
    return await draw_facts(todo, asker, backend.stage_workers(job), keep)


def _write(dataset: Dataset, drawn: Collected[Query], tried: set[str]) -> None:
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


def _note_result(n_undrawn: int, observer: Observer) -> None:
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
