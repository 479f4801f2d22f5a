"""Drawing facts: what the expected answer of a query comes to, once a query."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal

from ragforge.corpus.quote_locations import fold
from ragforge.deferred import pattern
from ragforge.errors import CallError
from ragforge.records import Fact, Query
from ragforge.records.model import ConfigDict, Field, Model
from ragforge.stages.asking import Asker, quoted, upto
from ragforge.stages.values import small_numbers
from ragforge.stages.visible_text import visible
from ragforge.stages.words import all_entries, content_stems, numbers, words

if TYPE_CHECKING:
    from ragforge.stages.runner import Collected, Workers

_SHARED_LETTERS: Final = 4
"""Words that begin alike are taken for forms of one: most languages inflect behind."""
_GROUPS: Final = pattern(r"[0-9]{1,3}(?:[.,][0-9]{3})+")

_MOST_FACTS = 8


class StatedFact(Model):
    """One fact as a model states it; its id is assigned by who asks."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    statement: Annotated[str, upto(300)]
    importance: Literal["vital", "okay"]


def tidy(statement: str) -> str:
    """Return a statement as it is kept."""
    return visible(statement).strip()


def broken_rule(facts: Sequence[StatedFact], query: Query) -> str | None:
    """Return the rule that a well-formed list of facts breaks, None where it breaks none.

    Args:
        facts: What a model found in the expected answer.
        query: Has the expected answer.
    """
    seen: set[str] = set()
    for stated in facts:
        text = tidy(stated.statement)
        folded = _plain(text)
        if not any(character.isalnum() for character in folded):
            return "a statement is empty; each fact is a sentence"
        if folded in seen:
            return f"the statement {text!r} comes twice; state each fact once"
        seen.add(folded)
        broken = _broken_statement(text, query)
        if broken is not None:
            return broken
    if all(stated.importance == "okay" for stated in facts):
        return "no fact is vital; at least one must be, for else nothing answers the question"
    return None


def _broken_statement(text: str, query: Query) -> str | None:
    expected = query.expected_answer or ""
    if _plain(text) == _plain(query.asked) != _plain(expected):
        return f"the statement {text!r} is the question; state what the expected answer says"
    known = _amounts(expected) | _amounts(query.asked)
    foreign = sorted(number for number in numbers(text) if known.isdisjoint(_spellings(number)))
    if foreign:
        return (
            f"the statement {text!r} has the number {foreign[0]}, which is not in the expected "
            "answer; state only what it says"
        )
    if not _is_about(text, query.asked, expected):
        return (
            f"the statement {text!r} shares no word with the expected answer; state only what it "
            "says, in its words"
        )
    return None


def _plain(text: str) -> str:
    return fold(text).casefold().rstrip(".?!\u3002\uff1f\uff01 ")


def _is_about(text: str, question: str, expected: str) -> bool:
    """Whether a statement has a content word or number of the expected answer.

    One of the question is enough where the expected answer says yes or no, or has no such words.
    Nothing can be said where the two are in different scripts.
    """
    wanted, spoken = _keys(expected), set(words(expected))
    if not wanted or not spoken.isdisjoint(_yes_or_no()):
        wanted |= _keys(question)
    given = _keys(text)
    if not wanted or not given or _scripts(text).isdisjoint(_scripts(f"{expected} {question}")):
        return True
    return not wanted.isdisjoint(given)


def _keys(text: str) -> set[str]:
    stems = {stem[:_SHARED_LETTERS] for stem in content_stems(text)}
    return stems - _yes_or_no() | _amounts(text)


@cache
def _yes_or_no() -> frozenset[str]:
    """Return what answers a question without a word of what is asked about."""
    return frozenset(all_entries("values.yes_or_no"))


def _amounts(text: str) -> set[str]:
    """Return the numbers of a text in all their readings, small ones also if spelled out."""
    small = small_numbers()
    spelled = {str(small.index(word)) for word in words(text) if word in small}
    return {reading for number in numbers(text) for reading in _spellings(number)} | spelled


def _spellings(number: str) -> set[str]:
    """Return what a number may be: 1.000 is a thousand or one, 2,50 is 2.5, 03 is 3."""
    readings = {number.replace(",", ".")}
    if _GROUPS.fullmatch(number):
        readings.add(re.sub("[.,]", "", number))
    return {_short(reading) for reading in readings}


def _short(number: str) -> str:
    whole, point, rest = number.partition(".")
    rest = rest.rstrip("0") if "." not in rest else rest
    return (whole.lstrip("0") or "0") + (f"{point}{rest}" if rest else "")


def _scripts(text: str) -> set[str]:
    return {unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha()}


class FactsReply(Model):
    """What is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, strict=True)

    facts: Annotated[list[StatedFact], Field(min_length=1, max_length=_MOST_FACTS)]


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
    queries: Sequence[Query],
    asker: Asker,
    workers: "Workers",
    keep: "Callable[[Collected[Query]], None]",
) -> "Collected[Query]":
    """Draw the facts of queries that lack them; a query whose facts cannot be drawn gets none.

    Args:
        queries: Each of them `lacks_facts`.
        asker: A model with the prompt for it.
        workers: How many queries are in work at once, and who is told.
        keep: Called once, at the end or at a stop, with the queries that have their facts now.

    Raises:
        EndpointError, BudgetError: No facts can be drawn any more; after `keep`.
    """

    async def draw(query: Query) -> Query:
        return await with_facts(query, asker)

    from ragforge.stages.runner import Work, collect

    work: Work[Query, Query] = Work(
        stage="facts",
        key=lambda query: query.query_id,
        do=draw,
        workers=workers,
    )
    return await collect(queries, work, keep=keep)


async def with_facts(query: Query, asker: Asker) -> Query:
    """Return a query with the facts that a model finds in its expected answer.

    Raises:
        CallError: The model gave no usable list.
        EndpointError, BudgetError: No facts can be drawn any more.
    """
    if not lacks_facts(query):
        raise CallError("error", "has no expected answer to draw facts from, or has facts already")
    holes = {"question": quoted(query.asked), "expected": quoted(query.expected_answer or "")}
    drawn = await asker.ask(holes, FactsReply, lambda reply: broken_rule(reply.facts, query))
    facts = tuple(
        Fact(fact_id=f"f{number}", text=tidy(stated.statement), importance=stated.importance)
        for number, stated in enumerate(drawn.value.facts, start=1)
    )
    return query.model_copy(
        update={
            "facts": facts,
            "facts_by": asker.provenance(drawn.reply),
            "facts_of": digest_of(query.expected_answer or ""),
        }
    )


def _are_stale(query: Query, expected: str) -> bool:
    drawn = query.facts_by is not None and query.facts_of
    return bool(drawn) and query.facts_of != digest_of(expected)
