"""The model behind a stage, or the offline baseline where none is configured."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragforge.config import Settings
from ragforge.files.set.dataset import Dataset
from ragforge.llm.budget import BudgetAccount
from ragforge.llm.connect import OFFLINE, connect
from ragforge.llm.dry_run import CountingModel
from ragforge.llm.store import CallStore
from ragforge.observe import Event, Observer
from ragforge.prompts import Prompt, load_prompt
from ragforge.records import Failure, Stage
from ragforge.stages.asking import Asker

OFFLINE_NOTE = (
    "no model is asked: the offline baseline (rules and shared words) does the work; "
    "--model NAME --base-url URL asks a language model"
)

NO_CALLS: dict[str, object] = {"calls": 0, "cached": 0}
"""What the offline baseline is estimated to take."""


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


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Backend:
    """Who does the work of a stage.

    Args:
        asker: A model with its prompt; None for the offline baseline.
        store: The replies; None for the offline baseline.
        tally: What a dry run counted; None in earnest.
        stop: Makes all further calls fail at once; those in flight go on.
        concurrency: Calls that can be in flight.
        prompts_dir: The user's folder of prompts.
        prompts: The prompts in use; grows with `with_prompt`. A file that is edited during a run
            is not read again.
    """

    asker: Asker | None = None
    store: CallStore | None = None
    tally: CountingModel | None = None
    stop: Callable[[], None] = _nothing
    concurrency: int = 1
    prompts_dir: str = ""
    prompts: dict[str, Prompt] = field(default_factory=dict)

    def with_prompt(self, name: str) -> Asker | None:
        """Return the same model with another prompt; None for the offline baseline.

        The prompt counts as used from now on.

        Raises:
            ConfigError: The prompt cannot be taken.
        """
        if self.asker is None:
            return None
        if name not in self.prompts:
            self.prompts[name] = load_prompt(name, self.prompts_dir)
        return replace(self.asker, prompt=self.prompts[name])

    def workers(self, concurrency: int) -> int:
        """Return how many units to have in work, where so many calls are wanted in flight.

        Twice the calls that can be: a unit that waits to be tried again holds no call.
        """
        return 2 * self.concurrency if self.asker else concurrency

    @property
    def name(self) -> str:
        """The model's name for provenance."""
        return self.asker.name if self.asker else OFFLINE

    @property
    def prompt_digests(self) -> dict[str, str]:
        """The digests of the prompts in use, by name."""
        return {name: prompt.sha256 for name, prompt in self.prompts.items()}

    def estimate(self) -> dict[str, object]:
        """Return what a dry run counted."""
        return self.tally.estimate() if self.tally else NO_CALLS

    def note_in(self, dataset: Dataset) -> None:
        """Write the model, the prompts and what was spent into a dataset's manifest."""
        spent = self.store.spent() if self.store else None
        dataset.note(models=[self.name], prompts=self.prompt_digests, spent=spent)


def of_stages(
    failures: Callable[[], Iterable[Failure]], *stages: Stage
) -> Callable[[], Iterable[Failure]]:
    """Return the failures of some stages alone: what another one bought is not asked for again."""
    return lambda: (failure for failure in failures() if failure.what in stages)


@asynccontextmanager
async def open_backend(
    settings: Settings,
    prompt: str,
    store_path: Path,
    observer: Observer,
    *,
    mode: Mode,
    failures: Callable[[], Iterable[Failure]],
    account: BudgetAccount | None = None,
) -> AsyncIterator[Backend]:
    """Open the model that the settings name together with a prompt.

    Args:
        settings: Model, budget and prompts.
        prompt: Its name.
        store_path: The call store.
        observer: Told of calls and retries.
        mode: Whether to ask, and what to ask again.
        failures: Those of earlier runs of the stage; read only when they are asked again.
        account: What is spent of the budget; shared where several models have one.

    Raises:
        ConfigError: The model or the prompt cannot be taken.
        DataError: The call store or a local model file cannot be opened.
    """
    if settings.model.name == OFFLINE:
        observer(Event("note", message=OFFLINE_NOTE))
        yield Backend()
        return
    loaded = load_prompt(prompt, settings.prompts.prompts_dir)
    async with connect(
        settings, store_path, observer, account, dry_run=mode.dry_run, replay=mode.offline_replay
    ) as connection:
        if mode.retry_failed:
            connection.store.forget(key for item in failures() for key in item.call_keys)
        asker = Asker(connection.model, connection.name, settings.model, loaded)
        yield Backend(
            asker,
            connection.store,
            connection.tally,
            connection.stop,
            connection.concurrency,
            settings.prompts.prompts_dir,
            {loaded.name: loaded},
        )
