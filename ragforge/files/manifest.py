"""`manifest.json`: what a dataset is, what it was made from, and the digests of its files."""

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from ragforge import __version__
from ragforge.deferred import hashlib
from ragforge.records.model import AfterValidator, ConfigDict, Field, Model
from ragforge.records.queries import Selection


def _name_in_folder(name: str) -> str:
    path = PurePosixPath(name)
    elsewhere = not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name
    if elsewhere or name == "manifest.json":
        raise ValueError("expected the name of another file in the folder")
    return name


class RunOrigin(Model):
    """What a run was made on, and with what."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    chunks_sha256: str
    """Of the file of chunks that there was then."""
    retriever: str = ""
    """As it was named, an address without its query; "" where it is not known."""
    mapped_from: Annotated[str, Field(exclude_if=lambda digest: not digest)] = ""
    """Of the file of chunks that it was made on, where a refresh put it on those of now; "" where
    it was made on these."""
    usd_per_query: Annotated[
        float | None, Field(ge=0, allow_inf_nan=False, exclude_if=lambda usd: usd is None)
    ] = None
    """What a query cost in the mean, in US dollars; None where it is not known."""


class FileEntry(Model):
    """One file of the dataset."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    sha256: str
    records: int
    run: Annotated[RunOrigin | None, Field(exclude_if=lambda origin: origin is None)] = None
    """Of a run that ragforge made; None of any other file."""
    selection: Annotated[Selection | None, Field(exclude_if=lambda chosen: chosen is None)] = None
    """Of a run or of answers that were made for a part of the queries; None where for all."""


class Spent(Model):
    """What the calls behind the dataset took, all runs together."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    """None where the price of a model that was used is not known."""

    @property
    def usd(self) -> float | None:
        """What it cost: 0 where nothing was called, None where nobody knows."""
        return self.cost_usd if self.calls else 0.0


class ReviewAudit(Model):
    """How many of the queries that were drawn at random people found right as they were."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    n: Annotated[int, Field(ge=1)]
    """Drawn at random and decided about."""
    n_right: Annotated[int, Field(ge=0)]
    """Approved; an edited one was not right."""
    precision: float
    low: float
    high: float
    """Ends of the 95 % Wilson interval of the precision."""
    reviewers: tuple[str, ...]
    """Who decided, sorted."""

    def in_words(self) -> str:
        """Return the finding as part of a sentence."""
        return (
            f"drawn at random: {self.n_right} of {self.n} right as they were, "
            f"{self.precision:.2f} [{self.low:.2f}, {self.high:.2f}], "
            f"decided by {', '.join(self.reviewers)}"
        )


class GenerationStep(Model):
    """A number of queries that was asked for, when people had rejected some of those before."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    n: Annotated[int, Field(gt=0)]
    """Never smaller than in the step before."""
    taken_out: tuple[str, ...] = ()
    """Ids of generated queries that were rejected since the step before, sorted."""


class Aim(Model):
    """How many accepted queries refreshes keep a set at."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    wanted: Annotated[int, Field(ge=0)]
    """The largest number so far, and one for some of the documents that came; what a version falls
    short of it, later ones catch up."""
    accepted: Annotated[int, Field(ge=0)]
    """How many there were when it was set; those that come by other ways raise what is wanted."""


class Manifest(Model):
    """The contents of `manifest.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Annotated[int, Field(ge=1, le=1)] = 1
    name: str
    version: int = 1
    parent: str | None = None
    """The sha256 of the manifest of the version before; None for the first."""
    cutting: str = ""
    """What tells how the documents were cut into chunks; "" where it is not known."""
    made_from: dict[str, str] = {}  # noqa: RUF012  # copied for each
    """What decides which queries come out: corpus digest, model, prompt digests, seed, language."""
    files: dict[Annotated[str, AfterValidator(_name_in_folder)], FileEntry] = {}  # noqa: RUF012  # copied for each
    steps: tuple[GenerationStep, ...] = ()
    """What generation was asked for, one after the other; made again in the same order, a set
    that grew comes out as it is."""
    aim: Aim | None = None
    """None before the first refresh."""
    models: tuple[str, ...] = ()
    prompts: dict[str, str] = {}  # noqa: RUF012  # copied for each
    """Prompt name to the sha256 of its file."""
    spent: Spent = Spent.model_construct()
    audit: ReviewAudit | None = None
    """None where nobody decided about queries drawn at random."""
    labels: Annotated[
        Literal["complete", "pooled", "partial"] | None,
        Field(exclude_if=lambda labels: labels is None),
    ] = None
    """Whether what is not labelled is not relevant (complete), was not in a pool, or is not known
    (partial), as the author says; None where that follows from who labelled."""
    level: Annotated[
        Literal["document", "both"] | None, Field(exclude_if=lambda level: level is None)
    ] = None
    """Whether labels name whole documents, or some do and others chunks; None where all name
    chunks."""
    rel_threshold: Annotated[
        int | None, Field(ge=1, exclude_if=lambda threshold: threshold is None)
    ] = None
    """Lowest grade that is relevant, where the author's lists of relevant ids say so; None where it
    is 2, or 1 without higher grades."""
    is_binary: Annotated[bool, Field(exclude_if=lambda is_binary: not is_binary)] = False
    """Whether the author's labels tell relevant (2 in the judgments) from not, and no more: where
    nobody else graded, each relevant one gains 1, as in the author's file."""
    licence: str = ""
    tool_version: str = ""

    def origins_of(self, sha256: str) -> list[RunOrigin]:
        """Return the recorded origins of runs with these bytes, whatever their names."""
        return [entry.run for entry in self.files.values() if entry.run and entry.sha256 == sha256]

    def selection_of(self, sha256: str) -> Selection | None:
        """Return which queries the run or the answers with these bytes were made for."""
        entries = (entry for entry in self.files.values() if entry.sha256 == sha256)
        return next((entry.selection for entry in entries if entry.selection), None)

    def noting(
        self, models: Iterable[str], prompts: Mapping[str, str], spent: Spent | None
    ) -> "Manifest":
        """Return it with more models and prompts, and with what was spent in all, if given."""
        return self.model_copy(
            update={
                "models": tuple(sorted({*self.models, *models})),
                "prompts": dict(sorted({**self.prompts, **prompts}.items())),
                "spent": spent or self.spent,
                "tool_version": __version__,
            }
        )


def digest_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
