"""Drawing facts: what the expected answer of a query comes to, once a query."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragforge.corpus.anchors import fold
from ragforge.errors import CallError
from ragforge.observe import Observer
from ragforge.records import Fact, Query
from ragforge.stages.asking import Asker, quoted, upto, visible
from ragforge.stages.pouring import Collected, collect
from ragforge.stages.runner import Work, nothing

MOST_FACTS = 8


class StatedFact(BaseModel):
    """One fact as a model states it; its id is assigned here."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    statement: Annotated[str, upto(300)]
    importance: Literal["vital", "okay"]


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
    """Whether facts can be drawn from a query and nobody did; a person's own ones stay."""
    expected = query.expected_answer
    return query.answerable and expected is not None and bool(expected.strip()) and not query.facts


def keeping_facts(new: Iterable[Query], old: Iterable[Query]) -> list[Query]:
    """Return queries with the facts that were drawn for them before.

    A query that brings its own facts, or another expected answer than before, is left as it is.
    """
    by_id = {query.query_id: query for query in old}
    kept = []
    for query in new:
        known = by_id.get(query.query_id)
        if known and lacks_facts(query) and known.expected_answer == query.expected_answer:
            update = {"facts": known.facts, "facts_by": known.facts_by}
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
    holes = {"question": quoted(query.query), "expected": quoted(query.expected_answer or "")}
    found = await asker.ask(holes, FactsReply, broken_rule)
    facts = tuple(
        Fact(fact_id=f"f{number}", text=_tidy(stated.statement), importance=stated.importance)
        for number, stated in enumerate(found.value.facts, start=1)
    )
    return query.model_copy(update={"facts": facts, "facts_by": asker.provenance(found.reply.key)})


def broken_rule(reply: FactsReply) -> str | None:
    """Return the rule that a well-formed list of facts breaks, None where it breaks none."""
    seen: set[str] = set()
    for stated in reply.facts:
        folded = fold(_tidy(stated.statement)).casefold().rstrip(".")
        if not any(character.isalnum() for character in folded):
            return "a statement is empty; each fact is a sentence"
        if folded in seen:
            return f"the statement {stated.statement!r} comes twice; state each fact once"
        seen.add(folded)
    if all(stated.importance == "okay" for stated in reply.facts):
        return "no fact is vital; at least one must be, for else nothing answers the question"
    return None


def _tidy(statement: str) -> str:
    return visible(statement).strip()
