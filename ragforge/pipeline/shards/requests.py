"""Shards of requests: what any command would ask, worked off elsewhere, and its own when it ends.

The command is run dry, and its requests are cut into shards; workers ask them into call stores.
When all are done the command takes the replies over and runs in earnest: what follows from them,
such as a turn that repairs one, it asks itself. What was not planned is refused: nothing that could
have been cut into shards is asked in one process.
"""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ragforge.config import ModelSettings, Settings
from ragforge.deferred import dataclass
from ragforge.errors import DataError, RagforgeError, ShortfallError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.atomic import make_folder, write_whole
from ragforge.files.record_files import ExternalSorter, read_records
from ragforge.llm.batches.records import is_much
from ragforge.llm.chat import ChatReply, ChatRequest, Message
from ragforge.llm.connect import connect
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.models import Collector, CountingModel
from ragforge.observe import silent
from ragforge.pipeline.batch_job import BatchJob
from ragforge.pipeline.job import Job
from ragforge.pipeline.shards.budget import drawing_on
from ragforge.pipeline.shards.merging import all_done
from ragforge.pipeline.shards.plan import (
    ShardFolder,
    ShardPlan,
    cut,
    naming_address,
    require_same_work,
    with_address_named,
)
from ragforge.pipeline.shards.replanning import describe_changes, planned_again, stores_of
from ragforge.records import Failure
from ragforge.records.record import Record
from ragforge.stages.runner import Work, Workers, pour

R = TypeVar("R")
_DIGITS = 16
"""Of a key that are kept."""


class CallKeys:
    """Keys of calls, in eight bytes each.

    Two keys share these by a chance of 1 in 2^64.

    Args:
        keys: In hexadecimal digits; any order.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._sorted = array("Q", map(_short, keys))
        if any(one > other for one, other in zip(self._sorted, self._sorted[1:], strict=False)):
            self._sorted = array("Q", sorted(self._sorted))

    def __contains__(self, key: str) -> bool:
        short = _short(key)
        place = bisect_left(self._sorted, short)
        return place < len(self._sorted) and self._sorted[place] == short


def _short(key: str) -> int:
    return int(key[:_DIGITS], 16)


@dataclass(slots=True)
class ComparedRequests:
    """Holds what a job would ask now against what is known; a `Collector`.

    Replies to known requests count as missing, as they were: what follows from them is not met.

    Args:
        planned: What the shards ask.
        following: What followed from their replies when these were taken over.
        n_planned: Of them, how many the job would ask.
        n_more: What it would ask that is not known.
    """

    planned: CallKeys
    following: CallKeys
    n_planned: int = 0
    n_more: int = 0

    def withholds(self, key: str) -> bool:
        """Whether a call is known."""
        return key in self.planned or key in self.following

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Count a request; nobody is asked."""
        if key in self.planned:
            self.n_planned += 1
        elif key not in self.following:
            self.n_more += 1
        return None


@dataclass(slots=True)
class OpenRequests:
    """Takes the keys of what a job would ask; a `Collector`."""

    keys: list[str] = field(default_factory=list)

    def withholds(self, key: str) -> bool:
        """Nothing that is stored is asked."""
        return False

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Note a key; nobody is asked."""
        self.keys.append(key)
        return None


class RequestRow(Record):
    """A request in a shard.

    Args:
        key: Of the call.
        model: Place of the model among those of the plan.
        request: The fields of a `ChatRequest`.
    """

    key: str
    model: int
    request: dict[str, Any]

    def chat(self) -> ChatRequest:
        """Return the request."""
        turns = tuple(Message(**turn) for turn in self.request["messages"])
        return ChatRequest(**{**self.request, "messages": turns})


@dataclass(slots=True)
class _Collecting:
    """Takes requests into a sorter; a `Collector`."""

    rows: ExternalSorter[RequestRow]
    models: list[ModelSettings] = field(default_factory=list)

    def withholds(self, key: str) -> bool:
        """What is stored is not asked."""
        return False

    async def take(self, model: CountingModel, key: str, request: ChatRequest) -> ChatReply | None:
        """Note a request; nobody is asked."""
        if model.settings not in self.models:
            self.models.append(model.settings)
        place = self.models.index(model.settings)
        self.rows.add(RequestRow(key=key, model=place, request=asdict(request)))
        return None


@dataclass(frozen=True, slots=True)
class ShardedJob(Generic[R]):
    """A job whose calls are made by workers of shards.

    Args:
        whole: The job, and where its replies go.
        folder: Of the shards.
    """

    whole: BatchJob[R]
    folder: ShardFolder

    async def plan(self, size: int, workers: int) -> ShardPlan:
        """Cut what the job would ask into shards.

        Args:
            size: Requests of a shard.
            workers: That share the rate and the calls in flight.

        Raises:
            DataError: They cannot be written.
            ConfigError: As for `naming_address`.
        """
        job = self.whole.job.with_settings(naming_address(self.whole.job.settings))
        make_folder(self.folder.path)
        with ExternalSorter[RequestRow](lambda row: (row.key,), self.folder.path) as rows:
            collecting = _Collecting(rows)
            await self._run_dry(job, collecting)
            digest = hashlib.sha256()
            for line in rows.lines():
                digest.update(line.encode())
            # Each request is a group of its own.
            shards = tuple(cut(rows.lines(), size, self.folder.requests_path, str))
        settings = job.settings
        plan = ShardPlan(
            kind="requests",
            source_sha256=digest.hexdigest(),
            shard_size=size,
            workers=workers,
            settings=Settings(model=settings.model, budget=settings.budget),
            models=tuple(map(with_address_named, collecting.models)),
            shards=shards,
        )
        self.folder.write_plan(plan)
        return plan

    async def plan_again(self, workers: int | None) -> list[str]:
        """Take what may be spent, how fast and where into the plan; nothing is asked.

        Args:
            workers: That share the rate and the calls in flight; None for as many as before.

        Returns:
            The flags that differ from those before; limits with their value.

        Raises:
            UsageError: The folder holds other work, or the job would ask more than was planned.
            DataError, ConfigError: As for `plan`.
        """
        old = self.folder.read_plan()
        settings = naming_address(self.whole.job.settings)
        new = ShardPlan(
            kind="requests",
            source_sha256=old.source_sha256,
            shard_size=old.shard_size,
            workers=workers or old.workers,
            settings=Settings(model=settings.model, budget=settings.budget),
            models=tuple(map(with_address_named, self.whole.models)),
            shards=(),
        )
        require_same_work(old, new, self.folder.path)
        await self._require_planned(self.whole.job.with_settings(settings), old)
        return describe_changes(old, planned_again(self.folder, old, new))

    async def end(self) -> R:
        """Take the replies of all shards over, and return what the job comes to.

        The limits of the plan hold for what follows from the replies, too.

        Raises:
            ShortfallError: A shard is not done; or so many requests have no reply that shards
                should ask them.
        """
        plan = self.folder.read_plan()
        n_failed = sum(part.n_failed for part in all_done(self.folder, plan))
        self._take_over(plan)
        if is_much(n_failed, plan.size):
            self._require_answered(plan)
        settings = self.whole.job.settings.model_copy(update={"budget": plan.settings.budget})
        job = self.whole.job.with_settings(settings)
        if self.whole.in_stages:
            await self._note_followers(job)
        try:
            with drawing_on(self.folder.budget_path, job):
                return await self.whole.run(job)
        except BaseException:
            # Ended in the middle, it wrote what it had, and what is left may be asked otherwise.
            with suppress(RagforgeError):
                await self._note_followers(job)
            raise

    async def _run_dry(self, job: Job, collector: Collector) -> None:
        dry = replace(job.mode, dry_run=True)
        await self.whole.run(replace(job, mode=dry, observer=silent, collector=collector))

    async def _require_planned(self, job: Job, plan: ShardPlan) -> None:
        """Check that a job asks what was planned or follows from it, and no more.

        Raises:
            UsageError: It asks more. What was bought for it is in its call store.
        """
        found = ComparedRequests(self._planned_keys(plan), CallKeys(self._followers()))
        await self._run_dry(job, found)
        if not found.n_more:
            return
        words = plural(found.n_more, "request is", "requests are")
        message = (
            f"{self.folder.path}: {words} not in its plan: what this command asks about, or how, "
            "has changed since"
        )
        if found.n_planned:
            self._take_over(plan)
            message += f"; what its shards have bought is in {self.whole.store_path} now"
            if any(self.folder.done(plan, shard.index) is None for shard in plan.shards):
                message += ", and none should be worked on any more"
        raise UsageError(f"{message}; name another folder, which takes what is left to ask")

    def _require_answered(self, plan: ShardPlan) -> None:
        """Check that hardly any request is left to this process.

        Raises:
            ShortfallError: Many are.
        """
        with closing(CallStore(self.whole.store_path)) as store:
            n_open = sum(store.get(row.key) is None for row in self._planned_rows(plan))
        if is_much(n_open, plan.size):
            raise ShortfallError(
                f"{self.folder.path}: {n_open:,} requests got no reply; `ragforge shard run "
                f"{self.folder.path} --retry-failed` asks again. What its shards have bought is in "
                f"{self.whole.store_path} now: without --shards this command asks the rest itself"
            )

    def _planned_keys(self, plan: ShardPlan) -> CallKeys:
        return CallKeys(row.key for row in self._planned_rows(plan))

    def _planned_rows(self, plan: ShardPlan) -> Iterator[RequestRow]:
        for shard in plan.shards:
            yield from read_records(self.folder.requests_path(shard.index), RequestRow)

    async def _note_followers(self, job: Job) -> None:
        """Note what follows from replies, as far as they are there.

        Once results are written, such as facts, it can no longer be told from what is new.
        """
        following = OpenRequests()
        await self._run_dry(job, following)
        keys = sorted({*self._followers(), *following.keys})
        write_whole(self.folder.followers_path, (f"{key}\n" for key in keys))

    def _followers(self) -> list[str]:
        path = self.folder.followers_path
        return path.read_text(encoding="ascii").split() if path.exists() else []

    def _take_over(self, plan: ShardPlan) -> None:
        with closing(CallStore(self.whole.store_path)) as store:
            for path in stores_of(self.folder, plan):
                with closing(CallStore(path)) as part:
                    store.add(part.rows())


@dataclass(slots=True)
class _Counts:
    """A sink that counts."""

    n_done: int = 0
    n_failed: int = 0

    def result(self, result: ChatReply) -> None:
        self.n_done += 1

    def failure(self, failure: Failure) -> None:
        self.n_failed += 1


async def ask_requests(path: Path, store_path: Path, plan: ShardPlan, job: Job) -> dict[str, Any]:
    """Ask the requests of a shard, and return what it came to.

    What fails is left to the command that they are of, which then fails alike.

    Raises:
        DataError: A request is not what its key says.
        EndpointError, BudgetError: What was bought is in the store.
    """
    counts = _Counts()
    async with AsyncExitStack() as stack:
        connections = []
        for model in plan.models:
            part = part_of_rate(model, plan.workers)
            settings = job.settings.model_copy(update={"model": part})
            account, endpoints = job.account, job.endpoints
            opened = connect(settings, store_path, job.observer, account, endpoints=endpoints)
            connections.append(await stack.enter_async_context(opened))

        async def ask(row: RequestRow) -> ChatReply:
            reply = await connections[row.model].model.ask(row.chat())
            if reply.key != row.key:
                raise DataError(f"{path}: a request is not the one that its key names")
            return reply

        def stop() -> None:
            for connection in connections:
                connection.stop()

        most = 2 * max(connection.concurrency for connection in connections)
        work: Work[RequestRow, ChatReply] = Work(
            stage="ask", key=lambda row: row.key, do=ask, workers=Workers(most, job.observer, stop)
        )
        await pour(read_records(path, RequestRow), work, counts, total=None)
        spent = connections[0].store.spent()
    return {"n_done": counts.n_done, "n_failed": counts.n_failed, "spent": spent}


def part_of_rate(model: ModelSettings, workers: int) -> ModelSettings:
    """Return the settings of one of several workers that ask a model."""
    rates = {
        name: value / workers
        for name in ("requests_per_minute", "tokens_per_minute")
        if (value := getattr(model, name)) is not None
    }
    return model.model_copy(update={**rates, "concurrency": max(1, model.concurrency // workers)})
