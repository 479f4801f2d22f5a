"""Planning: pairs are cut into shards, and what all shards must agree on is decided once."""

import collections
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ragforge.config.sections import is_offline
from ragforge.files.atomic import make_folder
from ragforge.files.formats.pairs import PairRow
from ragforge.observe import Event
from ragforge.pipeline.job import Job, OutputFile
from ragforge.pipeline.judge.judge_run import (
    PILOT_PAIRS,
    JudgeRun,
    JudgingResult,
    PositionSums,
    judged_spool,
    keeps_batches,
    why_alone,
)
from ragforge.pipeline.judge.judges import open_judges
from ragforge.pipeline.judge.judging import PairsByQuery
from ragforge.pipeline.shards.budget import drawing_on
from ragforge.pipeline.shards.plan import (
    Shard,
    ShardFolder,
    ShardPlan,
    cut,
    naming_address,
    planned_settings,
    require_same_work,
    take_along,
)
from ragforge.pipeline.shards.replanning import planned_again
from ragforge.records import Provenance
from ragforge.stages.judge.llm import refuse_shared_queries

_PILOT = 2 * PILOT_PAIRS


async def plan_pairs(
    pairs_path: Path, folder: ShardFolder, job: Job, *, pairs_per_shard: int, workers: int | None
) -> ShardPlan:
    """Cut the pairs of a file into shards of whole queries.

    Where they are judged in batches, the first pairs are judged now, to find out whether the place
    in a batch moves grades: shards that decided for themselves would decide differently.

    Args:
        pairs_path: See `read_pairs`.
        folder: Gets the shards. Planned again for the same work, the budget, the speed, and the
            address of a named endpoint may change.
        job: Models, prompts, budget, and how to judge.
        pairs_per_shard: A shard is closed with the query that reaches it.
        workers: That share the rate and the calls in flight; where None as planned before, else 1.

    Raises:
        UsageError: The folder holds other work.
        DataError, ConfigError, EndpointError, BudgetError: As for `judge_file`.
    """
    job = job.with_settings(naming_address(job.settings))
    make_folder(folder.path)
    old = folder.read_plan() if folder.plan_path.is_file() else None
    with PairsByQuery(pairs_path, folder.path) as rows:
        lines = _HashedLines(rows.lines())
        if old is None:
            take_along(job.settings, folder)
            shards = tuple(cut(lines, pairs_per_shard, folder.pairs_path, PairRow.query_prefix))
        else:
            shards = ()
            collections.deque(lines, maxlen=0)
        judge, judges = await _judges(job, folder, rows.queries)
        plan = ShardPlan(
            source_sha256=lines.sha256,
            shard_size=pairs_per_shard,
            workers=workers or (old.workers if old else 1),
            settings=planned_settings(job.settings),
            judge=judge,
            judges=judges,
            batched=False,
            has_labels=rows.labels.baseline() is not None,
            shards=shards,
        )
    if old is not None:
        require_same_work(old, plan, folder.path)
        return planned_again(folder, old, plan)
    with drawing_on(folder.budget_path, job):
        batched = await _is_batched(job, folder, shards)
    plan = plan.model_copy(update={"batched": batched})
    folder.write_plan(plan)
    return plan


class _HashedLines:
    """Lines, and the digest of those that were taken."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self._digest = hashlib.sha256()

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._digest.update(line.encode())
            yield line

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


async def _judges(
    job: Job, folder: ShardFolder, queries: Mapping[str, str]
) -> tuple[str, tuple[Provenance, ...]]:
    """Return the name of the judge, and what records will call it; nothing is asked."""
    dry = replace(job, mode=replace(job.mode, dry_run=True))
    async with open_judges(dry, OutputFile.beside(folder.judged_path(0))) as judges:
        refuse_shared_queries(judges.examples, queries)
        return judges.name, judges.provenances()


async def _is_batched(job: Job, folder: ShardFolder, shards: Iterable[Shard]) -> bool:
    """Find out on the first pairs whether batches may be used; their replies stay in the shards."""
    settings = job.settings
    if settings.judge.batch == 1 or is_offline(settings.model.name):
        return False
    sums, left = PositionSums(), _PILOT
    for shard in _first(shards):
        place = OutputFile.beside(folder.judged_path(shard.index))
        async with open_judges(job, place, "judge") as judges:
            with judged_spool(folder.shard(shard.index)) as judged:
                run = JudgeRun(judges, judged, JudgingResult(judges.name), batched=True)
                n_pairs, index = _whole_queries(folder, shard, left), shard.index
                await run.judge(lambda: islice(folder.pairs(index), n_pairs), n_pairs)  # noqa: B023  # used at once
                for judgment in judged.results():
                    sums.add(judgment)
                left -= n_pairs
    effect = sums.effect()
    if keeps_batches(effect):
        return True
    job.observer(Event("note", message=why_alone(effect)))
    return False


def _first(shards: Iterable[Shard]) -> Iterator[Shard]:
    """Yield as many shards as have the pairs that a decision takes."""
    n_pairs = 0
    for shard in shards:
        if n_pairs >= _PILOT:
            return
        n_pairs += shard.size
        yield shard


def _whole_queries(folder: ShardFolder, shard: Shard, wanted: int) -> int:
    """Return how many pairs of a shard are at least as many as wanted, query by query."""
    last, n_pairs = "", 0
    for pair in folder.pairs(shard.index):
        if n_pairs >= wanted and pair.query_id != last:
            break
        last, n_pairs = pair.query_id, n_pairs + 1
    return n_pairs
