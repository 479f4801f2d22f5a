"""The models behind a job: who does the work of a stage, and who makes embeddings.

Where no model is configured, the offline baseline does the work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from ragforge.config import ModelSettings
from ragforge.config.sections import OFFLINE, OFFLINE_MINILM, is_offline
from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.observe import Event, silent
from ragforge.pipeline.job import CallPlace, Job, OutputFile
from ragforge.records import Chunk, Stage
from ragforge.stages.runner import Workers

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.llm.connect import Connection
    from ragforge.llm.embedder import EndpointEmbedder
    from ragforge.llm.store.models import CountingModel
    from ragforge.prompts import Prompt
    from ragforge.stages.asking import Asker

OFFLINE_NOTE = (
    "no model is asked: the offline baseline (rules and shared words) does the work; "
    "--model NAME --base-url URL asks a language model"
)

_MINILM_NOTE = (
    "no language model is asked: the offline baseline does the work; it judges relevance by "
    "cosines of all-MiniLM-L6-v2 (--offline-model none: by shared words), and the rest by rules "
    "and shared words; --model NAME --base-url URL asks a language model"
)

NO_CALLS: dict[str, object] = {"calls": 0, "cached": 0}
"""What the offline baseline is estimated to take."""


@dataclass(frozen=True, slots=True)
class Backend:
    """Who does the work of a stage.

    Args:
        asker: A model with its prompt; None for the offline baseline.
        connection: To that model, with its stored replies; None for the offline baseline.
        prompts_dir: The user's folder of prompts.
        prompts: The prompts in use; grows with `with_prompt`. A file that is edited during a run
            is not read again.
        baseline: The name of the offline baseline, where there is no model.
    """

    asker: Asker | None = None
    connection: Connection | None = None
    prompts_dir: str = ""
    prompts: dict[str, Prompt] = field(default_factory=dict)
    baseline: str = OFFLINE

    def with_prompt(self, name: str) -> Asker | None:
        """Return the same model with another prompt; None for the offline baseline.

        The prompt counts as used from now on.

        Raises:
            ConfigError: The prompt cannot be taken.
        """
        if self.asker is None:
            return None
        if name not in self.prompts:
            from ragforge.prompts import load_prompt

            self.prompts[name] = load_prompt(name, self.prompts_dir)
        return replace(self.asker, prompt=self.prompts[name])

    def workers(self, concurrency: int) -> int:
        """Return the number of units in work, where so many calls are wanted in flight.

        Twice the calls that can be: a unit that waits to be tried again holds no call.
        """
        at_once = self.connection.concurrency if self.connection else 1
        return 2 * at_once if self.asker else concurrency

    def stage_workers(self, job: Job) -> Workers:
        """Return the workers of a stage; a dry run of a model tells no observer."""
        n = self.workers(job.settings.model.concurrency)
        return Workers(n, silent if self.tally else job.observer, self.stop)

    def stop(self) -> None:
        """Make all further calls fail at once; those in flight go on."""
        if self.connection is not None:
            self.connection.stop()

    @property
    def tally(self) -> CountingModel | None:
        """What a dry run counted; None in earnest."""
        return self.connection.tally if self.connection else None

    @property
    def name(self) -> str:
        """The model's name for provenance."""
        return self.asker.name if self.asker else self.baseline

    @property
    def prompt_digests(self) -> dict[str, str]:
        """The digests of the prompts in use, by name."""
        return {name: prompt.sha256 for name, prompt in self.prompts.items()}

    def estimate(self) -> dict[str, object]:
        """Return the calls, tokens and money that a dry run counted."""
        return self.tally.estimate() if self.tally else NO_CALLS

    def note_in(self, dataset: Dataset) -> None:
        """Write the model, the prompts and what was spent into a dataset's manifest."""
        spent = self.connection.store.spent() if self.connection else None
        dataset.note(models=[self.name], prompts=self.prompt_digests, spent=spent)


@asynccontextmanager
async def open_backend(
    job: Job, prompt: str, place: CallPlace, *stages: Stage
) -> AsyncIterator[Backend]:
    """Open the model that the settings of a job name together with a prompt.

    Args:
        job: Model, budget and prompts; whether to ask, and what to ask again.
        prompt: Its name.
        place: Has the call store, and the failures of earlier runs.
        stages: Whose failures are asked again: what another one bought stays.

    Raises:
        ConfigError: The model or the prompt cannot be taken.
        DataError: The call store or a local model file cannot be opened.
    """
    settings, mode = job.settings, job.mode
    if is_offline(settings.model.name):
        job.observer(Event("note", message=_offline_note(settings.model)))
        yield Backend(baseline=settings.model.name)
        return

    from ragforge.llm.connect import connect
    from ragforge.prompts import load_prompt
    from ragforge.records.extra_body import told_extra_body
    from ragforge.stages.asking import Asker, failed_replies

    loaded = load_prompt(prompt, settings.prompts.prompts_dir)
    async with connect(
        settings,
        place.store_path,
        job.observer,
        job.account,
        dry_run=mode.dry_run,
        replay=mode.offline_replay,
        collector=job.collector,
        endpoints=job.endpoints,
    ) as connection:
        told = told_extra_body(settings.model.extra_body)
        asker = Asker(connection.model, connection.name, settings.model, loaded, protocol=told)
        if mode.retry_failed and stages:
            forget = (connection.tally or connection.store).forget
            failures = (failure for failure in place.failures() if failure.what in stages)
            # Read in any case: a file that is torn is told before anything is asked.
            keys = list(failed_replies(connection.store, failures))
            if isinstance(place, OutputFile) and settings.judge.batch == 1:
                # As each is asked: what is not reached, or was bought in its place, stays.
                asker = replace(asker, forget=_once(forget))
            else:
                forget(keys)
        prompts_dir = settings.prompts.prompts_dir
        yield Backend(asker, connection, prompts_dir, {loaded.name: loaded})


def _once(forget: Callable[[Iterable[str]], None]) -> Callable[[Iterable[str]], None]:
    """Return what forgets each reply once: several units may have asked the same."""
    forgotten: set[str] = set()

    def forgetting(keys: Iterable[str]) -> None:
        new = set(keys) - forgotten
        forgotten.update(new)
        forget(new)

    return forgetting


def offline_model(model: ModelSettings) -> Literal["", "minilm"]:
    """Return the local model that the offline baseline works with; "" for none.

    Raises:
        ConfigError: One is asked for that is not installed.
    """
    from ragforge.retrieval.local_models import is_installed, require_installed

    if model.name == OFFLINE_MINILM or model.offline_model == "minilm":
        require_installed("minilm")
        return "minilm"
    return "minilm" if model.offline_model == "auto" and is_installed("minilm") else ""


def _offline_note(model: ModelSettings) -> str:
    return _MINILM_NOTE if offline_model(model) else OFFLINE_NOTE


def embedder_of(job: Job, place: CallPlace) -> AbstractAsyncContextManager[EndpointEmbedder | None]:
    """Open the embedding model of a job; None where its settings name none.

    Args:
        job: It draws on the same budget as the other models of the job.
        place: Has the call store.
    """
    from ragforge.llm.embedder import open_embedder

    return open_embedder(
        job.settings,
        place.store_path,
        job.observer,
        job.account,
        dry_run=job.mode.dry_run,
        replay=job.mode.offline_replay,
    )


async def count_embeddings(
    embedder: EndpointEmbedder, chunks: Iterable[Chunk], texts: Iterable[str]
) -> dict[str, object]:
    """Return the calls, tokens and money for a corpus and what is looked for in it.

    Args:
        embedder: In a dry run.
        chunks: The corpus.
        texts: Looked for, each in a call of its own.
    """
    from ragforge.retrieval.dense import BATCH
    from ragforge.retrieval.tokens import in_tie_order, searched_text

    indexed = [searched_text(chunk) for chunk in in_tie_order(chunks)]
    calls = [indexed[start : start + BATCH] for start in range(0, len(indexed), BATCH)]
    for call in [*calls, *([text] for text in texts if text.strip())]:
        with suppress(CallError):
            await embedder.embed(call)
    return embedder.estimate()


def with_embeddings(
    estimate: Mapping[str, object], embeddings: Mapping[str, object]
) -> dict[str, object]:
    """Return an estimate with embeddings added to its sums, and told on their own as well."""
    total = {**estimate, "embeddings": dict(embeddings)}
    for name, added in (("calls", "calls"), ("calls_high", "calls"), ("cached", "cached")):
        if name in estimate:
            total[name] = _sum(estimate[name], embeddings[added])
    for name, added in (("tokens", "prompt_tokens"), ("cost_usd", "cost_usd")):
        amounts = estimate.get(name)
        if isinstance(amounts, Mapping):
            total[name] = {key: _sum(value, embeddings[added]) for key, value in amounts.items()}
    return total


def _sum(one: object, other: object) -> float | None:
    """Return a sum, None where either is not known."""
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return None
    return one + other if isinstance(one, int) else round(one + other, 6)
