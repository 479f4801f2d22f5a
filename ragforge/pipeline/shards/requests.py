"""Shards of requests: what any command would ask, worked off elsewhere, and its own when it ends.

The command is run dry, and its requests are cut into shards; workers ask them into call stores.
When all are done the command takes the replies over and runs in earnest: what follows from them,
such as a turn that repairs one, it asks itself.
"""

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ragforge.config import ModelSettings, Settings
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.atomic import make_folder
from ragforge.files.record_files import ExternalSorter, read_records
from ragforge.llm.chat import ChatReply, ChatRequest, Message
from ragforge.llm.connect import connect
from ragforge.llm.store.calls import CallStore
from ragforge.llm.store.models import CountingModel
from ragforge.observe import silent
from ragforge.pipeline.job import Job, OutputFile
from ragforge.pipeline.shards.budget import drawing_on
from ragforge.pipeline.shards.merging import all_done
from ragforge.pipeline.shards.plan import ShardFolder, ShardPlan, cut, naming_address
from ragforge.records import Failure
from ragforge.records.record import Record
from ragforge.stages.runner import Work, Workers, pour

R = TypeVar("R")


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
        job: In earnest.
        store_path: The call store.
        run: Does the job, dry or in earnest.
        folder: Of the shards.
    """

    job: Job
    store_path: Path
    run: Callable[[Job], Awaitable[R]]
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
        job = self.job.with_settings(naming_address(self.job.settings))
        make_folder(self.folder.path)
        with ExternalSorter[RequestRow](lambda row: (row.key,), self.folder.path) as rows:
            collecting = _Collecting(rows)
            dry = replace(job.mode, dry_run=True)
            await self.run(replace(job, mode=dry, observer=silent, collector=collecting))
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
            models=tuple(collecting.models),
            shards=shards,
        )
        self.folder.write_plan(plan)
        return plan

    async def end(self) -> R:
        """Take the replies of all shards over, and return what the job comes to.

        Raises:
            ShortfallError: A shard is not done.
        """
        plan = self.folder.read_plan()
        all_done(self.folder, plan)
        with closing(CallStore(self.store_path)) as store:
            for shard in plan.shards:
                place = OutputFile.beside(self.folder.judged_path(shard.index))
                with closing(CallStore(place.store_path)) as part:
                    store.add(part.rows())
        with drawing_on(self.folder.budget_path, self.job):
            return await self.run(self.job)


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
            opened = connect(settings, store_path, job.observer, job.account)
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
