"""Judging what runs retrieved, or pairs from a file."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ragforge.config import Settings
from ragforge.errors import DataError, EndpointError, UsageError
from ragforge.files.dataset import Dataset
from ragforge.files.jsonl import read_records
from ragforge.files.pairs import read_pairs
from ragforge.files.texts import ChunkTexts
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.backend import EARNEST, Backend, Mode, open_backend
from ragforge.pipeline.judged_spool import JudgedSpool, failures_beside
from ragforge.records import Failure, Judgment
from ragforge.stages.judge.lexical import LexicalJudge
from ragforge.stages.judge.llm import LLMJudge
from ragforge.stages.judge.pairs import Pair, PairId, pool
from ragforge.stages.judge.stage import Judging, judge_pairs, open_pairs
from ragforge.stages.judge.summary import QuerySummary, summarise_sorted
from ragforge.stages.runner import Sink


@dataclass(slots=True)
class JudgingResult:
    """What judging came to.

    Args:
        judge: Name of the model, or `offline`.
        n_pairs: Pairs in the pool or file.
        n_judged, n_failed: Of those in work now.
        grades: How many of each.
        first_failure: None where none failed.
        summaries: One a query, over everything judged for it.
        estimate: What a dry run counted; None in earnest.
    """

    judge: str
    n_pairs: int = 0
    n_judged: int = 0
    n_failed: int = 0
    grades: Counter[int] = field(default_factory=Counter)
    first_failure: Failure | None = None
    summaries: list[QuerySummary] = field(default_factory=list)
    estimate: dict[str, object] | None = None

    def result(self, result: Judgment) -> None:
        """Count a judgment."""
        if result.grade is not None:
            self.n_judged += 1
            self.grades[result.grade] += 1

    def failure(self, failure: Failure) -> None:
        """Count a failure."""
        self.n_failed += 1
        self.first_failure = self.first_failure or failure


@dataclass(frozen=True, slots=True)
class _Counted:
    """A sink that counts what it passes on."""

    counts: JudgingResult
    inner: Sink[Judgment]

    def result(self, result: Judgment) -> None:
        self.counts.result(result)
        self.inner.result(result)

    def failure(self, failure: Failure) -> None:
        self.counts.failure(failure)
        self.inner.failure(failure)


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
        UsageError: Another model or prompt graded a part of the pool; see `Mode`.
        EndpointError, BudgetError: The run was stopped, what was judged is written; or every pair
            failed.
    """
    queries = {query.query_id: query.query for query in dataset.require_queries()}
    pooled = _pool(dataset, queries, run_names, settings.judge.depth)
    with ChunkTexts(dataset.path / "chunks.jsonl", {pair.chunk_id for pair in pooled}) as texts:
        pooled = _with_texts(pooled, texts, observer)
        async with open_backend(
            settings,
            settings.judge.prompt or "judge_relevance",
            dataset.store_path,
            observer,
            mode=mode,
            failures=dataset.failures,
        ) as backend:
            todo = open_pairs(pooled, dataset.each_judgment(), partial(_stays, backend, mode))
            if todo and not mode.mix:
                _refuse_mixture(dataset, set(pooled).difference(todo), backend)
            result = JudgingResult(backend.name, len(pooled))
            pairs = (
                Pair(query_id, queries[query_id], chunk_id, texts[chunk_id])
                for query_id, chunk_id in todo
            )
            with JudgedSpool(dataset.path) as judged:
                try:
                    judging = _judging(backend, settings, observer)
                    await judge_pairs(pairs, judging, _Counted(result, judged), total=len(todo))
                finally:
                    if judged.has_any and not mode.dry_run:
                        judged.add_to(dataset)
                        backend.note_in(dataset)
    if mode.dry_run:
        return JudgingResult(backend.name, len(pooled), estimate=backend.estimate())
    result.summaries = _summaries(dataset, set(pooled))
    return _refused_if_all_failed(result, len(todo))


def _with_texts(pooled: list[PairId], texts: ChunkTexts, observer: Observer) -> list[PairId]:
    """Return the pairs whose chunks are in the corpus, and tell of the others."""
    unknown = {each.chunk_id for each in pooled if each.chunk_id not in texts}
    _tell_unknown(sorted(unknown), observer)
    return [each for each in pooled if each.chunk_id in texts]


def _summaries(dataset: Dataset, pooled: Container[tuple[str, str]]) -> list[QuerySummary]:
    return summarise_sorted(
        item for item in dataset.each_judgment() if (item.query_id, item.chunk_id) in pooled
    )


async def judge_file(
    pairs_path: Path, out: Path, settings: Settings, observer: Observer, mode: Mode = EARNEST
) -> JudgingResult:
    """Judge the pairs of a file into a file of judgments, however many there are.

    Pairs are read as they are judged, and judgments sorted on disk. Failures go to
    `OUT.failures.jsonl` beside the file, replies to `.ragforge/` in its folder.

    Raises:
        DataError: The file of pairs does not hold to its format.
        EndpointError, BudgetError: As for `judge_dataset`.
    """
    async with open_backend(
        settings,
        settings.judge.prompt or "judge_relevance",
        out.parent / ".ragforge" / "calls.sqlite",
        observer,
        mode=mode,
        failures=partial(_failures_beside, out),
    ) as backend:
        result = JudgingResult(backend.name)
        with JudgedSpool(out.parent) as judged:
            try:
                judging = _judging(backend, settings, observer)
                pairs = _counted(pairs_path, result)
                total = _lines_of(pairs_path)
                await judge_pairs(pairs, judging, _Counted(result, judged), total=total)
            finally:
                if not mode.dry_run and judged.has_any:
                    judged.write(out)
            if mode.dry_run:
                return JudgingResult(backend.name, result.n_pairs, estimate=backend.estimate())
            result.summaries = summarise_sorted(judged.judgments())
    return _refused_if_all_failed(result, result.n_pairs)


def _lines_of(path: Path) -> int | None:
    """Return how many pairs there will be, None where that takes reading the file as it is read."""
    if path.suffix not in (".jsonl", ".ndjson") or not path.is_file():
        return None
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(partial(stream.read, 1 << 20), b""))


def _counted(path: Path, result: JudgingResult) -> Iterator[Pair]:
    for row in read_pairs(path):
        result.n_pairs += 1
        yield Pair(row.query_id, row.query, row.chunk_id, row.text)


def _pool(
    dataset: Dataset, query_ids: Container[str], run_names: Sequence[str], depth: int
) -> list[PairId]:
    names = list(run_names) or dataset.run_names()
    if not names:
        raise DataError(
            f"{dataset.path}: has no runs; make one with "
            f"`ragforge retrieve --dataset {dataset.path} --retriever bm25`"
        )
    return pool(query_ids, map(dataset.each_ranking, names), depth)


def _refuse_mixture(dataset: Dataset, kept: Container[tuple[str, str]], backend: Backend) -> None:
    """Refuse to put grades of two judges into one set unasked.

    Raises:
        UsageError: What is kept of the pool was graded by another model or prompt.
    """
    if backend.asker is None:
        return
    mine = backend.asker.provenance("")
    others = Counter(
        f"{by.model} with prompt {by.prompt} {by.prompt_sha256[:8]}"
        for old in dataset.each_judgment()
        if (old.query_id, old.chunk_id) in kept
        and (by := old.provenance) is not None
        and old.source == "judge"
        and by.kind == "llm"
        and (by.model, by.prompt_sha256) != (mine.model, mine.prompt_sha256)
    )
    if others:
        told = "; ".join(f"{count} by {judge}" for judge, count in sorted(others.items()))
        raise UsageError(
            f"{dataset.path}: some pairs of the pool are graded by another judge ({told}); "
            f"{mine.model} with prompt {mine.prompt} {mine.prompt_sha256[:8]} would grade the "
            "rest: --again judges all of them anew, --mix lets both stand"
        )


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


def _judging(backend: Backend, settings: Settings, observer: Observer) -> Judging:
    return Judging(
        judge=LLMJudge(backend.asker) if backend.asker else LexicalJudge(),
        concurrency=backend.workers(settings.model.concurrency),
        observer=silent if backend.tally else observer,
        on_stop=backend.stop,
    )


def _refused_if_all_failed(result: JudgingResult, n_asked: int) -> JudgingResult:
    first = result.first_failure
    if first is not None and result.n_failed == n_asked:
        raise EndpointError(
            f"{result.judge}: judging failed on all {n_asked} pairs; the first: {first.kind}: "
            f"{first.message}; --retry-failed asks again for replies that were no use"
        )
    return result


def _failures_beside(out: Path) -> Iterable[Failure]:
    beside = failures_beside(out)
    return read_records(beside, Failure) if beside.exists() else ()


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
