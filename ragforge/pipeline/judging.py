"""Judging what runs retrieved, or pairs from a file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ragforge.config import Settings
from ragforge.errors import DataError, EndpointError
from ragforge.files.dataset import Dataset
from ragforge.files.jsonl import read_records
from ragforge.files.pairs import read_pairs
from ragforge.files.spool import Spool
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.backend import EARNEST, Backend, Mode, open_backend
from ragforge.records import Failure, Judgment
from ragforge.stages.judge.lexical import LexicalJudge
from ragforge.stages.judge.llm import LLMJudge
from ragforge.stages.judge.pairs import Pair, pool, unknown_chunks
from ragforge.stages.judge.stage import Judging, judge_pairs, merge_into, open_pairs
from ragforge.stages.judge.summary import QuerySummary, summarise, summarise_sorted
from ragforge.stages.runner import Collected, Sink


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
        result, judged = JudgingResult(backend.name, len(pairs)), Collected[Judgment]()
        try:
            judging = _judging(backend, settings, observer)
            await judge_pairs(todo, judging, _Counted(result, judged), total=len(todo))
        finally:
            if judged.results and not mode.dry_run:
                merge_into(dataset, judged)
                backend.note_in(dataset)
    if mode.dry_run:
        return JudgingResult(backend.name, len(pairs), estimate=backend.estimate())
    pooled = {(pair.query_id, pair.chunk_id) for pair in pairs}
    known = [item for item in dataset.judgments() if (item.query_id, item.chunk_id) in pooled]
    result.summaries = summarise(known)
    return _refused_if_all_failed(result, len(todo))


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
        settings.judge.prompt,
        out.parent / ".ragforge" / "calls.sqlite",
        observer,
        mode=mode,
        failures=partial(_failures_beside, out),
    ) as backend:
        result = JudgingResult(backend.name)
        with _JudgedFile(out) as judged:
            try:
                judging = _judging(backend, settings, observer)
                pairs = _counted(pairs_path, result)
                total = _lines_of(pairs_path)
                await judge_pairs(pairs, judging, _Counted(result, judged), total=total)
            finally:
                if not mode.dry_run and judged.has_any:
                    judged.write()
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


class _JudgedFile(AbstractContextManager["_JudgedFile"]):
    """A file of judgments and, beside it, one of failures; both written whole and sorted."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._judgments: Spool[Judgment] = Spool(
            lambda item: (item.query_id, item.chunk_id), out.parent
        )
        self._failures: Spool[Failure] = Spool(lambda item: (item.key,), out.parent)

    def __exit__(self, *_: object) -> None:
        self._judgments.__exit__()
        self._failures.__exit__()

    @property
    def has_any(self) -> bool:
        """Whether anything was judged, or failed."""
        return self._judgments.count > 0

    def result(self, result: Judgment) -> None:
        """Take a judgment."""
        self._judgments.add(result)

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self._failures.add(failure)

    def write(self) -> None:
        """Write both files; the one of failures only where there are or were any."""
        self._judgments.write(self._out)
        if self._failures.count or _beside(self._out).exists():
            self._failures.write(_beside(self._out))

    def judgments(self) -> Iterator[Judgment]:
        """Yield the judgments, sorted."""
        return (Judgment.model_validate_json(line) for line in self._judgments.lines())


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


def _beside(out: Path) -> Path:
    return out.with_name(f"{out.name}.failures.jsonl")


def _failures_beside(out: Path) -> Iterable[Failure]:
    beside = _beside(out)
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
