"""How a job is done: what every step of it is handed."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ragforge.config import Settings
from ragforge.files.record_files import read_records
from ragforge.llm.budget import BudgetAccount
from ragforge.observe import Observer
from ragforge.records import Failure


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


@dataclass(frozen=True, slots=True)
class Job:
    """What a job goes by, from its first step to its last; of one event loop.

    Args:
        settings: Models, budget, prompts, seed, and what the job takes.
        observer: Told of progress.
        mode: In earnest, or counting only; and what is done again.
        account: What was spent of the budget, by all models that the job asks.
    """

    settings: Settings
    observer: Observer
    mode: Mode = EARNEST
    account: BudgetAccount = field(default_factory=BudgetAccount)

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
    def beside(cls, path: Path) -> "OutputFile":
        """Return the place of a file whose replies go to `.ragforge/` in its folder."""
        return cls(path, path.parent / ".ragforge" / "calls.sqlite")

    def failures(self) -> Iterable[Failure]:
        """Return the failures of earlier runs into this file."""
        beside = failures_beside(self.path)
        return read_records(beside, Failure) if beside.exists() else ()


def failures_beside(out: Path) -> Path:
    """Return where the failures of a file of judgments are written."""
    return out.with_name(f"{out.name}.failures.jsonl")
