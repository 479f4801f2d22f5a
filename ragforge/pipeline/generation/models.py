"""Who generates: a writer, and a checker that should not be the same; and what both will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from math import ceil
from typing import TYPE_CHECKING

from ragforge.config import Settings
from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.files.set.dataset import Dataset
from ragforge.llm.chat import Usage
from ragforge.observe import Event
from ragforge.pipeline.backend import (
    NO_CALLS,
    Backend,
    count_embeddings,
    embedder_of,
    open_backend,
    with_embeddings,
)
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import of_member
from ragforge.pipeline.surveying import StoredSurvey
from ragforge.records import Slot
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Brief, QueryWriter
from ragforge.stages.generate.checks.absence import Corpus
from ragforge.stages.generate.checks.checking import PROMPTS as CHECK_PROMPTS
from ragforge.stages.generate.checks.checking import Checks, askers, calls_for
from ragforge.stages.generate.hops import common_terms, joined, partner
from ragforge.stages.generate.kinds import PROMPTS
from ragforge.stages.generate.kinds import PROMPTS as WRITER_PROMPTS
from ragforge.stages.generate.plan import OpenCell, Sources
from ragforge.stages.generate.quotas import Cell, make_cells
from ragforge.stages.generate.rules import RuleQueryWriter
from ragforge.stages.generate.statistics import query_lengths, spread
from ragforge.stages.runner import Workers

if TYPE_CHECKING:
    from ragforge.llm.embedder import EndpointEmbedder

_HOPS = ("multi_hop", "multi_hop_across")

SELF_CHECKED = (
    "the model that writes also checks; one of another family, named with --checker, is a "
    "stricter reader of what it would have written itself"
)
SOURCES_A_QUERY = 1.15
"""Sources that are asked about for each accepted query, rejections included."""
POOL_CHUNKS = 23
"""Chunks that are judged for a query: three probes of ten, much alike, and some growth."""
_CHECK_TOKENS = 600
_JUDGE_TOKENS = 900
"""What a judge is told apart from the chunks, and what it replies."""
_CHARS_A_TOKEN = 4
_MOST_CANDIDATES = 3
_LOW = 0.4
"""Part of what is reckoned that is spent at least: replies and pools may be small."""
_REPLIED = 0.2
"""Part of the reckoned tokens that is reply."""


@dataclass(slots=True)
class Briefs:
    """Makes briefs.

    Args:
        survey: Of the corpus.
        seed: Decides which chunks are looked at for what is common.
    """

    survey: StoredSurvey
    seed: int
    _common: frozenset[str] | None = None

    async def of(self, slot: Slot) -> Brief | None:
        """Return the brief of a slot; None where its chunk has no partner that it needs."""
        source = self.survey.chunk(slot.chunk_ids[0])
        if slot.type not in _HOPS:
            return Brief(slot, (source,))
        if self._common is None:
            self._common = common_terms(self.survey, self.seed)
        other = await partner(source, slot.type, self.survey, self.survey.bm25, self._common)
        return Brief(joined(slot, other), (source, other)) if other is not None else None


@dataclass(frozen=True, slots=True)
class GenerationModels:
    """Who writes, and who checks.

    Args:
        writer: A model with the prompts of the writer; without one the rules write.
        checker: The model that checks; None where nothing is checked.
        embedder: Embeds what is looked for in the corpus; None where no model for it is set.
    """

    writer: Backend
    checker: Backend | None
    embedder: EndpointEmbedder | None = None

    @property
    def prompts(self) -> Mapping[str, str]:
        """Digests of the prompts in use, by name."""
        checks = self.checker.prompt_digests if self.checker else {}
        return {**self.writer.prompt_digests, **checks}

    @property
    def asks(self) -> bool:
        """Whether any model is asked."""
        return self.writer.asker is not None or self.checker is not None

    def note_in(self, dataset: Dataset) -> None:
        """Write models, prompts and what was spent into the manifest."""
        self.writer.note_in(dataset)
        if self.checker is not None and self.checker is not self.writer:
            self.checker.note_in(dataset)


async def open_models(stack: AsyncExitStack, job: Job, dataset: Dataset) -> GenerationModels:
    """Open the models that the settings of a job name; they close with the stack.

    Raises:
        ConfigError, DataError: As for `open_backend`.
    """

    async def opened(of: Settings, prompts: tuple[str, ...]) -> Backend:
        backend = await stack.enter_async_context(
            open_backend(job.with_settings(of), prompts[0], dataset, "generate", "check")
        )
        for name in prompts[1:]:
            backend.with_prompt(name)
        return backend

    embedder = await stack.enter_async_context(embedder_of(job, dataset))
    how = job.settings.generate
    writer = await opened(job.settings, tuple(WRITER_PROMPTS))
    if how.checks == "off" or (writer.asker is None and not how.checker):
        return GenerationModels(writer, None, embedder)
    if how.checker:
        other = of_member(job.settings, how.checker)
        return GenerationModels(writer, await opened(other, tuple(CHECK_PROMPTS)), embedder)
    job.observer(Event("note", message=SELF_CHECKED))
    for name in CHECK_PROMPTS:
        writer.with_prompt(name)
    return GenerationModels(writer, writer, embedder)


def writer_of(models: GenerationModels, settings: Settings, real: Sequence[str]) -> QueryWriter:
    """Return the writer of queries.

    Args:
        models: Whose writer may be without a model; then rules write.
        settings: As given.
        real: Queries of users, whose manner is taken on.
    """
    if models.writer.asker is None:
        return RuleQueryWriter(settings.model.seed)
    from ragforge.stages.generate.llm import LLMQueryWriter  # With pydantic.

    usual = spread(query_lengths(real))
    return LLMQueryWriter(
        askers={name: _asker(models.writer, name) for name in PROMPTS},
        seed=settings.model.seed,
        per_call=settings.generate.per_call,
        style=tuple(real),
        usual_words=round(usual.median) if usual else 0,
    )


def checks_of(models: GenerationModels, survey: StoredSurvey, job: Job) -> Checks | None:
    """Return the checks of written queries; None where nothing is checked."""
    checker = models.checker
    if checker is None:
        return None
    corpus = Corpus(
        retriever=survey.bm25,
        text_of=lambda chunk_id: survey.chunk(chunk_id).text,
        neighbours=survey.neighbours,
    )
    return Checks(
        askers=askers(lambda name: _asker(checker, name)),
        corpus=corpus,
        workers=Workers(
            checker.workers(job.settings.model.concurrency), job.observer, checker.stop
        ),
    )


def _asker(backend: Backend, prompt: str) -> Asker:
    found = backend.with_prompt(prompt)
    assert found is not None
    return found


async def estimate_generation(
    models: GenerationModels,
    survey: StoredSurvey,
    settings: Settings,
    real: Sequence[str],
    n_there: int,
) -> dict[str, object]:
    """Return calls, tokens and money; for the writer counted, for checks and pools reckoned.

    Args:
        models: In a dry run.
        survey: Of the corpus.
        settings: As given.
        real: Queries whose manner is taken on.
        n_there: Queries that the set has already.
    """
    how = settings.generate
    n_open = max(0, how.n - n_there)
    cells = make_cells(how, settings.model.seed)[:n_open]
    return await estimate_cells(models, survey, settings, real, cells)


async def estimate_cells(
    models: GenerationModels,
    survey: StoredSurvey,
    settings: Settings,
    real: Sequence[str],
    cells: Sequence[Cell],
) -> dict[str, object]:
    """Return calls, tokens and money as `estimate_generation` does, for the queries of some cells.

    Args:
        models: In a dry run.
        survey: Of the corpus.
        settings: As given.
        real: Queries of users, whose manner is taken on.
        cells: One for each query that is wanted.
    """
    how = settings.generate
    sources = Sources(
        survey.cards(), cells, per_chunk=how.per_chunk, seed=settings.model.seed, used={}
    )
    briefs = Briefs(survey, settings.model.seed)
    writer = writer_of(models, settings, real)
    chars, n_slots = 0, 0
    for slot in sources.take([OpenCell(cell.number) for cell in cells]):
        brief = await briefs.of(slot) if slot is not None else None
        if brief is None:
            continue
        n_slots += 1
        chars += sum(len(chunk.text) for chunk in brief.chunks)
        if models.writer.tally is not None:
            with suppress(CallError):
                await writer.write(brief, [])
    counted = models.writer.estimate()
    if counted is NO_CALLS or "tokens" not in counted:
        return NO_CALLS
    n_new = counted["calls"]
    assert isinstance(n_new, int)
    # What an earlier run had written was most likely checked as well.
    checks = calls_for([cell.type for cell in cells[:n_new]]) if models.checker else 0
    judging = 0 if how.complete == "off" else ceil(n_new * POOL_CHUNKS / settings.pool.pool_batch)
    judged = settings.pool.pool_batch * chars / max(1, n_slots) / _CHARS_A_TOKEN + _JUDGE_TOKENS
    more = round(checks * _CHECK_TOKENS + judging * judged)
    estimate = _summed(counted, checks, judging, more, models)
    if models.embedder is None or not judging:
        return estimate
    chunks = (survey.chunk(card.chunk_id) for card in survey.cards())
    return with_embeddings(estimate, await count_embeddings(models.embedder, chunks, ()))


def _summed(
    counted: dict[str, object], checks: int, judging: int, more: int, models: GenerationModels
) -> dict[str, object]:
    """Return the sum of the writer's counted calls and the reckoned calls of the others.

    Args:
        counted: Of the writer.
        checks: Calls that check.
        judging: Calls that judge pools.
        more: Tokens of those calls.
        models: Has the prices.
    """
    calls, tokens, costs = counted["calls"], counted["tokens"], counted["cost_usd"]
    assert isinstance(calls, int)
    assert isinstance(tokens, dict)
    assert isinstance(costs, dict)
    others = models.checker or models.writer
    price = others.tally.price if others.tally else None
    usage = Usage(round(more * (1 - _REPLIED)), round(more * _REPLIED))
    extra = price.cost_usd(usage) if price else None
    most = float(_MOST_CANDIDATES * _MOST_CANDIDATES)
    factors = {"low": (1.0, _LOW), "expected": (SOURCES_A_QUERY,) * 2, "high": (most, most)}
    cost_usd: dict[str, float | None] = {}
    for name, (own, other) in factors.items():
        known = costs[name] is not None and (extra is not None or not more)
        cost_usd[name] = round(costs[name] * own + (extra or 0.0) * other, 6) if known else None
    total = calls + checks + judging
    return {
        **counted,
        "steps": {"writing": calls, "checking": checks, "judging pools": judging},
        "calls": ceil(total * SOURCES_A_QUERY),
        "calls_high": round(total * most),
        "tokens": {
            name: round(tokens[name] * own + more * other) for name, (own, other) in factors.items()
        },
        "cost_usd": cost_usd,
    }
