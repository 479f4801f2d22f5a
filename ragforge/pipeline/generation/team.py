"""Who generates: a writer, and a checker that should not be the same."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ragforge.config import Settings
from ragforge.files.set.dataset import Dataset
from ragforge.llm.embedder import EndpointEmbedder
from ragforge.observe import Event
from ragforge.pipeline.backend import Backend, open_backend
from ragforge.pipeline.embedding import embedder_of
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judges import of_member
from ragforge.pipeline.surveying import Surveyed
from ragforge.records import Slot
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import Brief, QueryWriter
from ragforge.stages.generate.checks.absence import Corpus
from ragforge.stages.generate.checks.checking import PROMPTS as CHECK_PROMPTS
from ragforge.stages.generate.checks.checking import Checks, askers
from ragforge.stages.generate.hops import common_terms, joined, partner
from ragforge.stages.generate.kinds import PROMPTS
from ragforge.stages.generate.kinds import PROMPTS as WRITER_PROMPTS
from ragforge.stages.generate.llm import LLMQueryWriter
from ragforge.stages.generate.rules import RuleQueryWriter
from ragforge.stages.generate.statistics import query_lengths, spread
from ragforge.stages.runner import Workers

_HOPS = ("multi_hop", "multi_hop_across")

SELF_CHECKED = (
    "the model that writes also checks; one of another family, named with --checker, is a "
    "stricter reader of what it would have written itself"
)


@dataclass(slots=True)
class Briefs:
    """Makes briefs.

    Args:
        survey: Of the corpus.
        seed: Decides which chunks are looked at for what is common.
    """

    survey: Surveyed
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
class Team:
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


async def assemble(stack: AsyncExitStack, job: Job, dataset: Dataset) -> Team:
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
        return Team(writer, None, embedder)
    if how.checker:
        other = of_member(job.settings, how.checker)
        return Team(writer, await opened(other, tuple(CHECK_PROMPTS)), embedder)
    job.observer(Event("note", message=SELF_CHECKED))
    for name in CHECK_PROMPTS:
        writer.with_prompt(name)
    return Team(writer, writer, embedder)


def writer_of(team: Team, settings: Settings, real: Sequence[str]) -> QueryWriter:
    """Return who writes.

    Args:
        team: Whose writer may be without a model; then rules write.
        settings: As given.
        real: Queries of users, whose manner is taken on.
    """
    if team.writer.asker is None:
        return RuleQueryWriter(settings.model.seed)
    usual = spread(query_lengths(real))
    return LLMQueryWriter(
        askers={name: _asker(team.writer, name) for name in PROMPTS},
        seed=settings.model.seed,
        per_call=settings.generate.per_call,
        style=tuple(real),
        usual_words=round(usual.median) if usual else 0,
    )


def checks_of(team: Team, survey: Surveyed, job: Job) -> Checks | None:
    """Return who checks; None where nobody does."""
    checker = team.checker
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
