"""How a job is done: what every step of it is handed, and where its replies and results go."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.errors import EndpointError
from ragforge.files.record_files import ExternalSorter, read_lines, read_records
from ragforge.observe import Event, Observer
from ragforge.records import Failure
from ragforge.records.model import Model

if TYPE_CHECKING:
    from ragforge.llm.budget import BudgetAccount
    from ragforge.llm.endpoints import OpenEndpoints
    from ragforge.llm.store.models import Collector

R = TypeVar("R", bound=Model)


@dataclass(frozen=True, slots=True)
class Mode:
    """How a stage is run.

    Args:
        dry_run: Count calls only; nothing is asked or written.
        retry_failed: Ask again where a stored reply was no use.
        again: Judge again what another judge graded; what people graded stays.
        mix: Let what another model or prompt graded stand beside what is graded now.
        offline_replay: Take replies from the call store only; a missing one ends the run.
        single_call: Grade an answer as a whole, without drawing facts first.
        graded_by: Who gave the grades that answers bring; "" for the name of their file.
        with_judge: Grade answers that bring a grade, too, be it by the offline baseline.
    """

    dry_run: bool = False
    retry_failed: bool = False
    again: bool = False
    mix: bool = False
    offline_replay: bool = False
    single_call: bool = False
    with_judge: bool = False
    graded_by: str = ""


EARNEST = Mode()


def _new_account() -> "BudgetAccount":
    from ragforge.llm.budget import BudgetAccount

    return BudgetAccount()


@dataclass(frozen=True, slots=True)
class Job:
    """What a job goes by, from its first step to its last; of one event loop.

    Args:
        settings: Models, budget, prompts, seed, and what the job takes.
        observer: Told of progress.
        mode: In earnest, or counting only; and what is done again.
        account: What was spent of the budget, by all models that the job asks.
        collector: Takes what a dry run would ask.
        endpoints: Keep what is asked open from one step to the next; None to open it in each.
    """

    settings: Settings
    observer: Observer
    mode: Mode = EARNEST
    account: "BudgetAccount" = field(default_factory=_new_account)
    collector: "Collector | None" = None
    endpoints: "OpenEndpoints | None" = None

    def with_settings(self, settings: Settings) -> "Job":
        """Return the same job under other settings; it draws on the same budget."""
        return replace(self, settings=settings)


class CallPlace(Protocol):
    """Where the replies of a job are stored, and the failures of its earlier runs; a dataset is."""

    @property
    def store_path(self) -> Path:
        """The call store."""
        ...

    def failures(self) -> Iterable[Failure]:
        """Return the failures of earlier runs, of any stage."""
        ...


@dataclass(frozen=True, slots=True)
class OutputFile:
    """The place of a job that writes a file: its failures stand beside it.

    Args:
        path: The file.
        store_path: The call store; see `beside` for one in the folder of the file.
    """

    path: Path
    store_path: Path

    @classmethod
    def beside(cls, path: Path, store_path: Path | None = None) -> "OutputFile":
        """Return the place of a file.

        Args:
            path: The file.
            store_path: Where replies are kept; `.ragforge/` in the folder of the file where None.
        """
        return cls(path, store_path or path.parent / ".ragforge" / "calls.sqlite")

    def failures(self) -> Iterable[Failure]:
        """Return the failures of earlier runs into this file."""
        beside = failures_beside(self.path)
        return read_records(beside, Failure) if beside.exists() else ()


def failures_beside(out: Path) -> Path:
    """Return the path of the failures of a file of judgments."""
    return out.with_name(f"{out.name}.failures.jsonl")


def all_failed(who: str, failed_at: str, first: Failure) -> EndpointError:
    """Return the error of a job in which everything failed.

    Args:
        who: Name of the model.
        failed_at: What failed on how many, such as "judging failed on all 3 pairs".
        first: The first failure.
    """
    return EndpointError(
        f"{who}: {failed_at}; the first: {first.kind}: {first.message}; --retry-failed asks again "
        "for replies that were no use"
    )


class ResultSpool(AbstractContextManager["ResultSpool[R]"], Generic[R]):
    """A sink for results and failures of any number: sorted on disk until they are written.

    Args:
        kind: What the results are.
        key: The sort key of a result; unique.
        folder: Where the sorted parts are put.
    """

    def __init__(self, kind: type[R], key: Callable[[R], tuple[str, ...]], folder: Path) -> None:
        self._kind, self._key, self._folder = kind, key, folder
        self._open()

    def _open(self) -> None:
        self._results: ExternalSorter[R] = ExternalSorter(self._key, self._folder)
        self._failures: ExternalSorter[Failure] = ExternalSorter(
            lambda item: (item.key,), self._folder
        )
        self.first_failure: Failure | None = None

    def __exit__(self, *_: object) -> None:
        self._results.__exit__()
        self._failures.__exit__()

    def begin_anew(self) -> None:
        """Drop what was taken."""
        self.__exit__()
        self._open()

    @property
    def has_any(self) -> bool:
        """Whether there is any result, or a blank that stands for a failure."""
        return self._results.count > 0

    def result(self, result: R) -> None:
        """Take a result."""
        self._results.add(result)

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self.first_failure = self.first_failure or failure
        self._failures.add(failure)

    def results(self) -> Iterator[R]:
        """Yield the results, sorted."""
        return (self._kind.model_validate_json(line) for line in self._results.lines())

    def failures(self) -> Iterator[Failure]:
        """Yield the failures, sorted."""
        return (Failure.model_validate_json(line) for line in self._failures.lines())

    def write(self, out: Path) -> None:
        """Write a file of results, and one of failures beside it where there are or were any.

        Nothing is written where nothing was done.

        Raises:
            DataError: One cannot be written.
        """
        if not self.has_any:
            return
        self._results.write(out)
        beside = failures_beside(out)
        if self._failures.count or beside.exists():
            self._failures.write(beside)

    @contextmanager
    def written_to(
        self, out: Path, job: "Job", *, unless: tuple[type[Exception], ...] = ()
    ) -> Iterator[None]:
        """Write a file of results when the block ends, but for those of a dry run.

        Where the run is stopped in it, a file that has more results already stays as it is: replies
        are in the call store, and a rerun takes them from there.

        Args:
            out: The file.
            job: In a dry run nothing is written.
            unless: Errors behind which nothing is written.

        Raises:
            DataError: One cannot be written.
        """
        try:
            yield
        except BaseException as error:
            is_kept = job.mode.dry_run or isinstance(error, unless)
            if not is_kept and not self._stays(out, job.observer):
                self.write(out)
            raise
        if not job.mode.dry_run:
            self.write(out)

    def _stays(self, out: Path, observer: Observer) -> bool:
        if not self.has_any or not out.exists():
            return False
        n_before = sum(1 for _ in read_lines(out))
        if n_before <= self._results.count:
            return False
        observer(
            Event(
                "note",
                message=f"{out}: stays as it was, with {n_before:,} results; of this run "
                f"{self._results.count:,} are done, which a rerun takes from the call store",
            )
        )
        return True
