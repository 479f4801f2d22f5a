"""Drawing facts: what the expected answer of a query comes to, once a query."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragforge.errors import CallError
from ragforge.observe import Observer
from ragforge.records import Fact, Query
from ragforge.stages.answer.fact_rules import StatedFact, broken_rule, tidy
from ragforge.stages.asking import Asker, quoted
from ragforge.stages.pouring import Collected, collect
from ragforge.stages.runner import Work, nothing

MOST_FACTS = 8


class FactsReply(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    facts: Annotated[list[StatedFact], Field(min_length=1, max_length=MOST_FACTS)]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How facts are drawn.

    Args:
        asker: A model with the prompt for it.
        concurrency: Queries in work at once.
        observer: Told of progress.
        on_stop: As in `Work`.
    """

    asker: Asker
    concurrency: int
    observer: Observer
    on_stop: Callable[[], None] = nothing


def lacks_facts(query: Query) -> bool:
    """Whether facts can be drawn from a query and nobody did; a person's own ones stay.

    Facts that were drawn from another expected answer are as good as none.
    """
    expected = query.expected_answer
    if not query.answerable or expected is None or not expected.strip():
        return False
    return not query.facts or _are_stale(query, expected)


def digest_of(expected: str) -> str:
    """Return what `Query.facts_of` keeps of an expected answer."""
    return hashlib.sha256(expected.encode()).hexdigest()[:16]


def keeping_facts(new: Iterable[Query], old: Iterable[Query]) -> list[Query]:
    """Return queries with the facts that were drawn for them before.

    A query that brings its own facts, or another expected answer than before, is left as it is.
    """
    by_id = {query.query_id: query for query in old}
    kept = []
    for query in new:
        known = by_id.get(query.query_id)
        if known and lacks_facts(query) and known.expected_answer == query.expected_answer:
            update = {name: getattr(known, name) for name in ("facts", "facts_by", "facts_of")}
            kept.append(query.model_copy(update=update))
        else:
            kept.append(query)
    return kept


async def draw_facts(
    queries: Sequence[Query], drawing: Drawing, keep: Callable[[Collected[Query]], None]
) -> Collected[Query]:
    """Draw the facts of queries that lack them; a query whose facts cannot be drawn gets none.

    Args:
        queries: Each of them `lacks_facts`.
        drawing: How.
        keep: Called once, at the end or at a stop, with the queries that have their facts now.

    Raises:
        EndpointError, BudgetError: No facts can be drawn any more; after `keep`.
    """

    async def draw(query: Query) -> Query:
        return await with_facts(query, drawing.asker)

    work: Work[Query, Query] = Work(
        stage="facts",
        key=lambda query: query.query_id,
        do=draw,
        concurrency=drawing.concurrency,
        observer=drawing.observer,
        on_stop=drawing.on_stop,
    )
    return await collect(queries, work, blank=None, keep=keep)


async def with_facts(query: Query, asker: Asker) -> Query:
    """Return a query with the facts that a model finds in its expected answer.

    Raises:
        CallError: The model gave no usable list.
        EndpointError, BudgetError: No facts can be drawn any more.
    """
    if not lacks_facts(query):
        raise CallError("error", "has no expected answer to draw facts from, or has facts already")
    holes = {"question": quoted(query.asked), "expected": quoted(query.expected_answer or "")}
    found = await asker.ask(holes, FactsReply, lambda reply: broken_rule(reply.facts, query))
    facts = tuple(
        Fact(fact_id=f"f{number}", text=tidy(stated.statement), importance=stated.importance)
        for number, stated in enumerate(found.value.facts, start=1)
    )
    return query.model_copy(
        update={
            "facts": facts,
            "facts_by": asker.provenance(found.reply),
            "facts_of": digest_of(query.expected_answer or ""),
        }
    )


def _are_stale(query: Query, expected: str) -> bool:
    drawn = query.facts_by is not None and query.facts_of
    return bool(drawn) and query.facts_of != digest_of(expected)
