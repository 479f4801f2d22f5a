"""Judging pairs, and checking answers and judges, without a set: records, frames or files.

Pairs are taken one by one, as they are judged. Replies are stored in `.ragforge/` of the folder of
`out`, of the working directory where there is none, so that none is bought twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Final, Unpack

from ragforge.api.answered import Grounded
from ragforge.api.call import ASK, JUDGE, Call, begin, check
from ragforge.api.jobs import audit_plan, grounding_place, path_of
from ragforge.api.judged import Audited, Judged, check_place, refuse_same_file
from ragforge.api.keywords import AskKeywords, JudgeKeywords
from ragforge.api.sources import Records, as_file, each_record, is_path
from ragforge.deferred import dataclass, tempfile
from ragforge.errors import UsageError
from ragforge.files.formats.pairs import PairRow, pairs_given, read_pairs
from ragforge.files.record_files import read_records
from ragforge.files.set.output_paths import refuse_to_replace
from ragforge.pipeline.auditing import DEFAULT_N, AuditPlan, audit_file
from ragforge.pipeline.grounding import ground_traffic
from ragforge.pipeline.job import Mode, OutputFile, ResultSpool
from ragforge.pipeline.judge.agreement import HumanLabels
from ragforge.pipeline.judge.judge_run import JudgeRun, JudgingResult, judged_spool
from ragforge.pipeline.judge.judges import Judges, open_judges
from ragforge.pipeline.judge.judging import judge_file, refused_if_all_failed
from ragforge.records import Failure, Grounding, JudgeAudit, Judgment, Provenance
from ragforge.stages.judge.batches import Batch, JudgedBatch, batches, judge_batches
from ragforge.stages.judge.llm import refuse_shared_queries
from ragforge.stages.judge.pairs import Pair, summarise
from ragforge.stages.runner import Judge

_STORE: Final = Path(".ragforge", "calls.sqlite")
"""Of replies where no file is written, in the working directory."""
_AHEAD: Final = 1000
"""Judgments that wait to be taken, at most, before no further pair is judged."""


async def judge_pairs(
    pairs: Records,
    *,
    out: str | PathLike[str] | None = None,
    dry_run: bool = False,
    **settings: Unpack[JudgeKeywords],
) -> Judged:
    """Grade how well texts answer queries, 0-3; no set is needed.

    Where people graded pairs (a `grade` in the record), the judge never sees it, and the result
    says how far both agree.

    Args:
        pairs: A file, records or a data frame: {query_id, query, chunk_id, text}, {query, text} or
            {query, chunks: [{id, text}]}. Records may be made one by one; they are taken as they
            are judged, but for batches, which need to see all of them.
        out: Where the judgments are written, sorted; they are in the result where None.
        dry_run: Count calls, tokens and money, and ask nothing; see `Judged.estimate`.
        settings: model, votes, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        DataError: The pairs do not hold to the format.
        UsageError: `out` holds something else, or the settings do not go together.
        EndpointError, BudgetError: It was stopped: replies are stored, and what was judged is
            written to `out`, unless that has more judgments already; or every pair failed.
    """
    _check(settings)
    place = None if out is None else Path(out)
    if place is not None:
        check_place(place, Path(pairs) if is_path(pairs) else None, "out")
    with begin(JUDGE, settings, {}, mode=Mode(dry_run=dry_run)) as call:
        if place is not None and is_path(pairs):
            result = await judge_file(Path(pairs), place, call.job)
            return Judged(result, notes=tuple(call.notes))
        if call.settings.judge.batch > 1:
            return await _in_batches(pairs, place, call)
        return await _one_by_one(pairs, place, call)


def each_judgment(
    pairs: Records, **settings: Unpack[JudgeKeywords]
) -> AsyncGenerator[Judgment, None]:
    """Yield the judgments of any number of pairs as they are made, in no particular order.

    A pair whose judgment failed comes with the grade None and a `failure`. Pairs are judged ahead
    of what is taken, but not far.

    Args:
        pairs: As for `judge_pairs`; may be endless.
        settings: As for `judge_pairs`, without batches.

    Raises:
        DataError, UsageError, EndpointError, BudgetError: As for `judge_pairs`; what was judged
            before is yielded first.
    """
    _check(settings)
    if (settings.get("batch") or 1) > 1:
        raise UsageError("batch: each_judgment judges text by text; judge_pairs takes batches")
    check("each_judgment", settings, JUDGE.keywords)
    return _judgments(pairs, settings)


async def _judgments(pairs: Records, settings: JudgeKeywords) -> AsyncGenerator[Judgment, None]:
    """Yield judgments as `each_judgment` does."""
    with begin(JUDGE, settings, {}) as call:
        async with open_judges(call.job, _NoFile()) as judges:
            stream = _Stream()
            judge = _Patient(judges.batch_judge(batched=False), stream)
            workers = judges.stage_workers()
            taken = _UpToAnError(_each_pair(_rows(pairs), judges, HumanLabels()))
            found = batches(taken, 1)
            job = asyncio.create_task(judge_batches(found, judge, workers, stream, total=None))
            job.add_done_callback(lambda _: stream.end())
            try:
                async for judgment in stream.each():
                    yield judgment
                await job
                if taken.error is not None:
                    raise taken.error
            finally:
                job.cancel()
                await asyncio.wait([job])


async def audit_judge(
    pairs: Records,
    n: int = DEFAULT_N,
    *,
    attacks: str | Sequence[str] = (),
    translations: str | PathLike[str] | None = None,
    written_by: str | PathLike[str] | None = None,
    model_family: str = "",
    search_calls: int = 0,
    out: str | PathLike[str] | None = None,
    dry_run: bool = False,
    **settings: Unpack[JudgeKeywords],
) -> Audited:
    """Find out whether a judge's grade holds when somebody tampers with the text; no set is needed.

    Args:
        pairs: As for `judge_pairs`; where people graded them, the sample is spread over grades.
        n: Pairs to draw.
        attacks: Names of attacks; all that have what they need where empty.
        translations: File of translated chunks, for the attack `translation`.
        written_by: File of passages of several writers, for `self-preference`.
        model_family: The judge's own among the writers; told by the model's name where "".
        search_calls: For `optimised`: calls for each pair; 0 for no search.
        out: Where the audit is written; it is in the result as well.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: As for `judge_pairs`, without batches.

    Raises:
        DataError: The pairs do not hold to the format.
        UsageError: There is no such attack, n is below 1, or `out` holds something else.
        EndpointError, BudgetError: It was stopped, its replies are stored; or every pair failed.
    """
    _check(settings)
    supplied = AuditPlan(
        translations=path_of(translations),
        written=path_of(written_by),
        model_family=model_family,
        search_calls=search_calls,
    )
    plan = audit_plan(n, attacks, supplied=supplied)
    if out is not None:
        refuse_same_file(Path(out), Path(pairs) if is_path(pairs) else None, "out")
        refuse_to_replace(Path(out), JudgeAudit, whole=True)
    with (
        begin(JUDGE, settings, {}, mode=Mode(dry_run=dry_run)) as call,
        as_file(pairs) as path,
        tempfile.TemporaryDirectory(prefix="ragforge-") as folder,
    ):
        place, store = (Path(folder, "audit.json"), _STORE) if out is None else (Path(out), None)
        return Audited(await audit_file(path, place, plan, call.job, store), tuple(call.notes))


async def ground_answers(
    answers: Records,
    *,
    out: str | PathLike[str] | None = None,
    dry_run: bool = False,
    **settings: Unpack[AskKeywords],
) -> Grounded:
    """Check that answers of live traffic say only what their contexts say; no set is needed.

    Args:
        answers: A file, records or a data frame: {query_id, query, answer, contexts}, contexts
            being texts or {chunk_id, text}.
        out: Where groundings are written; they are in the result where None.
        dry_run: Count calls, tokens and money, and ask nothing.
        settings: model, max_cost_usd and others; see `ragforge.api.keywords`.

    Raises:
        DataError: The answers do not hold to the format.
        EndpointError, BudgetError: It was stopped, what was checked is written, unless `out` has
            more already; or all failed.
    """
    with (
        begin(ASK, settings, {}, mode=Mode(dry_run=dry_run)) as call,
        as_file(answers) as path,
        grounding_place(out) as place,
    ):
        store = _STORE if out is None else None
        result = await ground_traffic(path, place, call.job, store)
        found = () if out is not None or dry_run else tuple(read_records(place, Grounding))
        return Grounded(
            result.grounder,
            result.summary,
            found,
            None if out is None else place,
            result.estimate,
            tuple(call.notes),
        )


async def _one_by_one(pairs: Records, place: Path | None, call: Call) -> Judged:
    """Judge pairs as they are taken; judgments are sorted on disk."""
    store = _NoFile() if place is None else OutputFile.beside(place)
    async with open_judges(call.job, store, "judge") as judges:
        labels, result = HumanLabels(), JudgingResult(judges.name)
        with _spool(place) as judged:
            taken = _each_pair(_rows(pairs), judges, labels, result)
            with nullcontext() if place is None else judged.written_to(place, call.job):
                await JudgeRun(judges, judged, result).judge(lambda: taken, None)
            if call.mode.dry_run:
                counts = {"given": result.n_pairs, "distinct_texts": result.n_texts}
                result.estimate = {"pairs": counts, **judges.estimate(result.n_texts)}
                return Judged(result, notes=tuple(call.notes))
            refused_if_all_failed(result, result.n_pairs)
            return _judged(judges, labels, result, judged, place, call)


def _judged(
    judges: Judges,
    labels: HumanLabels,
    result: JudgingResult,
    judged: ResultSpool[Judgment],
    place: Path | None,
    call: Call,
) -> Judged:
    result.summaries = summarise(judged.results())
    if judges.provenance().kind == "baseline":
        result.agreement = labels.baseline()
    else:
        result.agreement = labels.agreement_with(judges.name, judged.results())
    kept = () if place is not None else tuple(judged.results())
    return Judged(result, kept, tuple(call.notes))


async def _in_batches(pairs: Records, place: Path | None, call: Call) -> Judged:
    """Judge pairs that are written to a file first: batches may have to begin anew."""
    with as_file(pairs) as path, tempfile.TemporaryDirectory(prefix="ragforge-") as folder:
        out = place or Path(folder, "judged.jsonl")
        result = await judge_file(path, out, call.job, _STORE if place is None else None)
        kept = () if place or call.mode.dry_run else tuple(read_records(out, Judgment))
        return Judged(result, kept, tuple(call.notes))


def _rows(pairs: Records) -> Iterator[PairRow]:
    return read_pairs(Path(pairs)) if is_path(pairs) else pairs_given(each_record(pairs))


def _each_pair(
    rows: Iterable[PairRow],
    judges: Judges,
    labels: HumanLabels,
    result: JudgingResult | None = None,
) -> Iterator[Pair]:
    """Yield pairs as they are taken; what people said of them goes into `labels`."""
    for row in rows:
        refuse_shared_queries(judges.examples, {row.query_id: row.query})
        pair = Pair(row.query_id, row.query, row.chunk_id, row.text)
        labels.add(pair, row.human_grade)
        if result is not None:
            result.n_pairs += 1
        yield pair


@dataclass(slots=True)
class _UpToAnError:
    """Pairs up to the first that cannot be taken: those before it are judged all the same."""

    pairs: Iterator[Pair]
    error: Exception | None = None

    def __iter__(self) -> Iterator[Pair]:
        try:
            yield from self.pairs
        except Exception as error:  # noqa: BLE001  # raised again after what was judged
            self.error = error


@dataclass(slots=True)
class _Stream:
    """Judgments on their way from those who judge to the one who takes them."""

    waiting: "asyncio.Queue[Judgment | None]" = field(default_factory=asyncio.Queue)
    taken: asyncio.Event = field(default_factory=asyncio.Event)

    def result(self, result: Judgment) -> None:
        """Take a judgment."""
        self.waiting.put_nowait(result)

    def failure(self, failure: Failure) -> None:
        """Take no note: the judgment that stands for it says it."""

    def end(self) -> None:
        """Say that no more comes."""
        self.waiting.put_nowait(None)

    async def each(self) -> AsyncGenerator[Judgment, None]:
        """Yield the judgments until the end."""
        while (judgment := await self.waiting.get()) is not None:
            self.taken.set()
            yield judgment

    async def room(self) -> None:
        """Wait until enough was taken."""
        while self.waiting.qsize() >= _AHEAD:
            self.taken.clear()
            await self.taken.wait()


@dataclass(frozen=True, slots=True)
class _Patient:
    """A judge that waits while nobody takes what was judged."""

    inner: Judge[Batch, JudgedBatch]
    stream: _Stream

    @property
    def provenance(self) -> Provenance:
        """That of the judge."""
        return self.inner.provenance

    async def judge(self, batch: Batch) -> JudgedBatch:
        """Return the judgments; see `Judge`."""
        await self.stream.room()
        return await self.inner.judge(batch)


@contextmanager
def _spool(place: Path | None) -> Iterator[ResultSpool[Judgment]]:
    if place is not None:
        with judged_spool(place.parent) as judged:
            yield judged
        return
    with (
        tempfile.TemporaryDirectory(prefix="ragforge-") as folder,
        judged_spool(Path(folder)) as judged,
    ):
        yield judged


@dataclass(frozen=True, slots=True)
class _NoFile:
    """The place of a call that writes no file: its replies go to the working directory."""

    store_path: Path = _STORE

    def failures(self) -> Iterable[Failure]:
        """Return none: nobody kept those of earlier calls."""
        return ()


def _check(settings: JudgeKeywords) -> None:
    for name in ("depth", "pool_k", "pool_most", "pool_batch", "pool_model", "embedding_model"):
        if settings.get(name) is not None:
            raise UsageError(f"{name}: goes with a set, whose pools it makes; pairs have none")
    if settings.get("split") not in (None, "all"):
        raise UsageError("split: goes with a set; pairs have none")
    if settings.get("permutations") is not None and (settings.get("batch") or 1) == 1:
        raise UsageError("permutations: goes with batch")
