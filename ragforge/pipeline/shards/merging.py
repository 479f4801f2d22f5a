"""Putting shards together: the file that one process would have written, block by block."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ragforge.errors import DataError, ShortfallError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.atomic import write_whole_bytes
from ragforge.files.formats.pairs import read_pair_rows
from ragforge.files.record_files import ExternalSorter, read_records
from ragforge.pipeline.job import failures_beside
from ragforge.pipeline.judge.agreement import HumanLabels
from ragforge.pipeline.judge.judge_run import (
    JudgingResult,
    PositionSums,
    describe_position_effect,
    keeps_batches,
)
from ragforge.pipeline.judge.judging import refused_if_all_failed
from ragforge.pipeline.shards.budget import used_up
from ragforge.pipeline.shards.plan import ShardDone, ShardFolder, ShardPlan, file_sha256
from ragforge.records import Failure, Judgment
from ragforge.stages.judge.pairs import Pair

_BLOCK = 1024 * 1024
_NAMED = 5
"""Missing shards that a message names."""


def merge_shards(folder: ShardFolder, out: Path) -> JudgingResult:
    """Write the judgments of all shards into one file, sorted, and failures beside it.

    Shards hold whole queries in the order of the file, so they are put one behind the other: memory
    does not grow with them.

    Raises:
        UsageError: The shards are not of pairs; or the file is to be among those of a shard.
        ShortfallError: A shard is not done; or places in batches move grades after all.
        DataError: A shard is not as it was when it was done.
        EndpointError: Every pair failed.
    """
    plan = folder.read_plan()
    if plan.kind != "pairs":
        raise UsageError(
            f"{folder.path}: holds requests of another command; start that one again, with the "
            "same --shards"
        )
    if out.resolve().is_relative_to(folder.shards_path.resolve()):
        raise UsageError(f"--out {out}: is among the files of a shard; name another")
    parts = all_done(folder, plan)
    _check(folder, parts)
    result = _counted(plan, parts)
    if plan.batched:
        _look_at_places(folder, plan, result)
    paths = [folder.judged_path(index) for index in range(len(parts))]
    write_whole_bytes(out, (block for path in paths for block in _blocks(path)))
    _merge_failures(folder, parts, result, out)
    if plan.has_labels:
        result.agreement = _labels(folder, plan).agreement_with(
            result.judge, read_records(out, Judgment)
        )
    return refused_if_all_failed(result, result.n_pairs)


def all_done(folder: ShardFolder, plan: ShardPlan) -> list[ShardDone]:
    """Return what all shards came to.

    Raises:
        ShortfallError: One is not done.
    """
    done = [folder.done(plan, shard.index) for shard in plan.shards]
    missing = [str(index) for index, part in enumerate(done) if part is None]
    if missing:
        names = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
        flag = used_up(folder.budget_path, plan.settings.budget)
        raise ShortfallError(
            f"{folder.path}: {plural(len(missing), 'shard is', 'shards are')} not done: {names}; "
            + (
                f"{flag} is used up: {plan.way_on(folder.path)}"
                if flag
                else f"`ragforge shard run {folder.path}` goes on"
            )
        )
    return [part for part in done if part is not None]


def _check(folder: ShardFolder, parts: list[ShardDone]) -> None:
    for index, part in enumerate(parts):
        files = {folder.judged_path(index): part.judged_sha256}
        if part.failures_sha256:
            files[failures_beside(folder.judged_path(index))] = part.failures_sha256
        for path, sha256 in files.items():
            if not path.is_file() or file_sha256(path) != sha256:
                raise changed_since(folder, path, index)


def changed_since(folder: ShardFolder, path: Path, index: int) -> DataError:
    """Return the error of a file or folder that is not what a shard was done with."""
    return DataError(
        f"{path}: is not as it was when the shard was done; remove "
        f"{folder.done_path(index)} and run the shard again"
    )


def _counted(plan: ShardPlan, parts: list[ShardDone]) -> JudgingResult:
    grades: Counter[int] = Counter()
    flags: Counter[str] = Counter()
    unwrapped: Counter[str] = Counter()
    for part in parts:
        grades.update(part.grades)
        flags.update(part.flags)
        unwrapped.update(part.unwrapped)
    return JudgingResult(
        judge=plan.asked,
        n_pairs=plan.size,
        n_judged=sum(part.n_done for part in parts),
        n_failed=sum(part.n_failed for part in parts),
        n_copied=sum(part.n_copied for part in parts),
        n_texts=sum(part.n_texts for part in parts),
        grades=grades,
        flags=flags,
        unwrapped=unwrapped,
        gave_up_batches=plan.settings.judge.batch > 1 and not plan.batched,
    )


def _look_at_places(folder: ShardFolder, plan: ShardPlan, result: JudgingResult) -> None:
    """Look at all pairs whether places in batches move grades, as one process does at its end."""
    sums = PositionSums()
    for shard in plan.shards:
        for judgment in read_records(folder.judged_path(shard.index), Judgment):
            sums.add(judgment)
    effect = result.position = sums.effect()
    if not keeps_batches(effect):
        assert effect is not None
        raise ShortfallError(
            f"{folder.path}: over all pairs the place of a passage in its batch moves its grade "
            f"({describe_position_effect(effect)}), which the first pairs did not show; plan the "
            "work without --batch, into another folder"
        )


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        yield from iter(lambda: stream.read(_BLOCK), b"")


def _merge_failures(
    folder: ShardFolder, parts: list[ShardDone], result: JudgingResult, out: Path
) -> None:
    beside = failures_beside(out)
    # Their order is that of one text, pair by pair, which is not that of queries and chunks.
    with ExternalSorter[Failure](lambda item: (item.key,), out.parent) as sorter:
        for index, part in enumerate(parts):
            if part.failures_sha256:
                for failure in read_records(failures_beside(folder.judged_path(index)), Failure):
                    result.first_failure = result.first_failure or failure
                    sorter.add(failure)
        if sorter.count or beside.exists():
            sorter.write(beside)


def _labels(folder: ShardFolder, plan: ShardPlan) -> HumanLabels:
    labels = HumanLabels()
    for shard in plan.shards:
        for row in read_pair_rows(folder.pairs_path(shard.index)):
            pair = Pair(row.query_id, row.query, row.chunk_id, row.text)
            labels.add(pair, row.human_grade)
    return labels
