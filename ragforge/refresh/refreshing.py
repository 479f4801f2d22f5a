"""Refreshing a set: its next version, or none where nothing changed; never a worse one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ragforge.config import RefreshSettings, Settings
from ragforge.config.sections import is_offline
from ragforge.corpus.origins.fetching import fetch_documents
from ragforge.deferred import dataclass, shutil, tempfile
from ragforge.errors import (
    ChangedMeanwhileError,
    ChurnError,
    DataError,
    LockedError,
    RagforgeError,
    UsageError,
)
from ragforge.evaluating.versions import RefreshSummary, Status
from ragforge.files.atomic import MIRRORS
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.integrity import require_whole
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import (
    next_version,
    prune,
    publish,
    refresh_lock,
    reject,
    stage_version,
)
from ragforge.observe import Event, Observer
from ragforge.pipeline.job import Job, Mode
from ragforge.pipeline.notifying import EventKind, check_hooks, notify
from ragforge.records import Failure, VersionDiff
from ragforge.refresh.corpus.diff import CorpusDiff, diff_chunks, diff_corpus
from ragforge.refresh.spending import BoughtCalls
from ragforge.refresh.version_checks import CHURN, check_churn
from ragforge.stages.asking import failed_replies

if TYPE_CHECKING:
    from ragforge.llm.store.calls import CallStore

_EVENT_OF_STATUS: Final[Mapping[Status, EventKind]] = MappingProxyType(
    {"published": "published", "rejected": "rejected", "pins broken": "pins_broken"}
)
"""Of the endings that anybody wants to hear of; a night without a change is none."""
_WORK = "refresh-"
_MOST_STARTS = 3
_OVERTAKEN = "another command wrote into the set meanwhile; the refresh starts over from that"


@dataclass(frozen=True, slots=True)
class RefreshOptions:
    """What is asked of one refresh.

    Args:
        chunk_file: Ready-made chunks instead of documents.
        accept_churn: Go on however much is gone, and publish however much changed.
        allow_baseline: Let the offline baseline check and write for a set that a model made.
    """

    chunk_file: Path | None = None
    accept_churn: bool = False
    allow_baseline: bool = False


async def refresh_dataset(
    path: Path,
    job: Job,
    options: RefreshOptions = RefreshOptions(),  # noqa: B008  # it is frozen
) -> RefreshSummary:
    """Make and publish the next version of a dataset; hooks are told how it ended.

    Nothing is published that a check stops, that lost a pinned query, or that was not finished.
    Replies that were bought are kept, so that the next run goes on with them.

    Args:
        path: The directory of the dataset.
        job: Documents, models, budget and limits.
        options: What is asked of this run.

    Raises:
        ChurnError: Too much of the corpus is gone.
        DataError: The set or its documents cannot be read, or a file cannot be written.
        UsageError: Another refresh of the set is running, or a setting does not fit, such as a hook
            that can never be told.
        EndpointError, BudgetError: The run was stopped.
    """
    settings, observer = job.settings.refresh, job.observer
    check_hooks(settings)
    bought = BoughtCalls(observer)
    refresh = _Refresh(path, job.settings, bought, job.mode, options)
    try:
        with refresh_lock(path):
            summary = await refresh.until_undisturbed()
    except RagforgeError as error:
        if not job.mode.dry_run:
            notify_of_failure(path, error, settings, observer)
        raise
    summary = replace(summary, spent=bought.spent)
    notify_of_summary(summary, settings, observer)
    return summary


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One refresh of a dataset; each attempt has the whole budget.

    Args:
        path: The directory of the dataset.
        settings: Documents, models, budget and limits.
        bought: Told of progress; counts what was bought in all attempts.
        mode: In earnest, or counting only.
        options: What is asked of this run.
    """

    path: Path
    settings: Settings
    bought: BoughtCalls
    mode: Mode
    options: RefreshOptions

    async def until_undisturbed(self) -> RefreshSummary:
        """Refresh, and start over where another command wrote into the set meanwhile.

        Replies that were bought are in the call store, so that starting over costs time alone.
        """
        for _ in range(_MOST_STARTS - 1):
            try:
                return await self._attempt()
            except ChangedMeanwhileError:
                self.bought(Event("note", message=_OVERTAKEN))
        return await self._attempt()

    async def _attempt(self) -> RefreshSummary:
        parent, number = open_dataset(self.path), next_version(self.path)
        require_whole(parent)
        with _work_folder(parent) as place:
            diff = self._diff(parent, place, number)
            if diff.is_empty and not self._is_asked_for(parent):
                return _unchanged(parent, diff)
            if not self.options.accept_churn:
                check_churn(diff, self.settings.refresh)
            if not self.options.allow_baseline:
                _refuse_baseline(parent, self.settings)
            with stage_version(parent, number) as staged:
                summary = await self._make(parent, staged, diff)
                return replace(summary, unreadable=diff.documents.unreadable)

    def _diff(self, parent: Dataset, place: Path, number: int) -> CorpusDiff:
        """Return what changed in the corpus."""
        if self.options.chunk_file is not None:
            return diff_chunks(parent, self.options.chunk_file, place, self.bought, number)
        sources, chunking = parent.own_place / MIRRORS, self.settings.chunk
        with fetch_documents(
            self.settings.refresh.documents, sources, self.bought, chunking
        ) as documents:
            observer = documents.observer_naming_origins(self.bought)
            return diff_corpus(parent, documents, chunking, place, observer, number)

    def _is_asked_for(self, parent: Dataset) -> bool:
        """Whether there is something to do although the corpus did not change."""
        at_least = self.settings.refresh.at_least
        too_few = at_least is not None and at_least > len(parent.queries())
        return self.mode.retry_failed or too_few

    async def _make(self, parent: Dataset, staged: Dataset, diff: CorpusDiff) -> RefreshSummary:
        """Make a version of what changed, and publish it if it may be."""
        from ragforge.pipeline.generation.models import open_models
        from ragforge.refresh.judging_alike import judging_alike
        from ragforge.refresh.plan import plan_version
        from ragforge.refresh.queries.rechecking import recheckers_of
        from ragforge.refresh.version import Version

        diff = _with_corpus(staged, diff)
        job = await judging_alike(parent, Job(self.settings, self.bought, self.mode))
        async with AsyncExitStack() as stack:
            models = await open_models(stack, job, parent)
            checker = models.checker or models.writer
            may_ask = not job.mode.dry_run and not job.mode.offline_replay
            if checker.connection is not None and may_ask:
                try_again(checker.connection.store, parent.failures())
            who = recheckers_of(checker, job.settings, self.bought)
            version = Version(parent, staged, diff, job, self.bought, models, who, stack)
            if job.mode.dry_run:
                plan = await plan_version(version)
                return _summary("planned", parent, version=version.number, plan=plan)
            made = await version.make()
        if made is None:
            pins = tuple(version.updated.broken_pins)
            return _summary("pins broken", parent, version=version.number, broken_pins=pins)
        if diff.is_empty and not (made.changes or made.judgments.judged):
            return _unchanged(parent, diff)
        if _is_stopped(made, self.options):
            reject(staged, parent.home)
            return _summary("rejected", parent, version=made.version, diff=made)
        publish(staged, parent.home)
        removed = tuple(prune(parent.home, self.settings.refresh.keep))
        return _summary("published", parent, version=made.version, diff=made, removed=removed)


def notify_of_summary(
    summary: RefreshSummary, settings: RefreshSettings, observer: Observer
) -> None:
    """Tell how a refresh ended, where it made a version or was to make one."""
    kind = _EVENT_OF_STATUS.get(summary.status)
    if kind is None:
        return
    found = summary.as_json()
    kept = ("version", "parent", "items", "documents", "calls", "spent", "checks", "shortfall")
    event = {"kind": kind, "dataset": summary.name, "exit_code": summary.exit_code}
    more = {name: found[name] for name in (*kept, "broken_pins", "unreadable") if name in found}
    notify({**event, **more}, settings, observer)


def notify_of_failure(
    path: Path, error: RagforgeError, settings: RefreshSettings, observer: Observer
) -> None:
    """Tell that a refresh could not be made; the published version stays.

    That another refresh is running is not told: that one tells its own end.
    """
    if isinstance(error, LockedError):
        return
    kind: EventKind = "churn" if isinstance(error, ChurnError) else "failed"
    event = {
        "kind": kind,
        "dataset": path.resolve().name,
        "error": str(error),
        "exit_code": error.exit_code,
    }
    notify(event, settings, observer)


def try_again(store: CallStore, failures: Iterable[Failure]) -> None:
    """Put the replies of failed checks aside, so that they are asked for again.

    Args:
        store: Has the replies.
        failures: Of the published version.
    """
    rechecks = (failure for failure in failures if failure.what == "recheck")
    store.forget(list(failed_replies(store, rechecks)))


def _refuse_baseline(parent: Dataset, settings: Settings) -> None:
    """Check that a set which a model made is not checked and filled by rules unasked.

    A schedule that lost the name of its model would make the set worse, night by night.

    Raises:
        UsageError: No model is named.
    """
    models = [name for name in parent.manifest.models if not is_offline(name)]
    if is_offline(settings.model.name) and models:
        raise UsageError(
            f"{parent.path}: has queries or grades by {', '.join(models)}, and no model is "
            "named now; name one (--model, or name under [model]), or let the offline baseline do "
            "it with --allow-baseline"
        )


def _with_corpus(staged: Dataset, diff: CorpusDiff) -> CorpusDiff:
    """Put the corpus as it is now into a version, and say where it is now."""
    if not diff.is_empty:
        staged.take_chunks(diff.chunks_path, diff.chunks)
        staged.take_documents(diff.documents_path, diff.documents_entry)
    return replace(
        diff, chunks_path=staged.chunks_path, documents_path=staged.files / "documents.jsonl"
    )


def _is_stopped(made: VersionDiff, options: RefreshOptions) -> bool:
    return any(
        not check.passed and not (options.accept_churn and check.name == CHURN)
        for check in made.checks
    )


def _summary(status: Status, parent: Dataset, **more: object) -> RefreshSummary:
    manifest = parent.manifest
    summary = RefreshSummary(
        status, str(parent.path), manifest.name, manifest.version, manifest.version
    )
    return replace(summary, **more)  # type: ignore[arg-type]  # fields of it, by name


def _unchanged(parent: Dataset, diff: CorpusDiff) -> RefreshSummary:
    """Return that the published version stays, and what of it is open."""
    n_failed = sum(one.is_failed for one in parent.each_judgment())
    return _summary(
        "unchanged", parent, unreadable=diff.documents.unreadable, n_failed_judgments=n_failed
    )


@contextmanager
def _work_folder(parent: Dataset) -> Iterator[Path]:
    """Give a folder for files on the way to a version; what killed runs left is removed.

    The caller has the `refresh_lock`, so that nobody else has one.
    """
    own = parent.own_place
    try:
        own.mkdir(exist_ok=True)
        for stray in own.glob(f"{_WORK}*/"):
            shutil.rmtree(stray, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=own))
    except OSError as error:
        raise DataError(f"{own}: cannot be written: {error.strerror or error}") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
