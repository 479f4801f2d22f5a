"""Checking what answers say against their context: of live traffic, or of a dataset's systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.deferred import dataclass
from ragforge.errors import DataError, did_you_mean
from ragforge.files.formats.answers import AnswerRow, TrafficRow, read_answers, read_traffic
from ragforge.observe import Observer
from ragforge.pipeline.backend import Backend, open_backend
from ragforge.pipeline.job import Job, OutputFile, ResultSpool, all_failed
from ragforge.records import Grounding
from ragforge.stages.ground.lexical import LexicalGrounder
from ragforge.stages.ground.parts import Exchange, Passage
from ragforge.stages.ground.stage import ground_exchanges
from ragforge.stages.ground.summary import GroundingSummary, summarise

if TYPE_CHECKING:
    from ragforge.corpus.quote_locations import ChunkIndex
    from ragforge.files.set.dataset import Dataset
    from ragforge.files.set.sorted_records import ChunkTexts
    from ragforge.stages.ground.llm import LLMGrounder

PROMPT = "check_claims"

_Exchanges = Callable[[], AbstractContextManager[Iterable[Exchange]]]


@dataclass(frozen=True, slots=True)
class GroundingResult:
    """What checking came to.

    Args:
        grounder: Name of the model, or `offline`.
        summary: None for a dry run.
        estimate: What a dry run counted; None in earnest.
    """

    grounder: str
    summary: GroundingSummary | None
    estimate: dict[str, object] | None = None


async def ground_traffic(
    answers: Path, out: Path, job: Job, store_path: Path | None = None
) -> GroundingResult:
    """Check the answers of a file that has their contexts, however many there are.

    A file is read once before anything is asked, so that a row that does not hold to the format
    costs nothing; then, as a pipe at once, answers are read as they are checked. Groundings are
    sorted on disk. Failures go to `OUT.failures.jsonl` beside the file.

    Args:
        answers: File of answers with contexts.
        out: File of groundings to write.
        job: Model and budget. A dry run writes nothing.
        store_path: Where replies are kept; `.ragforge/` in the folder of `out` where None.

    Raises:
        DataError: The file does not hold to its format; nothing is written.
        EndpointError, BudgetError: The run was stopped, what was checked is written, unless the
            file has more already; or every answer failed.
    """

    @contextmanager
    def exchanges() -> Iterator[Iterable[Exchange]]:
        if answers.is_file():
            for _ in read_traffic(answers):
                pass
        yield map(_of_traffic, read_traffic(answers))

    return await _ground(exchanges, OutputFile.beside(out, store_path), job)


async def ground_system(
    dataset: Dataset, answers: Path | str, out: Path, job: Job
) -> GroundingResult:
    """Check the answers of a system against a dataset's chunks; replies go to the dataset's store.

    Args:
        dataset: Has chunks.
        answers: File of answers that name their chunks, or name of a system in the dataset.
        out: As for `ground_traffic`.
        job: As for `ground_traffic`.

    Raises:
        DataError: There are no such answers, or no chunks, or somebody changed these.
        EndpointError, BudgetError: As for `ground_traffic`.
    """
    from ragforge.files.set.integrity import require_own_chunks

    require_own_chunks(dataset)
    rows = _rows(dataset, answers, job.observer)
    place = OutputFile(out, dataset.store_path)
    return await _ground(partial(_of_dataset, rows, dataset), place, job, total=len(rows))


def _grounder(backend: Backend) -> LexicalGrounder | LLMGrounder:
    if backend.asker is None:
        return LexicalGrounder()
    from ragforge.stages.ground.llm import LLMGrounder

    return LLMGrounder(backend.asker)


async def _ground(
    open_exchanges: _Exchanges, out: OutputFile, job: Job, *, total: int | None = None
) -> GroundingResult:
    async with open_backend(job, PROMPT, out, "ground") as backend:
        grounder = _grounder(backend)
        workers = backend.stage_workers(job)
        with _spool(out.path.parent) as grounded, open_exchanges() as exchanges:
            with grounded.written_to(out.path, job, unless=(DataError,)):
                await ground_exchanges(exchanges, grounder, workers, grounded, total=total)
            if job.mode.dry_run:
                return GroundingResult(backend.name, None, backend.estimate())
            summary = summarise(grounded.results())
    if grounded.first_failure is not None and summary.n_failed == summary.n_answers:
        what = f"checking failed on all {summary.n_answers} answers"
        raise all_failed(backend.name, what, grounded.first_failure)
    return GroundingResult(backend.name, summary)


def _spool(folder: Path) -> ResultSpool[Grounding]:
    return ResultSpool(Grounding, lambda item: (item.query_id,), folder)


def _of_traffic(row: TrafficRow) -> Exchange:
    passages = tuple(Passage(item.chunk_id, item.text) for item in row.contexts)
    return Exchange(row.query_id, row.question, row.answer, passages, failure=row.failure)


def _rows(dataset: Dataset, answers: Path | str, observer: Observer) -> list[AnswerRow]:
    if isinstance(answers, Path):
        from ragforge.pipeline.answer.answer_files import with_query_ids

        return with_query_ids(
            (row for row in read_answers(answers) if not row.failure),
            dataset.all_queries(),
            observer,
        )
    names = dataset.answer_names()
    if answers not in names:
        near = did_you_mean(answers, names)
        there = f"there are: {', '.join(names)}" if names else "there are none"
        raise DataError(f"{dataset.path}: has no answers of a system {answers!r}{near}; {there}")
    return [
        AnswerRow(
            answer.query_id,
            answer.answer,
            answer.chunk_ids,
            n_unknown_passages=answer.n_unknown_passages,
        )
        for answer in dataset.answers(answers)
    ]


@contextmanager
def _of_dataset(rows: list[AnswerRow], dataset: Dataset) -> Iterator[Iterable[Exchange]]:
    from ragforge.corpus.quote_locations import ChunkIndex

    questions = {query.query_id: query.query for query in dataset.all_queries()}
    documents = {passage.doc_id for row in rows for passage in row.passages}
    index = ChunkIndex(chunk for chunk in dataset.chunks() if chunk.doc_id in documents)
    wanted = {chunk_id for row in rows for chunk_id in row.chunk_ids}
    with dataset.chunk_texts(wanted) as texts:
        if wanted and not any(chunk_id in texts for chunk_id in wanted):
            raise DataError(
                f"{dataset.path}: has none of the chunks that the answers name, such as "
                f"{min(wanted)!r}"
            )
        yield (
            _of_row(row, questions.get(row.query_id, ""), _found(row, texts, index)) for row in rows
        )


def _found(row: AnswerRow, texts: ChunkTexts, index: ChunkIndex) -> Iterator[Passage | str]:
    """Yield each passage before an answer, or its name where it is not in the dataset."""
    for chunk_id in row.chunk_ids:
        yield Passage(chunk_id, texts[chunk_id]) if chunk_id in texts else chunk_id
    for passage in row.passages:
        held = index.holding(passage.quote, passage.doc_id)
        yield Passage(held[0].chunk_id, held[0].text) if held else passage.doc_id
    yield from ["a passage in no chunk"] * row.n_unknown_passages


def _of_row(row: AnswerRow, question: str, found: Iterable[Passage | str]) -> Exchange:
    there: list[Passage] = []
    lost: list[str] = []
    for item in found:
        if isinstance(item, Passage):
            there.append(item)
        else:
            lost.append(item)
    return Exchange(row.query_id, question, row.answer, tuple(there), tuple(lost))
