"""Ray as the driver of shards: it places workers, and starts again what is lost.

A task is one shard. Everything that must outlive a worker, a node or the driver is in the folder of
the shards, as without Ray.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ragforge.errors import ConfigError, RagforgeError
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.shards.plan import ShardFolder, ShardPlan
from ragforge.pipeline.shards.progress import end_of, spent_in_shards, start_of
from ragforge.pipeline.shards.running import ShardRun, worker_job

_FOR_EVER: Final = -1
_TICK_S: Final = 5.0


def run_on_ray(
    folder: ShardFolder, plan: ShardPlan, indexes: Iterable[int], mode: Mode, observer: Observer
) -> int:
    """Work shards off on a Ray cluster, the plan's number of workers at once; return how many.

    It joins the cluster that RAY_ADDRESS names, else it starts one on this machine, which ends with
    it. Nodes need ragforge, the folder under the same path, and the API key in their environment.

    Args:
        folder: Of the plan.
        plan: What is to be done.
        indexes: Of the shards.
        mode: Whether replies that were no use are asked for again.
        observer: Told of each shard that is done.

    Raises:
        ConfigError: Ray is not installed.
        EndpointError, BudgetError: As a worker meets it; shards that were done are.
    """
    left = [index for index in indexes if mode.retry_failed or folder.done(plan, index) is None]
    todo, stage = iter(left), plan.stage
    observer(start_of(plan, left))
    before = spent_in_shards(folder, left)
    n_done = 0
    with _cluster(plan.workers) as ray:
        # A worker that is lost, with its node or alone, is no failure of the task.
        work = ray.remote(num_cpus=1, max_retries=_FOR_EVER)(_work)
        place = folder.path.resolve()
        running = {work.remote(place, plan, index, mode): index for index in _take(todo, plan)}
        while running:
            ended, _ = ray.wait(list(running), timeout=_TICK_S)
            for task in ended:
                index, error = running.pop(task), ray.get(task)
                if error is not None:
                    raise error
                n_done += 1
                observer(end_of(folder, plan, index, before))
                running |= {work.remote(place, plan, more, mode): more for more in _take(todo)}
            observer(Event("tick", stage))
    observer(Event("stage.end", stage))
    return n_done


def _take(todo: Iterator[int], plan: ShardPlan | None = None) -> list[int]:
    """Return the next shards: one, or one for each worker at the beginning."""
    wanted = plan.workers if plan else 1
    return [index for _, index in zip(range(wanted), todo, strict=False)]


def _work(place: Path, plan: ShardPlan, index: int, mode: Mode) -> RagforgeError | None:
    """Work one shard off in a process of Ray; return what it met, for Ray would wrap it."""
    folder = ShardFolder(place)
    job = worker_job(Job(folder.settings(plan), silent, mode), plan)
    try:
        asyncio.run(ShardRun(folder, plan, job).run([index]))
    except RagforgeError as error:
        return error
    return None


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """Lend Ray, in the cluster that RAY_ADDRESS names, else in one of this machine."""
    # Ray tells its makers of each use unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = import_module("ray")  # It has no types of its own.
    except ImportError as error:
        raise ConfigError("--on ray: Ray is not installed; pip install 'ragforge[ray]'") from error
    here = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers}
    ray.init(log_to_driver=False, logging_level="error", include_dashboard=False, **here)
    try:
        yield ray
    finally:
        ray.shutdown()
