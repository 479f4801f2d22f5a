"""What is answered after a sweep: the finalists, and the texts that they retrieved.

Only finalists are answered for: evidence costs nothing to measure, and an answer from a prompt that
lacks it is no news.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ragforge.corpus.documents import Document
from ragforge.corpus.file_texts import seen_between
from ragforge.corpus.quality import token_count
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.configurations import Configuration, Top
from ragforge.evaluating.evidence import placed_quotes
from ragforge.evaluating.sweep import ConfigurationResult, SweptQueries
from ragforge.measures.evidence_coverage import RetrievedText, within
from ragforge.measures.strata import Design
from ragforge.pipeline.sweep.rankings import digest
from ragforge.plugins import HandedOver
from ragforge.records import Chunk, Query

MODEL: Final = "model"
"""The system that is the model of the settings, with a prompt of ours."""
FINALISTS: Final = 5
"""Configurations that are answered for, at most, where nobody says how many."""


@dataclass(frozen=True, slots=True)
class Answering:
    """How answers are made.

    Args:
        system: `model`, an address, `package.module:attribute`, or an object that is handed over.
        most: Configurations that are answered for: the first by evidence. None for the best and
            what is not told apart from it, `FINALISTS` at most.
        again: Ask again what was answered before; a model's replies stay.
    """

    system: str
    most: int | None = None
    again: bool = False

    def __post_init__(self) -> None:
        """Check the number.

        Raises:
            UsageError: It is below 1.
        """
        if self.most is not None and self.most < 1:
            raise UsageError(f"--answer-top {self.most}: expected a number from 1")

    @property
    def is_model(self) -> bool:
        """Whether the model of the settings answers."""
        return self.system == MODEL and not isinstance(self.system, HandedOver)

    def finalists(self, results: Sequence[ConfigurationResult]) -> list[ConfigurationResult]:
        """Return the configurations that are answered for.

        Args:
            results: Best first.
        """
        if self.most is not None:
            return list(results[: self.most])
        return [item for item in results if not item.is_worse][:FINALISTS]


@dataclass(frozen=True, slots=True)
class Question:
    """What a system is asked, once.

    Args:
        query: Whose answer it is.
        contexts: Texts, best first.
    """

    query: Query
    contexts: tuple[str, ...]

    @property
    def key(self) -> str:
        """The digest of what is asked."""
        return digest(self.query.asked, list(self.contexts))


@dataclass(frozen=True, slots=True)
class Finals:
    """What is to be answered.

    Args:
        top: How much is taken of each ranking.
        questions: By configuration and query; a query whose retrieval failed has none.
        prompt_tokens: What the contexts take, in the mean, by configuration.
        n_configurations: Of the sweep.
        query_ids: Queries that are asked of each configuration.
        n_left_out: Queries without an expected answer.
        design: What the queries are a sample of; None where they are all there is.
        is_exact: Whether these are the contexts, and no others that stand in for them.
    """

    top: Top
    questions: Mapping[Configuration, Mapping[str, Question]]
    prompt_tokens: Mapping[Configuration, float]
    n_configurations: int
    query_ids: Sequence[str]
    n_left_out: int
    design: Design | None = None
    is_exact: bool = True

    @property
    def distinct(self) -> dict[str, Question]:
        """Each question once, by its digest."""
        return {each.key: each for of in self.questions.values() for each in of.values()}


def finals_of(
    results: Sequence[ConfigurationResult], swept: SweptQueries, top: Top, answering: Answering
) -> Finals:
    """Return what is to be answered after a sweep.

    Args:
        results: Best first.
        swept: What was measured.
        top: How much of each ranking a system is given.
        answering: How many configurations are answered for.

    Raises:
        UsageError: No query has an expected answer.
    """
    queries = gradable(swept)
    finalists = answering.finalists(results)
    questions = {
        item.configuration: {
            query_id: Question(query, _contexts(ranking, swept.documents, top))
            for query_id, query in queries.items()
            if (ranking := item.ranked.rankings.get(query_id)) is not None
        }
        for item in finalists
    }
    return Finals(
        top,
        questions,
        {item.configuration: item.prompt_tokens for item in finalists},
        len(results),
        tuple(queries),
        len(swept.measured) - len(queries),
        _design(swept, queries),
    )


def supposed_finals(
    configurations: Sequence[Configuration],
    chunks: Sequence[Chunk],
    swept: SweptQueries,
    top: Top,
    answering: Answering,
) -> Finals:
    """Return what may be to be answered before anything is ranked: as many texts, of other places.

    Args:
        configurations: Of the sweep.
        chunks: Of the largest texts.
        swept: What would be measured.
        top: How much of each ranking a system would be given.
        answering: How many configurations are answered for.

    Raises:
        UsageError: No query has an expected answer.
    """
    queries = gradable(swept)
    finalists = configurations[: answering.most or FINALISTS]
    texts = [(chunk.text, token_count(chunk.text)) for chunk in chunks]
    questions = {
        configuration: {
            query_id: Question(query, _supposed(texts, at * len(finalists) + nth, top))
            for at, (query_id, query) in enumerate(queries.items())
        }
        for nth, configuration in enumerate(finalists)
    }
    return Finals(
        top,
        questions,
        {},
        len(configurations),
        tuple(queries),
        len(swept.measured) - len(queries),
        is_exact=False,
    )


def gradable(swept: SweptQueries) -> dict[str, Query]:
    """Return the queries that are measured and have an expected answer, by id, sorted.

    Raises:
        UsageError: There is none.
    """
    found = {
        query.query_id: query
        for query in sorted(swept.queries, key=lambda query: query.query_id)
        if query.query_id in swept.measured and _has_answer(query)
    }
    if not found:
        raise UsageError(
            "--system: no query that is measured has an expected answer to grade by; "
            "`ragforge generate` writes them, and `ragforge import` takes them as expected_answer"
        )
    return found


def _has_answer(query: Query) -> bool:
    return bool((query.expected_answer or "").strip())


def _contexts(
    ranking: Sequence[RetrievedText], documents: Mapping[str, Document], top: Top
) -> tuple[str, ...]:
    taken = within(ranking, cutoff=top.cutoff, tokens=top.tokens)
    places = (place for text in taken for place in text.places)
    return tuple(
        seen_between(documents[place.document], place.start, place.end) for place in places
    )


def _supposed(texts: Sequence[tuple[str, int]], start: int, top: Top) -> tuple[str, ...]:
    found: list[str] = []
    total = 0
    for at in range(start, start + len(texts)):
        text, tokens = texts[at % len(texts)]
        total += tokens
        if len(found) == top.cutoff or (top.tokens is not None and total > top.tokens):
            break
        found.append(text)
    return tuple(found)


def _design(swept: SweptQueries, queries: Iterable[str]) -> Design | None:
    """Return the design of the queries that have a place for their quotes and an answer."""
    if swept.chosen is None or swept.chosen.design is None:
        return None
    placed = placed_quotes(swept.queries, swept.texts, {}).quotes
    answered = {query.query_id for query in swept.queries if _has_answer(query)}
    return swept.chosen.design.within({*queries, *(placed.keys() & answered)})
