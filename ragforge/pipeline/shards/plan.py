"""The plan of a folder of shards: what was cut, how it is judged, and what may be spent."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from ragforge.config import ModelSettings, Settings
from ragforge.config.sections import is_offline
from ragforge.deferred import shutil
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import write_whole
from ragforge.files.formats.pairs import read_pair_rows
from ragforge.files.manifest import Spent
from ragforge.files.record_files import read_object, write_object
from ragforge.records import Provenance
from ragforge.records.model import Field
from ragforge.records.record import Record
from ragforge.stages.judge.pairs import Pair

_PLANNING = "`ragforge shard plan`"
ANSWERING_FIELDS = (
    *("base_url", "api_key_env", "transport", "proxy", "timeout_s", "max_attempts", "max_wait_s"),
    *("concurrency", "requests_per_minute", "tokens_per_minute"),
)
"""Settings of a model that change where and how fast it is asked, and no reply."""


class Shard(Record):
    """A part of the work: all pairs of some queries, or requests.

    Args:
        index: Its place in the order of the whole.
        size: Pairs, requests or chunks in it.
        sha256: Of the file of them.
    """

    index: int
    size: int
    sha256: str


class ShardPlan(Record):
    """What `plan.json` holds; it is written last, so that its shards are all there."""

    format: Annotated[int, Field(ge=1, le=1)] = 1
    kind: Literal["pairs", "requests", "chunks"] = "pairs"
    source_sha256: str
    """Of the pairs, requests or chunks, sorted: of all shards' files one behind the other."""
    shard_size: int
    workers: int
    """That share the rate and the calls in flight."""
    settings: Settings
    models: tuple[ModelSettings, ...] = ()
    """Who is asked the requests; a request names its model by the place in here."""
    judge: str = ""
    judges: tuple[Provenance, ...] = ()
    """All that goes for the judge; a worker with another prompt or model is refused."""
    batched: bool = False
    """Whether passages are judged in batches; decided once, for all shards."""
    has_labels: bool = False
    """Whether people graded pairs."""
    survey_format: int = 0
    """Which survey chunks give; 0 where there are none."""
    shards: tuple[Shard, ...]

    @property
    def stage(self) -> str:
        """What workers do, as events and messages name it."""
        return "survey" if self.kind == "chunks" else "judge"

    @property
    def size(self) -> int:
        """Pairs, requests or chunks in all shards."""
        return sum(shard.size for shard in self.shards)

    def way_on(self, folder: Path) -> str:
        """Return how the work goes on when a limit is used up."""
        again = "the command that planned them" if self.kind == "requests" else _PLANNING
        return f"give {again} again with a higher limit; then `ragforge shard run {folder}` goes on"

    @property
    def asked(self) -> str:
        """Names of the judge, or of the models that are asked."""
        return self.judge or "+".join(model.name for model in self.models)


class ShardDone(Record):
    """What `done.json` of a shard holds; it is written last, so that its judgments are there."""

    sha256: str
    """Of the file of pairs, requests or chunks."""
    judged_sha256: str = ""
    """ "" where requests were asked, whose replies are in the call store, and of chunks."""
    failures_sha256: str = ""
    """ "" where no pair failed."""
    survey_sha256: str = ""
    """Of what was read of chunks; "" where there are none."""
    judges: tuple[Provenance, ...] = ()
    batched: bool = False
    n_done: int
    """Pairs that were judged, requests that were answered, or chunks that were read."""
    n_failed: int
    n_copied: int = 0
    n_texts: int = 0
    grades: dict[int, int] = Field(default_factory=dict)
    flags: dict[str, int] = Field(default_factory=dict)
    unwrapped: dict[str, int] = Field(default_factory=dict)
    spent: Spent | None = None
    """By the shard's call store; None where no model is asked."""


class ShardFolder:
    """The files of a plan and its shards.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def plan_path(self) -> Path:
        """The plan."""
        return self.path / "plan.json"

    @property
    def budget_path(self) -> Path:
        """What all workers took of the budget."""
        return self.path / "budget.json"

    @property
    def followers_path(self) -> Path:
        """The keys of calls that follow from replies that were taken over."""
        return self.path / "follow-ups.txt"

    @property
    def shards_path(self) -> Path:
        """The folder of the shards."""
        return self.path / "shards"

    def shard(self, index: int) -> Path:
        """Return the folder of a shard."""
        return self.shards_path / f"{index:05d}"

    def pairs_path(self, index: int) -> Path:
        """Return the pairs of a shard."""
        return self.shard(index) / "pairs.jsonl"

    def requests_path(self, index: int) -> Path:
        """Return the requests of a shard."""
        return self.shard(index) / "requests.jsonl"

    def chunks_path(self, index: int) -> Path:
        """Return the chunks of a shard."""
        return self.shard(index) / "chunks.jsonl"

    def survey_path(self, index: int) -> Path:
        """Return the folder of what was read of a shard's chunks."""
        return self.shard(index) / "survey"

    def work_path(self, plan: ShardPlan, index: int) -> Path:
        """Return the file of what is to be done in a shard."""
        paths = {
            "pairs": self.pairs_path,
            "requests": self.requests_path,
            "chunks": self.chunks_path,
        }
        return paths[plan.kind](index)

    def judged_path(self, index: int) -> Path:
        """Return the judgments of a shard."""
        return self.shard(index) / "judged.jsonl"

    def done_path(self, index: int) -> Path:
        """Return the file that says what a shard came to."""
        return self.shard(index) / "done.json"

    def written(self, index: int) -> tuple[int, int] | None:
        """Return what tells one writing of that file from another; None where it is missing."""
        try:
            status = self.done_path(index).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def pairs(self, index: int) -> Iterator[Pair]:
        """Yield the pairs of a shard, sorted by query and chunk."""
        for row in read_pair_rows(self.pairs_path(index)):
            yield Pair(row.query_id, row.query, row.chunk_id, row.text)

    def read_plan(self) -> ShardPlan:
        """Return the plan.

        Raises:
            UsageError: There is none.
            DataError: It does not hold to its format.
        """
        if not self.plan_path.is_file():
            raise UsageError(f"{self.path}: holds no plan.json; `ragforge shard plan` makes one")
        return read_object(self.plan_path, ShardPlan)

    def write_plan(self, plan: ShardPlan) -> None:
        """Write the plan."""
        write_object(self.plan_path, plan)

    def done(self, plan: ShardPlan, index: int) -> ShardDone | None:
        """Return what a shard came to; None where it is not done as the plan has it."""
        path = self.done_path(index)
        if not path.is_file():
            return None
        done = read_object(path, ShardDone)
        as_planned = (plan.shards[index].sha256, plan.judges, plan.batched)
        return done if (done.sha256, done.judges, done.batched) == as_planned else None

    def begin(self, index: int) -> None:
        """Take a shard for not done any more, so that a kill leaves no half of two runs."""
        self.done_path(index).unlink(missing_ok=True)

    def write_done(self, index: int, done: ShardDone) -> None:
        """Write what a shard came to."""
        write_object(self.done_path(index), done)

    def settings(self, plan: ShardPlan) -> Settings:
        """Return the settings of a plan, with the files that it took along."""
        changes: dict[str, object] = {}
        if plan.settings.prompts.prompts_dir:
            folder = str(self.path / "prompts")
            changes["prompts"] = plan.settings.prompts.model_copy(update={"prompts_dir": folder})
        if plan.settings.judge.examples:
            file = str(self.path / plan.settings.judge.examples)
            changes["judge"] = plan.settings.judge.model_copy(update={"examples": file})
        return plan.settings.model_copy(update=changes)


def naming_address(settings: Settings) -> Settings:
    """Return settings that name the address they have of the environment: workers have another.

    Raises:
        ConfigError: As for `ModelSettings.address`.
    """
    return settings.model_copy(update={"model": with_address_named(settings.model)})


def with_address_named(model: ModelSettings) -> ModelSettings:
    """Return the settings of a model that name its address.

    Raises:
        ConfigError: As for `ModelSettings.address`.
    """
    if is_offline(model.name):
        return model
    return model.model_copy(update={"base_url": model.address})


def planned_settings(settings: Settings) -> Settings:
    """Return what a plan keeps of settings: how pairs are judged, and where its files will be."""
    judge, prompts = settings.judge, settings.prompts
    if judge.examples:
        judge = judge.model_copy(update={"examples": f"examples{Path(judge.examples).suffix}"})
    if prompts.prompts_dir:
        prompts = prompts.model_copy(update={"prompts_dir": "prompts"})
    return Settings(model=settings.model, budget=settings.budget, judge=judge, prompts=prompts)


def take_along(settings: Settings, folder: ShardFolder) -> None:
    """Copy the user's prompts and examples into the folder of shards.

    Raises:
        DataError: They cannot be read or written.
    """
    try:
        if settings.prompts.prompts_dir:
            (folder.path / "prompts").mkdir(parents=True, exist_ok=True)
            for file in sorted(Path(settings.prompts.prompts_dir).glob("*.toml")):
                shutil.copyfile(file, folder.path / "prompts" / file.name)
        if settings.judge.examples:
            source = Path(settings.judge.examples)
            folder.path.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder.path / f"examples{source.suffix}")
    except OSError as error:
        raise DataError(f"{folder.path}: cannot be written: {error.strerror or error}") from error


def cut(
    lines: Iterable[str],
    size: int,
    path_of: Callable[[int], Path],
    group: Callable[[str], str],
) -> Iterator[Shard]:
    """Write lines in shards that cut no group, and yield the shards.

    Args:
        lines: Each with its line end; those of a group are neighbours.
        size: A shard is closed with the group that reaches it.
        path_of: Where the lines of a shard go, by its index.
        group: Tells the group of a line.
    """
    held: list[str] = []
    index = 0
    for _, together in groupby(lines, key=group):
        held.extend(together)
        if len(held) >= size:
            yield _written(path_of(index), index, held)
            index, held = index + 1, []
    if held:
        yield _written(path_of(index), index, held)


def _written(path: Path, index: int, lines: list[str]) -> Shard:
    write_whole(path, lines)
    size = sum(not line.isspace() for line in lines)
    return Shard(index=index, size=size, sha256=file_sha256(path))


def file_sha256(path: Path) -> str:
    """Return the digest of a file, read block by block.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def require_same_work(old: ShardPlan, new: ShardPlan, folder: Path) -> None:
    """Check that a folder may be planned again: for the same pairs, judged in the same way.

    What may be spent, how fast, and where a named endpoint is asked may change.

    Raises:
        UsageError: It holds the plan of other work.
    """
    differing = {
        f"the {new.kind}": (old.kind, old.source_sha256) != (new.kind, new.source_sha256),
        f"how many {new.kind} a shard has": old.shard_size != new.shard_size,
        "the model or how it is asked": not _has_models_of(new, old),
        "how chunks are looked through": old.survey_format != new.survey_format,
        "how it judges": (old.settings.judge, old.judges) != (new.settings.judge, new.judges),
    }
    for what in (name for name, differs in differing.items() if differs):
        raise UsageError(f"{folder}: holds a plan in which {what} differ; name another folder")


def _has_models_of(new: ShardPlan, old: ShardPlan) -> bool:
    """Whether who was asked is asked still, in the same way."""
    now = [identity(model) for model in new.models]
    return identity(old.settings.model) == identity(new.settings.model) and all(
        identity(model) in now for model in old.models
    )


def identity(model: ModelSettings) -> ModelSettings:
    """Return the settings that replies depend on."""
    fields = ModelSettings.model_fields
    kept = {name: fields[name].default for name in ANSWERING_FIELDS}
    if not model.endpoint_id:
        kept["base_url"] = model.base_url
    return model.model_copy(update=kept)
