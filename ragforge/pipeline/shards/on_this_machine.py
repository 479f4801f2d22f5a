"""Workers of shards on this machine: children of one process, which starts again what is killed.

They are forked, so that what all of them load is loaded once. They end with their parent.
"""

import asyncio
import gc
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from multiprocessing import Pipe, get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, NamedTuple

from ragforge.config.sections import is_offline
from ragforge.deferred import dataclass
from ragforge.errors import ShortfallError, StoppedError, UsageError
from ragforge.llm.openai_endpoint import load_transport
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.shards.plan import ShardFolder, ShardPlan
from ragforge.pipeline.shards.progress import end_of, spent_in_shards, start_of
from ragforge.pipeline.shards.running import ShardRun, worker_job
from ragforge.stages.judge.llm import build_ahead

_TICK_S: Final = 5.0
_MOST_LOST: Final = 10
"""Workers that end, though nobody stopped them, with no shard done between."""
_PASSED_ON: Final = frozenset({"note", "flow", "retry"})
"""Events of workers that the user is told of; the others are too many."""


def run_on_this_machine(
    folder: ShardFolder, plan: ShardPlan, indexes: Iterable[int], mode: Mode, observer: Observer
) -> int:
    """Work shards off in processes of this machine, the plan's number at once; return how many.

    Its arguments are those of `run_on_ray`.

    Raises:
        RagforgeError: As a worker meets it; shards that were done are.
        ShortfallError: Workers are killed again and again; likewise.
        KeyboardInterrupt: They have ended, too.
    """
    if "fork" not in get_all_start_methods():
        raise UsageError(
            "--on this-machine: this system cannot fork processes; start `ragforge shard run` "
            "once for each worker"
        )
    run = ShardRun(folder, plan, worker_job(Job(folder.settings(plan), silent, mode), plan))
    indexes = list(indexes)
    run.remember(indexes)
    left = [index for index in indexes if not run.is_done(index)]
    observer(start_of(plan, left))
    before = spent_in_shards(folder, left)
    _load(plan)
    pool, n_done = _WorkerPool(run, left), 0
    try:
        for _ in range(min(plan.workers, len(left))):
            pool.start_one()
        while pool.workers:
            for message in pool.messages():
                if isinstance(message, Event):
                    observer(message)
                else:
                    n_done += 1
                    observer(end_of(folder, plan, message, before))
            observer(Event("tick", plan.stage))
    finally:
        pool.stop()
    observer(Event("stage.end", plan.stage))
    return n_done


def _load(plan: ShardPlan) -> None:
    """Load what every worker needs."""
    models = plan.models if plan.kind == "requests" else (plan.settings.model,)
    for model in models:
        if plan.kind != "chunks" and not is_offline(model.name):
            load_transport(model)
    if plan.kind == "pairs":
        build_ahead()
    gc.freeze()  # Looked through by a worker's collector, it would be copied.


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


@dataclass(slots=True)
class _WorkerPool:
    """Workers that are at work.

    Args:
        run: What each does.
        indexes: Of the shards.
    """

    run: ShardRun
    indexes: list[int]
    workers: list[_Worker] = field(default_factory=list)
    n_lost: int = 0

    def start_one(self) -> None:
        """Start a worker."""
        here, there = Pipe()
        inherited = [here, *(worker.pipe for worker in self.workers)]
        process = get_context("fork").Process(
            target=_work, args=(self.run, self.indexes, there, inherited)
        )
        process.start()
        there.close()
        self.workers.append(_Worker(process, here))

    def messages(self) -> Iterator[Event | int]:
        """Wait a while, and yield events, and shards that are done; start killed workers again.

        Raises:
            RagforgeError: A worker met it.
            ShortfallError: Workers are killed again and again.
        """
        for pipe in wait([worker.pipe for worker in self.workers], _TICK_S):
            [worker] = [one for one in self.workers if one.pipe is pipe]
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):  # It ended, perhaps within a message.
                self._ended(worker)
                continue
            if isinstance(message, BaseException):
                raise message
            if isinstance(message, int):
                self.n_lost = 0
            yield message

    def _ended(self, worker: _Worker) -> None:
        self.workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        if worker.process.exitcode == 0:
            return
        self.n_lost += 1
        if self.n_lost > _MOST_LOST:
            raise ShortfallError(
                f"{self.n_lost} workers ended, the last with exit code {worker.process.exitcode}, "
                "and no shard was done meanwhile: does the memory suffice?"
            )
        self.start_one()

    def stop(self) -> None:
        """Have workers give their shards back, and wait for that; kill them at another Ctrl-C."""
        try:
            for worker in self.workers:
                worker.pipe.close()
            for worker in self.workers:
                worker.process.join()
        except KeyboardInterrupt:
            for worker in self.workers:
                worker.process.kill()
            raise


def _work(
    run: ShardRun, indexes: list[int], pipe: Connection, inherited: Iterable[Connection]
) -> None:
    """Work shards off in a child, which is told of an interrupt by its parent."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for connection in inherited:
        connection.close()  # Else nobody would see that its process is gone.
    try:
        asyncio.run(_worked_off(run, indexes, pipe))
    except asyncio.CancelledError:
        sys.exit(StoppedError.exit_code)
    except Exception as error:  # noqa: BLE001  # told to the parent, which raises it
        error.add_note(traceback.format_exc())
        with suppress(OSError):
            pipe.send(error)


async def _worked_off(run: ShardRun, indexes: list[int], pipe: Connection) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def stop() -> None:
        loop.remove_reader(pipe.fileno())
        if not task.cancelling():
            task.cancel()

    def tell(message: Event | int) -> None:
        with suppress(OSError):  # Nobody listens any more.
            pipe.send(message)

    def observe(event: Event) -> None:
        if event.name in _PASSED_ON:
            tell(event)

    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_reader(pipe.fileno(), stop)  # All there is to read is that the parent is gone.
    job = replace(run.job, observer=observe)
    await replace(run, job=job, on_done=tell, has_siblings=True).run(indexes)
