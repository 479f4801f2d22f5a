"""Who writes queries and who checks them, made from the models of a team."""

from collections.abc import Sequence

from ragforge.config import Settings
from ragforge.observe import Observer
from ragforge.pipeline.backend import Backend
from ragforge.pipeline.generation.team import Team
from ragforge.pipeline.surveyed import Surveyed
from ragforge.stages.asking import Asker
from ragforge.stages.generate.candidates import QueryWriter
from ragforge.stages.generate.checks.absence import Corpus
from ragforge.stages.generate.checks.checking import Checks, askers
from ragforge.stages.generate.checks.running import Running
from ragforge.stages.generate.kinds import PROMPTS
from ragforge.stages.generate.llm import LLMQueryWriter
from ragforge.stages.generate.rules import RuleQueryWriter
from ragforge.stages.generate.statistics import query_lengths, spread


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


def checks_of(
    team: Team, survey: Surveyed, settings: Settings, observer: Observer
) -> Checks | None:
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
        running=Running(
            concurrency=checker.workers(settings.model.concurrency),
            observer=observer,
            on_stop=checker.stop,
        ),
    )


def _asker(backend: Backend, prompt: str) -> Asker:
    found = backend.with_prompt(prompt)
    assert found is not None
    return found
