"""Cutting the documents and ranking their chunks for the queries, with each configuration.

What is ranked by words is done by several processes; local models and endpoints work in this one,
as they take all cores, or a budget, by themselves. Each configuration is written when it is done.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ragforge.corpus.documents import Document
from ragforge.deferred import dataclass
from ragforge.errors import CallError, DataError, RagforgeError, UsageError
from ragforge.evaluating.configurations import Configuration
from ragforge.evaluating.sweep import RankedConfiguration, SweptQueries
from ragforge.files.set.dataset import Dataset
from ragforge.observe import Event, Observer
from ragforge.pipeline.backend import embedder_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.sweep.plan import SweepPlan
from ragforge.pipeline.sweep.rankings import RankingDepth, RankingRecorder, cut, kept_rankings
from ragforge.plugins import HandedOver
from ragforge.records import Chunk
from ragforge.retrieval import Buildable, Retriever
from ragforge.retrieval.retrievers import FUSED, RERANKED, make_retriever

if TYPE_CHECKING:
    from ragforge.llm.embedder import EndpointEmbedder

_BY_WORDS: Final = frozenset({"bm25", "chargram"})
CutKey = tuple[str, int | None, int]
"""Splitter, size and overlap."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What is cut, and what is asked.

    Args:
        documents: Whole.
        asked: Text by id of the queries that are measured.
        swept: The same queries, as measuring takes them.
        without_evidence: Queries of the part that have none.
        unplaced: Queries of the part of whose evidence some has no place in the documents.
    """

    documents: Sequence[Document]
    asked: Mapping[str, str]
    swept: SweptQueries
    without_evidence: Sequence[str]
    unplaced: Sequence[str]


@dataclass(slots=True)
class SweepState:
    """What a sweep has still to do, and what it has done.

    Args:
        plan: What is tried.
        wanted: How much of each ranking.
        paths: Where the rankings of each configuration are kept.
        ranked: Those that are there.
        failed: Those that cannot be, with the reason.
    """

    plan: SweepPlan
    wanted: RankingDepth
    paths: Mapping[Configuration, Path]
    ranked: dict[Configuration, RankedConfiguration] = field(default_factory=dict)
    failed: dict[Configuration, str] = field(default_factory=dict)

    @property
    def left(self) -> list[Configuration]:
        """Configurations that are neither."""
        done = self.ranked.keys() | self.failed.keys()
        return [item for item in self.plan.configurations if item not in done]


def _parts(retriever: str) -> list[str]:
    return [part for of in retriever.split(RERANKED) for part in of.split(FUSED)]


def has_part(retriever: str, name: str) -> bool:
    """Whether a retriever is, fuses or reranks by that one."""
    return name in _parts(retriever)


def is_held(item: Configuration) -> bool:
    """Whether a splitter or retriever is an object of the caller, of which no digest tells all."""
    return isinstance(item.splitter, HandedOver) or isinstance(item.retriever, HandedOver)


def is_for_processes(item: Configuration) -> bool:
    """Whether it is ranked by words alone."""
    return not is_held(item) and _BY_WORDS.issuperset(_parts(item.retriever))


def cut_key(item: Configuration) -> CutKey:
    """Return by what configurations share their chunks."""
    return item.splitter, item.size, item.overlap


def chunkings(
    state: SweepState, sources: Sources, configurations: Iterable[Configuration]
) -> Iterator[tuple[list[Chunk], list[Configuration]]]:
    """Yield the chunks of each chunking with its configurations; those that fail are noted."""
    for _, of_chunking in groupby(configurations, cut_key):
        listed = list(of_chunking)
        try:
            chunks = cut(listed[0], sources.documents)
        except UsageError as error:
            state.failed |= dict.fromkeys(listed, str(error))
            continue
        yield chunks, listed


@dataclass(frozen=True, slots=True)
class _RankTask:
    """The configurations of a chunking that a process ranks.

    Args:
        documents: Whole.
        asked: Text of the queries by id.
        wanted: How much of each ranking.
        files: Where the rankings go.
    """

    documents: Sequence[Document]
    asked: Mapping[str, str]
    wanted: RankingDepth
    files: Mapping[Configuration, Path]


def _rank_chunking(task: _RankTask) -> dict[Configuration, str]:
    """Rank in a process of its own; return what failed, with the reason."""
    begun = time.perf_counter()
    try:
        chunks = cut(next(iter(task.files)), task.documents)
    except UsageError as error:
        return dict.fromkeys(task.files, str(error))
    cut_s = time.perf_counter() - begun
    for configuration, path in task.files.items():
        begun = time.perf_counter()
        retriever = make_retriever(configuration.retriever, chunks, None)
        recorder = RankingRecorder(chunks, task.wanted)
        asyncio.run(_ask(retriever, recorder, task.asked, 1))
        recorder.write(path, configuration, cut_s + time.perf_counter() - begun)
    return {}


def _begin_process() -> None:
    """Leave interrupts and stdout to the parent, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = sys.stderr  # What a user's splitter prints is no data.
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    from multiprocessing.connection import wait

    wait([sentinel])
    os._exit(1)


@contextmanager
def _pool(n: int) -> Iterator[ProcessPoolExecutor]:
    # Forked, a process would copy locks that threads of the caller hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_begin_process)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


async def rank_in_processes(
    state: SweepState,
    sources: Sources,
    configurations: Sequence[Configuration],
    n_processes: int,
    observer: Observer,
) -> None:
    """Rank with configurations that go by words; what fails is noted in the state."""
    if not configurations:
        return
    chunkings = [list(of) for _, of in groupby(configurations, cut_key)]
    with ExitStack() as stack:
        stack.enter_context(_stage(observer, "sweep", len(configurations)))
        pool = stack.enter_context(_pool(min(n_processes, len(chunkings))))
        futures: dict[Future[dict[Configuration, str]], list[Configuration]] = {}
        for listed in chunkings:
            files = {item: state.paths[item] for item in listed}
            task = _RankTask(sources.documents, sources.asked, state.wanted, files)
            futures[pool.submit(_rank_chunking, task)] = listed
        waiting = {asyncio.wrap_future(future): listed for future, listed in futures.items()}
        pending = set(waiting)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                state.failed |= future.result()
                for item in waiting[future]:
                    if item not in state.failed:
                        _take(state, item)
                    _tell(observer, "sweep")


async def rank_here(state: SweepState, sources: Sources, dataset: Dataset, job: Job) -> None:
    """Rank with what is left, with the embedder of the job; what fails is noted in the state."""
    left = state.left
    if not left:
        return
    async with embedder_of(job, dataset) as embedder:
        try:
            for chunks, configurations in chunkings(state, sources, left):
                for item in configurations:
                    await _rank_one(state, item, chunks, sources, dataset, embedder, job)
        finally:
            spent = embedder.spent() if embedder else None
            if spent is not None:
                dataset.note(spent=spent)


async def _rank_one(
    state: SweepState,
    item: Configuration,
    chunks: Sequence[Chunk],
    sources: Sources,
    dataset: Dataset,
    embedder: EndpointEmbedder | None,
    job: Job,
) -> None:
    from ragforge.pipeline.retrieving import embed_chunks

    begun = time.perf_counter()
    model = job.settings.model
    retriever = make_retriever(
        item.retriever,
        chunks,
        embedder,
        folder=dataset.own_place,
        note=lambda text: job.observer(Event("note", message=text)),
        timeout_s=model.timeout_s,
    )
    await embed_chunks([retriever], job.observer)
    recorder = RankingRecorder(chunks, state.wanted)
    try:
        await _ask(retriever, recorder, sources.asked, model.concurrency)
    except (UsageError, DataError) as error:
        state.failed[item] = str(error)
        return
    if len(recorder.failed) == len(sources.asked):
        state.failed[item] = (
            f"failed on all queries; the first: {next(iter(recorder.failed.values()))}"
        )
        return
    recorder.write(state.paths[item], item, time.perf_counter() - begun)
    _take(state, item)


def _take(state: SweepState, item: Configuration) -> None:
    ranked = kept_rankings(state.paths[item], item, state.wanted, was_kept=False)
    if ranked is None:
        raise DataError(f"{state.paths[item]}: was written and cannot be read again")
    state.ranked[item] = ranked


async def _ask(
    retriever: Retriever, recorder: RankingRecorder, asked: Mapping[str, str], at_once: int
) -> None:
    """Ask a retriever all queries; one that fails is noted."""
    if isinstance(retriever, Buildable):
        await retriever.build()
    places = asyncio.Semaphore(max(1, at_once))
    stopped: list[RagforgeError] = []

    async def ask(query_id: str, text: str) -> None:
        async with places:
            if not stopped:
                await _ask_one(retriever, recorder, query_id, text, stopped)

    async with asyncio.TaskGroup() as group:
        for query_id, text in asked.items():
            group.create_task(ask(query_id, text))
    if stopped:
        raise stopped[0]


async def _ask_one(
    retriever: Retriever,
    recorder: RankingRecorder,
    query_id: str,
    text: str,
    stopped: list[RagforgeError],
) -> None:
    """Ask one query; an error that every query would meet is added to the list."""
    try:
        recorder.take(query_id, await retriever.retrieve(text, recorder.depth))
    except CallError as error:
        recorder.fail(query_id, str(error))
    except RagforgeError as error:
        stopped.append(error)
    except Exception as error:  # noqa: BLE001  # a user's retriever may raise anything
        recorder.fail(query_id, f"{type(error).__name__}: {error}")


@contextmanager
def _stage(observer: Observer, name: str, total: int) -> Iterator[None]:
    observer(Event("stage.start", name, numbers={"total": float(total)}))
    try:
        yield
    finally:
        observer(Event("stage.end", name))


def _tell(observer: Observer, stage: str) -> None:
    observer(Event("unit", stage, "done"))
    observer(Event("tick", stage))
