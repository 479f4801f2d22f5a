"""The survey of a corpus in shards: chunks are read anywhere, and it is put together once."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ragforge.config import ModelSettings, Settings
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import make_folder, remove_whole, whole_folder
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.sorted_records import each_chunk, not_sorted
from ragforge.observe import Event, Observer
from ragforge.pipeline.shards.merging import all_done, changed_since
from ragforge.pipeline.shards.plan import (
    ShardDone,
    ShardFolder,
    ShardPlan,
    cut,
    file_sha256,
    require_same_work,
)
from ragforge.pipeline.surveying import FORMAT, STAGE, SurveyPart, merge_survey

_READ = "read"


def plan_survey(
    chunks_path: Path, folder: ShardFolder, settings: Settings, *, size: int, workers: int | None
) -> ShardPlan:
    """Cut the chunks of a file into shards.

    Args:
        chunks_path: Chunks, sorted by id.
        folder: Gets the shards. Planned again for the same chunks, what is done stays.
        settings: Have the seed that decides topics.
        size: Chunks of a shard.
        workers: At once, where Ray starts them; where None as planned before, else 1.

    Raises:
        UsageError: The folder holds other work.
        DataError: The chunks cannot be read or are not sorted, or there are none.
    """
    if next(each_chunk(chunks_path), None) is None:
        raise DataError(f"{chunks_path}: holds no chunk")
    make_folder(folder.path)
    old = folder.read_plan() if folder.plan_path.is_file() else None
    plan = ShardPlan(
        kind="chunks",
        source_sha256=file_sha256(chunks_path),
        shard_size=size,
        workers=workers or (old.workers if old else 1),
        settings=Settings(model=ModelSettings(seed=settings.model.seed)),
        survey_format=FORMAT,
        shards=(),
    )
    if old is not None:
        require_same_work(old, plan, folder.path)
        shards = old.shards
    else:
        # Each chunk is a group of its own.
        shards = tuple(cut(_lines(chunks_path), size, folder.chunks_path, str))
    plan = plan.model_copy(update={"shards": shards})
    folder.write_plan(plan)
    return plan


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of chunks, and check their order: no worker could mend it."""
    last = ""
    try:
        with path.open(encoding="utf-8", newline="\n") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.isspace():
                    chunk_id = _chunk_id(path, number, line)
                    if chunk_id <= last:
                        raise not_sorted(path, number, "chunk_id", last, chunk_id)
                    last = chunk_id
                yield line
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8: {error}") from error


def _chunk_id(path: Path, number: int, line: str) -> str:
    try:
        return str(json.loads(line.removeprefix("\ufeff"))["chunk_id"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path}:{number}: is no chunk: {error}") from error


async def survey_shard(
    folder: ShardFolder, plan: ShardPlan, index: int, observer: Observer
) -> ShardDone:
    """Read the chunks of a shard into a part of the survey.

    Raises:
        UsageError: Another version of ragforge planned it.
        DataError: The chunks cannot be read, or are not sorted, or there is no space.
    """
    _require_format(folder, plan)
    place = folder.survey_path(index)
    remove_whole(place)
    observer(Event("stage.start", STAGE, numbers={"total": plan.shards[index].size}))
    try:
        with whole_folder(place) as temporary:
            part = replace(_parts(folder, plan)[index], folder=temporary / _READ)
            for _ in part.read(observer):
                await asyncio.sleep(0)  # The lease is renewed.
    finally:
        observer(Event("stage.end", STAGE))
    shard, digest = plan.shards[index], _survey_sha256(place)
    return ShardDone(sha256=shard.sha256, survey_sha256=digest, n_done=shard.size, n_failed=0)


def _survey_sha256(place: Path) -> str:
    """Return a digest of the files of a shard's survey and their names."""
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(place).as_posix()}\n{file_sha256(path)}\n".encode())
    return digest.hexdigest()


def merge_survey_shards(folder: ShardFolder, dataset: Dataset) -> Path:
    """Put the survey of a dataset's chunks together, as `generate` would have made it.

    Args:
        folder: Of the shards.
        dataset: Has these chunks, or will have them: it may be a folder that is yet to be made.

    Returns:
        Where the survey is, among the dataset's own files.

    Raises:
        ShortfallError: A shard is not done.
        UsageError: Another version of ragforge planned it.
        DataError: The chunks of the dataset are not those that were planned; or shards are not as
            they were.
    """
    plan = folder.read_plan()
    done = all_done(folder, plan)
    _require_format(folder, plan)
    _require_unchanged(folder, plan, done)
    chunks_path = dataset.chunks_path
    if chunks_path.exists() and file_sha256(chunks_path) != plan.source_sha256:
        raise DataError(f"{chunks_path}: is not the file of chunks that was planned")
    return merge_survey(
        _parts(folder, plan),
        dataset.own_place,
        seed=plan.settings.model.seed,
        sha256=plan.source_sha256,
    )


def _require_unchanged(folder: ShardFolder, plan: ShardPlan, done: list[ShardDone]) -> None:
    for shard, part in zip(plan.shards, done, strict=True):
        place, chunks_path = folder.survey_path(shard.index), folder.chunks_path(shard.index)
        if file_sha256(chunks_path) != shard.sha256:
            raise DataError(f"{chunks_path}: is not the file that was planned")
        if part.survey_sha256 and _survey_sha256(place) != part.survey_sha256:
            raise changed_since(folder, place, shard.index)


def _parts(folder: ShardFolder, plan: ShardPlan) -> list[SurveyPart]:
    parts, begin = [], 0
    for shard in plan.shards:
        chunks_path = folder.chunks_path(shard.index)
        parts.append(SurveyPart(chunks_path, begin, folder.survey_path(shard.index) / _READ))
        begin += chunks_path.stat().st_size
    return parts


def _require_format(folder: ShardFolder, plan: ShardPlan) -> None:
    if plan.survey_format != FORMAT:
        raise UsageError(
            f"{folder.path}: was planned by a ragforge that looks through chunks in another way; "
            "plan into another folder"
        )
