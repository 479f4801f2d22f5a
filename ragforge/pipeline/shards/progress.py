"""How far the work of a plan is."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.manifest import Spent
from ragforge.llm.store.ledger import spent as spent_in
from ragforge.llm.store.sqlite_file import reading
from ragforge.observe import Event
from ragforge.pipeline.job import OutputFile
from ragforge.pipeline.shards.budget import read_taken
from ragforge.pipeline.shards.leases import holder_of
from ragforge.pipeline.shards.plan import ShardFolder, ShardPlan


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """How far it is.

    Args:
        kind: pairs, requests, or chunks.
        asked: Who judges, or answers; "" where nobody is asked.
        shards, done: How many there are, and are done.
        running: Shards in work, by the host and process that is at it.
        size, succeeded, failed: Pairs, requests or chunks: all, and those of shards that are done.
        batched: Whether passages are judged in batches.
        spent: By the call stores of all shards but those in work; None where there are none.
        taken: Of the budget, by the name of the limit; what running workers hold is in it.
    """

    kind: str
    asked: str
    shards: int
    done: int
    running: dict[int, str]
    size: int
    succeeded: int
    failed: int
    batched: bool
    spent: Spent | None
    taken: dict[str, float]

    @property
    def left(self) -> int:
        """Shards that are neither done nor in work."""
        return self.shards - self.done - len(self.running)


def start_of(plan: ShardPlan, indexes: Iterable[int]) -> Event:
    """Return the event that these shards are begun with."""
    total = sum(plan.shards[index].size for index in indexes)
    return Event("stage.start", plan.stage, numbers={"total": float(total)})


def end_of(folder: ShardFolder, plan: ShardPlan, index: int, before: Mapping[int, Spent]) -> Event:
    """Return the event that a shard is done, with what it has spent since it was begun.

    Args:
        folder: Of the plan.
        plan: With the shard.
        index: Of the shard.
        before: What `spent_in_shards` was when the shards were begun.
    """
    done = folder.done(plan, index)
    numbers = {"count": float(plan.shards[index].size)}
    if done is not None:
        numbers["failed"] = float(done.n_failed)
        if done.spent is not None:
            spent = done.spent.model_dump(exclude_none=True)
            earlier = before.get(index, Spent()).model_dump()
            numbers |= {name: float(spent[name] - (earlier[name] or 0)) for name in spent}
    return Event("unit", plan.stage, "done", numbers=numbers)


def spent_in_shards(folder: ShardFolder, indexes: Iterable[int]) -> dict[int, Spent]:
    """Return what shards have spent, by index, of those that have a call store."""
    found: dict[int, Spent] = {}
    for index in indexes:
        store_path = OutputFile.beside(folder.judged_path(index)).store_path
        # One that cannot be read is mended by the worker that goes on with it.
        with suppress(DataError), reading(store_path) as connection:
            found[index] = spent_in(connection)
    return found


def progress_of(folder: ShardFolder) -> ShardProgress:
    """Return how far the work in a folder is.

    Raises:
        UsageError, DataError: There is no plan, or a file cannot be read.
    """
    plan = folder.read_plan()
    done = [part for shard in plan.shards if (part := folder.done(plan, shard.index))]
    open_shards = [shard.index for shard in plan.shards if not folder.done(plan, shard.index)]
    holders = {index: holder_of(folder.shard(index)) for index in open_shards}
    running = {
        index: f"{owner.machine.partition('/')[0]}:{owner.pid}"
        for index, owner in holders.items()
        if owner is not None
    }
    spent = [part.spent for part in done if part.spent is not None]
    stopped = [index for index in open_shards if index not in running]
    spent += spent_in_shards(folder, stopped).values()
    return ShardProgress(
        kind=plan.kind,
        asked=plan.asked,
        shards=len(plan.shards),
        done=len(done),
        running=running,
        size=plan.size,
        succeeded=sum(part.n_done for part in done),
        failed=sum(part.n_failed for part in done),
        batched=plan.batched,
        spent=_sum(spent) if spent else None,
        taken=read_taken(folder.budget_path),
    )


def _sum(parts: list[Spent]) -> Spent:
    costs = [part.cost_usd for part in parts if part.cost_usd is not None]
    return Spent(
        calls=sum(part.calls for part in parts),
        prompt_tokens=sum(part.prompt_tokens for part in parts),
        completion_tokens=sum(part.completion_tokens for part in parts),
        cost_usd=round(sum(costs), 9) if len(costs) == len(parts) else None,
    )
