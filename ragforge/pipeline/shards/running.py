"""Working shards off: one worker takes one after the other, until all are done."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import field, replace

from ragforge.config import ModelSettings
from ragforge.deferred import dataclass
from ragforge.errors import BudgetError, DataError, LeaseLostError, PlanLimitError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.llm.store.models import leases_renewed
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job, OutputFile, failures_beside
from ragforge.pipeline.judge.judge_run import JudgeRun, JudgingResult, judged_spool
from ragforge.pipeline.judge.judges import Judges, open_judges
from ragforge.pipeline.shards.budget import drawing_on
from ragforge.pipeline.shards.leases import ShardLease
from ragforge.pipeline.shards.plan import ShardDone, ShardFolder, ShardPlan, file_sha256
from ragforge.pipeline.shards.requests import ask_requests, part_of_rate

_LOOK_EVERY_S = 1.0
"""Between two looks whether a shard that another worker had is free."""


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One worker, and what it works on.

    Args:
        folder: Of the plan.
        plan: What is to be done.
        job: Under the settings of the plan.
        written: When shards were done that are to be asked again: what others ask again since
            stays.
        on_done: Told of each shard that this worker did.
        has_siblings: Whether it was started with others, for which to wait is no news.
    """

    folder: ShardFolder
    plan: ShardPlan
    job: Job
    written: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    on_done: Callable[[int], None] = lambda index: None
    has_siblings: bool = False

    async def run(self, indexes: Iterable[int]) -> list[int]:
        """Work shards off, and return which of them this worker did.

        What others are at is waited for, and taken over where they are gone.

        Raises:
            EndpointError, PlanLimitError: Shards that were done are; the rest goes on in a rerun.
        """
        from ragforge.llm.endpoints import OpenEndpoints

        try:
            with drawing_on(self.folder.budget_path, self.job):
                async with OpenEndpoints() as endpoints:
                    worker = replace(self, job=replace(self.job, endpoints=endpoints))
                    return await worker._work_off(list(indexes))
        except BudgetError as error:
            way_on = self.plan.way_on(self.folder.path)
            raise PlanLimitError(f"{error}; {way_on}") from error

    def remember(self, indexes: Iterable[int]) -> None:
        """Remember when shards were done, where they are to be asked again."""
        if self.job.mode.retry_failed:
            for index in indexes:
                self.written.setdefault(index, self.folder.written(index))

    async def _work_off(self, left: list[int]) -> list[int]:
        mine, has_told = list[int](), self.has_siblings
        self.remember(left)
        while left := await self._pass(left, mine):
            if not has_told:
                has_told = True
                words = plural(len(left), "shard is", "shards are")
                self._note(f"{words} with another worker, and waited for")
            await asyncio.sleep(_LOOK_EVERY_S)
        return mine

    async def _pass(self, left: Iterable[int], mine: list[int]) -> list[int]:
        """Work off what is free, and return what other workers hold."""
        held = []
        for index in left:
            if self.is_done(index):
                continue
            lease = ShardLease(self.folder.shard(index))
            if lease.take() is not None:
                held.append(index)
                continue
            try:
                # It may have been done between the look and the lease.
                if not self.is_done(index):
                    async with leases_renewed(lease):
                        await self._work(index, lease)
                    mine.append(index)
                    self.on_done(index)
            except LeaseLostError:
                held.append(index)
            finally:
                lease.release()
        if self.job.mode.retry_failed:
            return []  # What is asked for again elsewhere would be asked for here once more.
        return [index for index in held if not self.is_done(index)]

    def is_done(self, index: int) -> bool:
        """Whether nothing is to be done for a shard, or nothing any more."""
        done = self.folder.done(self.plan, index)
        if done is None or not (self.job.mode.retry_failed and done.n_failed):
            return done is not None
        return self.folder.written(index) != self.written[index]

    async def _work(self, index: int, lease: ShardLease) -> None:
        path = self.folder.work_path(self.plan, index)
        if file_sha256(path) != self.plan.shards[index].sha256:
            raise DataError(f"{path}: is not the file that was planned")
        if self.plan.kind == "pairs":
            await self._judge(index, lease)
        elif self.plan.kind == "chunks":
            self.folder.begin(index)
            from ragforge.pipeline.shards.survey import survey_shard

            done = await survey_shard(self.folder, self.plan, index, self.job.observer)
            self.folder.write_done(index, done)
        else:
            place = OutputFile.beside(self.folder.judged_path(index))
            counts = await ask_requests(path, place.store_path, self.plan, self.job)
            done = ShardDone(sha256=self.plan.shards[index].sha256, **counts)
            lease.require()
            self.folder.write_done(index, done)

    async def _judge(self, index: int, lease: ShardLease) -> None:
        folder, shard, out = self.folder, self.plan.shards[index], self.folder.judged_path(index)
        async with open_judges(self.job, OutputFile.beside(out), "judge") as judges:
            self._require_planned(judges)
            result = JudgingResult(judges.name, shard.size)
            with judged_spool(out.parent) as judged:
                run = JudgeRun(judges, judged, result, self.plan.batched)
                await run.judge(lambda: folder.pairs(index), shard.size)
                lease.require()
                folder.begin(index)
                judged.write(out)
            folder.write_done(index, self._done(index, judges, result))

    def _require_planned(self, judges: Judges) -> None:
        """Check that this worker judges as all others do.

        Raises:
            UsageError: It has another model, prompt or way.
        """
        if judges.provenances() != self.plan.judges:
            raise UsageError(
                f"{self.folder.path}: was planned for another judge: its model, prompt or way of "
                "judging is not the one here; use the ragforge and the prompts of the plan"
            )

    def _done(self, index: int, judges: Judges, result: JudgingResult) -> ShardDone:
        out = self.folder.judged_path(index)
        failures, backend = failures_beside(out), judges.backends[0]
        return ShardDone(
            sha256=self.plan.shards[index].sha256,
            judged_sha256=file_sha256(out),
            failures_sha256=file_sha256(failures) if failures.exists() else "",
            judges=self.plan.judges,
            batched=self.plan.batched,
            n_done=result.n_judged,
            n_failed=result.n_failed,
            n_copied=result.n_copied,
            n_texts=result.n_texts,
            grades=dict(sorted(result.grades.items())),
            flags=dict(sorted(result.flags.items())),
            unwrapped=dict(sorted(result.unwrapped.items())),
            spent=backend.connection.store.spent() if backend.connection else None,
        )

    def _note(self, message: str) -> None:
        self.job.observer(Event("note", message=message))


def told_once(observer: Observer) -> Observer:
    """Return an observer that passes a note on once, though each shard would tell it."""
    told: set[str] = set()

    def observe(event: Event) -> None:
        if event.name == "note":
            if event.message in told:
                return
            told.add(event.message)
        observer(event)

    return observe


def worker_job(job: Job, plan: ShardPlan) -> Job:
    """Return the job of one worker: its part of the rate, and of the calls in flight."""
    model = part_of_rate(job.settings.model, plan.workers)
    return job.with_settings(job.settings.model_copy(update={"model": model}))


def with_address(plan: ShardPlan, base_url: str) -> ShardPlan:
    """Return a plan whose named endpoint is asked at another address.

    Raises:
        UsageError: The endpoint has no name, so that another address is another endpoint.
    """
    model = plan.settings.model
    if not model.endpoint_id:
        raise UsageError(
            "--base-url: the plan names no endpoint, so that another address is another endpoint; "
            "plan with --endpoint-id NAME"
        )
    changed = ModelSettings.model_validate({**model.model_dump(), "base_url": base_url})
    settings = plan.settings.model_copy(update={"model": changed})
    models = tuple(
        one.model_copy(update={"base_url": changed.base_url})
        if one.endpoint_id == model.endpoint_id
        else one
        for one in plan.models
    )
    return plan.model_copy(update={"settings": settings, "models": models})
