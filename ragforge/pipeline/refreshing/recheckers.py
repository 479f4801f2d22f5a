"""Who checks queries again whose documents changed: a model, or the offline baseline."""

from collections.abc import Callable
from dataclasses import dataclass

from ragforge.config import Settings
from ragforge.observe import Observer
from ragforge.pipeline.backend import Backend
from ragforge.stages.asking import Asker
from ragforge.stages.recheck.lexical import LexicalRecheck
from ragforge.stages.recheck.llm import PROMPT, LLMRecheck
from ragforge.stages.recheck.subject import Rechecker
from ragforge.stages.runner import nothing

SEARCH_PROMPT = "find_answer"


@dataclass(frozen=True, slots=True)
class Recheckers:
    """Who checks again.

    Args:
        recheck: Whether passages still give an expected answer.
        find: A model with the prompt for looking for answers that should not be there; None for
            the offline baseline, which cannot tell that there is none.
        concurrency: Queries in work at once.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    recheck: Rechecker
    find: Asker | None
    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


def recheckers_of(backend: Backend, settings: Settings, observer: Observer) -> Recheckers:
    """Return who checks again, made from an open model; its prompts count as used from now on.

    Raises:
        ConfigError: A prompt cannot be taken.
    """
    concurrency = backend.workers(settings.model.concurrency)
    asker, find = backend.with_prompt(PROMPT), backend.with_prompt(SEARCH_PROMPT)
    recheck = LexicalRecheck() if asker is None else LLMRecheck(asker)
    return Recheckers(recheck, find, concurrency, observer, backend.stop)
