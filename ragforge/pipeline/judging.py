"""Judging what runs retrieved, or pairs from a file."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ragforge.config import Settings
from ragforge.errors import DataError, EndpointError
from ragforge.files.dataset import Dataset
from ragforge.files.jsonl import read_records, write_records
from ragforge.files.pairs import read_pairs
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.backend import EARNEST, Backend, Mode, open_backend
from ragforge.records import Failure, Judgment
from ragforge.stages.judge.lexical import LexicalJudge
from ragforge.stages.judge.llm import LLMJudge
from ragforge.stages.judge.pairs import Judge, Pair, pool, unknown_chunks
from ragforge.stages.judge.stage import judge_pairs, merge_into, open_pairs
from ragforge.stages.judge.summary import QuerySummary, summarise
from ragforge.stages.runner import Collected


@dataclass(frozen=True, slots=True)
class JudgingResult:
    """What judging came to.

    Args:
        judge: Name of the model, or `offline`.
        n_pairs: Pairs in the pool or file.
        judgments: Those made now.
        failures: Of those made now.
        summaries: One a query, over everything judged for it.
        estimate: What a dry run counted; None in earnest.
    """

    judge: str
    n_pairs: int
    judgments: list[Judgment]
    failures: list[Failure]
    summaries: list[QuerySummary]
    estimate: dict[str, object] | None


async def judge_dataset(
    dataset: Dataset,
    run_names: Sequence[str],
    settings: Settings,
    observer: Observer,
    mode: Mode = EARNEST,
) -> JudgingResult:
    """Judge the pool of some runs; pairs that have a grade are not judged again.

    The grades of the offline baseline count as none where a model is to judge.

    Args:
        dataset: Has chunks, queries and runs.
        run_names: Whose top ranks are pooled; all runs where empty.
        settings: Depth, prompt, model and budget.
        observer: Told of progress.
        mode: A dry run writes nothing.

    Raises:
        DataError: There is no such run, or none at all.
        EndpointError, BudgetError: The run was stopped, what was judged is written; or every pair
            failed.
    """
    pairs = _pool(dataset, run_names, settings.judge.depth, observer)
    async with open_backend(
        settings,
        settings.judge.prompt,
        dataset.store_path,
        observer,
        mode=mode,
        failures=dataset.failures,
    ) as backend:
        todo = open_pairs(pairs, dataset.judgments(), partial(_stays, backend, mode))

        def keep(judged: Collected[Judgment]) -> None:
            if judged.results and not mode.dry_run:
                merge_into(dataset, judged)
                backend.note_in(dataset)

        judged = await _judge(todo, backend, settings, observer, keep)
    pooled = {(pair.query_id, pair.chunk_id) for pair in pairs}
    known = [item for item in dataset.judgments() if (item.query_id, item.chunk_id) in pooled]
    return _result(len(pairs), backend, judged, known, mode)


async def judge_file(
    pairs_path: Path, out: Path, settings: Settings, observer: Observer, mode: Mode = EARNEST
) -> JudgingResult:
    """Judge the pairs of a file into a file of judgments.

    Failures go to `OUT.failures.jsonl` beside it, replies to `.ragforge/` in its folder.

    Raises:
        DataError: The file of pairs does not hold to its format.
        EndpointError, BudgetError: As for `judge_dataset`.
    """
    pairs = [
        Pair(row.query_id, row.query, row.chunk_id, row.text) for row in read_pairs(pairs_path)
    ]
    async with open_backend(
        settings,
        settings.judge.prompt,
        out.parent / ".ragforge" / "calls.sqlite",
        observer,
        mode=mode,
        failures=partial(_failures_beside, out),
    ) as backend:

        def keep(judged: Collected[Judgment]) -> None:
            if not mode.dry_run:
                _write(out, judged)

        judged = await _judge(pairs, backend, settings, observer, keep)
    return _result(len(pairs), backend, judged, judged.results, mode)


def _pool(dataset: Dataset, run_names: Sequence[str], depth: int, observer: Observer) -> list[Pair]:
    names = list(run_names) or dataset.run_names()
    if not names:
        raise DataError(
            f"{dataset.path}: has no runs; make one with "
            f"`ragforge retrieve --dataset {dataset.path} --retriever bm25`"
        )
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks()}
    runs = [dataset.run(name) for name in names]
    _tell_unknown(sorted(set(unknown_chunks(runs, chunks))), observer)
    return pool(dataset.require_queries(), runs, chunks, depth)


def _stays(backend: Backend, mode: Mode, old: Judgment) -> bool:
    """Whether a grade is not asked for again."""
    by = old.provenance
    if old.grade is None:
        return False
    if old.source == "human" or by is None or backend.asker is None:
        return True
    if by.kind == "baseline":
        return False
    asker = backend.asker
    same = (by.model, by.prompt_sha256) == (asker.name, asker.prompt.sha256)
    return same or not mode.again


async def _judge(
    pairs: list[Pair],
    backend: Backend,
    settings: Settings,
    observer: Observer,
    keep: Callable[[Collected[Judgment]], None],
) -> Collected[Judgment]:
    judge: Judge = LLMJudge(backend.asker) if backend.asker else LexicalJudge()
    judged = await judge_pairs(
        pairs,
        judge,
        concurrency=settings.model.concurrency,
        observer=silent if backend.tally else observer,
        keep=keep,
    )
    if pairs and len(judged.failures) == len(pairs) and backend.tally is None:
        first = judged.failures[0]
        raise EndpointError(
            f"{backend.name}: judging failed on all {len(pairs)} pairs; the first: {first.kind}: "
            f"{first.message}; --retry-failed asks again for replies that were no use"
        )
    return judged


def _result(
    n_pairs: int,
    backend: Backend,
    judged: Collected[Judgment],
    known: Iterable[Judgment],
    mode: Mode,
) -> JudgingResult:
    return JudgingResult(
        judge=backend.name,
        n_pairs=n_pairs,
        judgments=[] if mode.dry_run else judged.results,
        failures=[] if mode.dry_run else judged.failures,
        summaries=[] if mode.dry_run else summarise(known),
        estimate=backend.estimate() if mode.dry_run else None,
    )


def _beside(out: Path) -> Path:
    return out.with_name(f"{out.name}.failures.jsonl")


def _failures_beside(out: Path) -> Iterable[Failure]:
    beside = _beside(out)
    return read_records(beside, Failure) if beside.exists() else ()


def _write(out: Path, judged: Collected[Judgment]) -> None:
    write_records(out, judged.results, lambda item: (item.query_id, item.chunk_id))
    if judged.failures or _beside(out).exists():
        write_records(_beside(out), judged.failures, lambda item: item.key)


def _tell_unknown(unknown: list[str], observer: Observer) -> None:
    if unknown:
        shown = ", ".join(unknown[:3])
        observer(
            Event(
                "note",
                message=f"{len(unknown)} retrieved chunk ids are not in chunks.jsonl and "
                f"cannot be judged, such as {shown}",
            )
        )
