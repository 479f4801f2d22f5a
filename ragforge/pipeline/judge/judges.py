"""Who judges relevance: the offline baseline, one model, or a panel, alone or in batches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragforge.config import JudgeSettings, ModelSettings, Settings
from ragforge.config.sections import check_address, is_offline
from ragforge.deferred import dataclass
from ragforge.errors import ConfigError, UsageError
from ragforge.files.set.canaries import read_canaries
from ragforge.files.set.dataset import Dataset
from ragforge.llm.chat import Message
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.backend import Backend, offline_model, open_backend
from ragforge.pipeline.job import CallPlace, Job
from ragforge.records import Failure, Judgment, Provenance, Stage
from ragforge.records.extra_body import told_extra_body
from ragforge.stages.asking import Asker
from ragforge.stages.judge.lexical import LexicalJudge
from ragforge.stages.judge.llm import (
    ALTERNATIVES,
    BARE_SCHEMA,
    SCHEMA,
    LLMJudge,
    PollingJudge,
    example_turns,
    examples_sha256,
)
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.runner import Judge, Workers

if TYPE_CHECKING:
    from ragforge.files.formats.pairs import Example
    from ragforge.stages.judge.batches import Batch, JudgedBatch

POINTWISE = "judge_relevance"
BATCH = "judge_relevance_batch"
BATCH_SCHEMA = "relevance_batch"

_ELSEWHERE = re.compile(r"(.*?)@(https?://.*)", re.DOTALL)
_FAMILIES = (
    ("OpenAI", r"gpt|chatgpt|davinci|\bo[1-9]\b"),
    ("Anthropic", r"claude"),
    ("Google", r"gemini|gemma|palm"),
    ("Meta", r"llama"),
    ("Alibaba", r"qwen|qwq"),
    ("Mistral", r"mistral|mixtral|ministral|magistral|codestral|devstral"),
    ("DeepSeek", r"deepseek"),
    ("Microsoft", r"\bphi\b|phi-?[1-9]|wizardlm"),
    ("Cohere", r"command|\baya\b"),
    ("xAI", r"grok"),
    ("Z.ai", r"\bglm\b|chatglm"),
    ("Moonshot", r"kimi|moonshot"),
    ("MiniMax", r"minimax"),
    ("NVIDIA", r"nemotron"),
    ("IBM", r"granite"),
    ("AI21", r"jamba"),
    ("Amazon", r"nova|titan"),
    ("Hugging Face", r"smollm|zephyr"),
    ("TII", r"falcon"),
    ("01.AI", r"\byi\b"),
)


@dataclass(frozen=True, slots=True)
class Judges:
    """The models that judge.

    Args:
        backends: One a model; one without a model for the offline baseline.
        job: Its settings say how they judge, and at which temperature.
        examples: Shown to them first.
        baseline: Judges where no model does.
        unwrapped: How many replies had something around their object, by what it was; counted as
            they come.
        since: The drift since which they are other judges; ends their protocol. "" for none.
    """

    backends: tuple[Backend, ...]
    job: Job
    examples: tuple[Example, ...] = ()
    baseline: Judge[Pair, Judgment] = field(default_factory=LexicalJudge)
    unwrapped: Counter[str] = field(default_factory=Counter)
    since: str = ""

    @property
    def settings(self) -> Settings:
        """The settings of the job."""
        return self.job.settings

    @property
    def name(self) -> str:
        """The models' names, between plus signs."""
        return _panel_name(self.backends)

    @property
    def batch(self) -> int:
        """Texts shown together; 1 where the baseline judges."""
        return self.settings.judge.batch if self.backends[0].asker else 1

    @property
    def is_dry(self) -> bool:
        """Whether calls are only counted."""
        return self.backends[0].tally is not None

    def batch_judge(self, *, batched: bool) -> Judge[Batch, JudgedBatch]:
        """Return the judge of batches: in batches, or text by text."""
        from ragforge.stages.judge.batches import BatchedJudge, OneByOne

        if not batched:
            return OneByOne(self.judge())
        prompt = self.settings.judge.prompt or BATCH
        return BatchedJudge(
            askers=self._askers(prompt, BATCH_SCHEMA, self._protocol()),
            alone=self.judge(),
            permutations=self.settings.judge.permutations,
            name=self.name,
        )

    def judge(self) -> Judge[Pair, Judgment]:
        """Return the judge of single pairs: of all, or of those that batches leave open."""
        how = self.settings.judge
        in_batches = self.batch > 1
        prompt = POINTWISE if in_batches else how.prompt or POINTWISE
        protocol = f"{self._protocol()}, alone" if in_batches else self._protocol()
        askers = self._askers(prompt, SCHEMA, protocol)
        logprobs = ALTERNATIVES if how.logprobs == "on" else 0
        polled = tuple(
            LLMJudge(asker, vote, logprobs) for asker in askers for vote in range(how.votes)
        )
        if not polled:
            return self.baseline
        return polled[0] if len(polled) == 1 else PollingJudge(polled, self.name)

    def provenance(self) -> Provenance:
        """Return the judge as records will name it."""
        return self.batch_judge(batched=self.batch > 1).provenance

    def forget(self, failures: Iterable[Failure], before_s: float) -> list[Failure]:
        """Put the replies of failures aside, so that they are asked for again.

        Args:
            failures: Of judging.
            before_s: The moment, by `time.time`, from which a reply is not asked for again.

        Returns:
            The failures that rest on a reply of before.
        """
        stores = [one.connection.store for one in self.backends if one.connection is not None]
        stale = []
        for failure in failures:
            if any(store.bought_before(failure.call_keys, before_s) for store in stores):
                stale.append(failure)
                for store in stores:
                    store.forget(failure.call_keys)
        return stale

    def provenances(self) -> tuple[Provenance, ...]:
        """Return all names that go for this judge: of batches, and of what they leave open."""
        from ragforge.stages.judge.batches import BatchedJudge

        judge = self.batch_judge(batched=self.batch > 1)
        if isinstance(judge, BatchedJudge):
            return judge.provenance, judge.alone.provenance
        return (judge.provenance,)

    def stop(self) -> None:
        """Make all further calls fail at once."""
        for backend in self.backends:
            backend.stop()

    def stage_workers(self) -> Workers:
        """Return the workers of judging; a dry run of a model tells no observer."""
        concurrency = self.settings.model.concurrency
        n = max(backend.workers(concurrency) for backend in self.backends)
        return Workers(n, silent if self.is_dry else self.job.observer, self.stop)

    def estimate(self, n_texts: int) -> dict[str, object]:
        """Return the calls, tokens and money that a dry run counted, over all models.

        Args:
            n_texts: Texts to be judged, each of which a batch may leave to be asked for alone.
        """
        total = sum_of_estimates([backend.estimate() for backend in self.backends])
        calls = total.get("calls_high")
        if self.batch > 1 and isinstance(calls, int):
            # Each once more for what it left out, then each text alone; all with a repair turn.
            total["calls_high"] = 2 * calls + 2 * n_texts * len(self.backends)
        return total

    def note_in(self, dataset: Dataset) -> None:
        """Write models, prompts and what was spent into a dataset's manifest."""
        for backend in self.backends:
            backend.note_in(dataset)

    def _askers(self, prompt: str, schema: str, protocol: str) -> tuple[Asker, ...]:
        found = [backend.with_prompt(prompt) for backend in self.backends]
        return tuple(
            replace(asker, examples=_turns(asker, self.examples, schema), protocol=protocol)
            for asker in found
            if asker is not None
        )

    def _protocol(self) -> str:
        how = self.settings.judge
        parts = []
        if self.batch > 1:
            parts.append(f"batch {how.batch} x {how.permutations}")
        if how.votes > 1:
            parts.append(f"votes {how.votes} at {self.settings.model.temperature:g}")
        if how.logprobs == "on":
            parts.append("logprobs")
        if self.examples:
            parts.append(f"examples {examples_sha256(self.examples)[:8]}")
        parts += [told_extra_body(self.settings.model.extra_body), self.since]
        return ", ".join(filter(None, parts))


@asynccontextmanager
async def open_judges(job: Job, place: CallPlace, *stages: Stage) -> AsyncIterator[Judges]:
    """Open the models that judge.

    Args:
        job: Models, budget, prompts, and how to judge.
        place: Has the call store, and the failures of earlier runs.
        stages: Whose failures are asked again.

    Raises:
        UsageError: Ways of judging that exclude each other.
        ConfigError, DataError: As for `open_backend`; an examples file cannot be taken.
    """
    unwrapped: Counter[str] = Counter()
    job = replace(job, observer=_counting(unwrapped, job.observer))
    settings, how = job.settings, job.settings.judge
    _refuse_contradictions(how, settings.model.temperature)
    examples = _examples(how.examples)
    _warn_of_shared_families(how.panel, job.observer)
    _warn_of_other_rubric(settings, job.observer)
    members = how.panel or (settings.model.name,)
    prompt = how.prompt or (BATCH if how.batch > 1 else POINTWISE)
    async with AsyncExitStack() as stack:
        backends = [
            await stack.enter_async_context(
                open_backend(job.with_settings(of_member(settings, member)), prompt, place, *stages)
            )
            for member in members
        ]
        baseline = _baseline(of_member(settings, members[0]), place)
        judges = Judges(_as_before(backends, place), job, examples, baseline, unwrapped)
        yield _since_drift(judges, place) if isinstance(place, Dataset) else judges


def _as_before(backends: Sequence[Backend], place: CallPlace) -> tuple[Backend, ...]:
    """Return a panel in the order in which it judged the set before: it is one judge in any."""
    if len(backends) == 1 or not isinstance(place, Dataset):
        return tuple(backends)
    gradings = place.judgment_table().counts()
    known = {grading.provenance.model for grading in gradings if grading.provenance}
    return next(
        (order for order in permutations(backends) if _panel_name(order) in known), tuple(backends)
    )


def _panel_name(backends: Iterable[Backend]) -> str:
    return "+".join(backend.name for backend in backends)


def _since_drift(judges: Judges, dataset: Dataset) -> Judges:
    """Return judges under the name that they have since a canary of a dataset found a drift.

    What is asked has another key then, and grades are of another judge.
    """
    canary = read_canaries(dataset).last_drift(judges.provenance())
    if canary is None:
        return judges
    message = (
        f"{judges.name} drifted by its canary of {canary.at[:10]}: it counts as another judge "
        "since, and replies of before are not used"
    )
    judges.job.observer(Event("note", message=message))
    return replace(judges, since=canary.since)


def _counting(unwrapped: Counter[str], observer: Observer) -> Observer:
    """Return an observer that counts the wrappings of replies, and hands all on."""

    def observe(event: Event) -> None:
        if event.name == "call" and event.labels.get("wrapping"):
            unwrapped.update(event.labels["wrapping"].split(" and "))
        observer(event)

    return observe


def _baseline(settings: Settings, place: CallPlace) -> Judge[Pair, Judgment]:
    """Return the judge without a language model.

    Raises:
        ConfigError: A local model is asked for that is not installed.
    """
    if not is_offline(settings.model.name) or not offline_model(settings.model):
        return LexicalJudge()
    from ragforge.retrieval.local_vectors import LocalVectors
    from ragforge.stages.judge.local_model import MiniLMJudge

    return MiniLMJudge(LocalVectors("minilm", place.store_path.parent))


def _examples(file: str) -> tuple[Example, ...]:
    if not file:
        return ()
    from ragforge.files.formats.pairs import load_examples

    return load_examples(Path(file))


def _refuse_contradictions(how: JudgeSettings, temperature: float) -> None:
    if how.votes > 1 and temperature == 0:
        raise UsageError(
            f"--votes {how.votes}: at temperature 0 a model repeats itself; add --temperature 0.7, "
            "or ask several models with --panel"
        )
    if how.batch > 1:
        given = {
            "--votes": how.votes > 1,
            "--logprobs": how.logprobs == "on",
            "--examples": how.examples != "",
        }
        for flag in (name for name, is_given in given.items() if is_given):
            raise UsageError(f"{flag} goes with --batch 1: what it adds is for one passage a call")
    if len(set(how.panel)) < len(how.panel):
        raise UsageError("--panel: a model comes twice; --votes asks one model several times")
    if any(map(is_offline, how.panel)):
        raise UsageError("--panel: the offline baseline is no judge to vote with others")


def _warn_of_shared_families(panel: Iterable[str], observer: Observer) -> None:
    related = shared_families(member.partition("@")[0] for member in panel)
    if related:
        observer(
            Event(
                "note",
                message=f"--panel: several models are {' and '.join(related)}'s; models of one "
                "family err alike, and their votes count as little more than one",
            )
        )


def _warn_of_other_rubric(settings: Settings, observer: Observer) -> None:
    """Tell where a folder of prompts overrides what is not used, and not what is."""
    folder = settings.prompts.prompts_dir
    if settings.judge.batch == 1 or settings.judge.prompt or not folder:
        return
    from ragforge.prompts import is_overridden

    if is_overridden(POINTWISE, folder) and not is_overridden(BATCH, folder):
        observer(
            Event(
                "note",
                message=f"--prompts-dir {folder}: replaces {POINTWISE}, but batches are judged by "
                f"the shipped {BATCH}; `ragforge prompts copy {BATCH} --to {folder}` makes one",
            )
        )


def of_member(settings: Settings, member: str) -> Settings:
    """Return the settings of one model of a panel, `NAME` or `NAME@URL`.

    Raises:
        ConfigError: There is no name, or the _address cannot be asked.
    """
    elsewhere = _ELSEWHERE.fullmatch(member)
    if elsewhere is None:
        changed = {"name": member}
    else:
        url = _url(elsewhere[1], elsewhere[2])
        changed = {"name": elsewhere[1], "base_url": url, "endpoint_id": ""}
    if not changed["name"].strip():
        raise ConfigError("a model that checks or judges: expected NAME or NAME@URL, got no name")
    model = settings.model.model_validate({**settings.model.model_dump(), **changed})
    return settings.model_copy(update={"model": model})


def judging_models(settings: Settings) -> tuple[ModelSettings, ...]:
    """Return the settings of each model that judges.

    Raises:
        ConfigError: As for `of_member`.
    """
    members = settings.judge.panel or (settings.model.name,)
    return tuple(of_member(settings, member).model for member in members)


def _url(name: str, text: str) -> str:
    try:
        return check_address(text)
    except ValueError as error:
        raise ConfigError(f"the model {name!r} that checks or judges: {error}") from error


def _turns(asker: Asker, examples: tuple[Example, ...], schema: str) -> tuple[Message, ...]:
    bare = schema == SCHEMA and asker.prompt.schema == BARE_SCHEMA
    if asker.prompt.schema != schema and not bare:
        raise ConfigError(
            f"prompt {asker.prompt.name!r}: has the schema {asker.prompt.schema!r}; "
            f"{schema!r} is needed here"
        )
    return example_turns(asker.prompt, examples) if examples else ()


def sum_of_estimates(estimates: list[dict[str, object]]) -> dict[str, object]:
    """Return several estimates as one: unknown where one is unknown, as long as the longest."""
    if len(estimates) == 1:
        return estimates[0]

    def add(values: list[Any]) -> Any:  # noqa: ANN401  # numbers, or mappings of them
        if isinstance(values[0], dict):
            return {name: add([value[name] for value in values]) for name in values[0]}
        return None if None in values else sum(values)

    total: dict[str, object] = add(estimates)
    seconds = [each["seconds"] for each in estimates if isinstance(each["seconds"], float)]
    total["seconds"] = max(seconds) if len(seconds) == len(estimates) else None
    return total


def family_of(model: str) -> str:
    """Return the maker's name, "" where the model's name tells none.

    A distillate named after two makers belongs to the one whose weights it has, as far as names
    tell: `deepseek-r1-distill-llama-70b` is a llama.
    """
    name = model.rsplit("/", 1)[-1].lower()
    name = name.partition("distill")[2] or name
    return next((maker for maker, words in _FAMILIES if re.search(words, name)), "")


def shared_families(models: Iterable[str]) -> list[str]:
    """Return the makers that several of the models come from, sorted."""
    counts = Counter(family for family in map(family_of, models) if family)
    return sorted(family for family, count in counts.items() if count > 1)
