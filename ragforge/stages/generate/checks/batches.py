"""Several questions in one call: each verdict is tied to its question, or it is no verdict.

A verdict must carry an id that no text can foresee and repeat its question. One that repeats the
question of another entry shows that verdicts have slipped, and then none of the reply counts. What
a batch leaves open is asked for alone, once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import CallError
from ragforge.records import Chunk, Evidence, Gate, Provenance, Query, QueryType, Turn
from ragforge.records.model import Field, FieldInfo, Model
from ragforge.stages.asking import Asker, Way, together
from ragforge.stages.generate.candidates import Anchored
from ragforge.stages.quotes import has_content
from ragforge.stages.words import words

_ORDINARY: tuple[Gate, ...] = ("self_contained", "independent_answer")
_GATES: Mapping[QueryType, tuple[Gate, ...]] = {
    "multi_hop": (*_ORDINARY, "necessary_hops"),
    "multi_hop_across": (*_ORDINARY, "necessary_hops"),
    "false_premise": ("self_contained", "premise", "independent_answer"),
    "ambiguous": ("ambiguity", "independent_answer"),
    "unanswerable": ("self_contained", "unanswerable"),
}

MOST = 8
"""Entries of a batch."""
_NOTHING = frozenset({"none", "nothing", "null", "na", "n a"})
R = TypeVar("R", bound=Model)


@dataclass(frozen=True, slots=True)
class Proof:
    """A quote as a checker sees it.

    Args:
        text: The quote.
        titles: What its chunk stands under, the outermost first.
        hop: Which step of the answer it holds.
    """

    text: str
    titles: tuple[str, ...] = ()
    hop: int = 1


@dataclass(frozen=True, slots=True)
class Item:
    """A query as checkers see it.

    Args:
        key: Names it in failures.
        question: As it was written; a follow-up leans on `history`.
        asked: The question as it stands on its own.
        expected: The expected answer.
        proofs: The evidence.
        chunk_ids: What it was written from.
        type, language, history: As in `Query`.
    """

    key: str
    question: str
    asked: str
    expected: str
    proofs: tuple[Proof, ...]
    chunk_ids: tuple[str, ...]
    type: QueryType | None = None
    language: str = "en"
    history: tuple[Turn, ...] = ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates it must pass, in the order in which they are tried."""
        return _ORDINARY if self.type is None else _GATES.get(self.type, _ORDINARY)


def item_of(anchored: Anchored) -> Item:
    """Return a candidate as checkers see it."""
    candidate, slot = anchored.candidate, anchored.brief.slot
    return Item(
        key=f"{slot.slot_id}/{anchored.place}",
        question=candidate.question,
        asked=candidate.asked,
        expected=candidate.answer,
        proofs=_proofs(anchored.evidence, anchored.brief.chunks),
        chunk_ids=slot.chunk_ids,
        type=candidate.type,
        language=slot.language,
        history=candidate.history,
    )


def item_of_query(query: Query, chunks: Sequence[Chunk]) -> Item:
    """Return a query of a set as checkers see it.

    Args:
        query: With its evidence.
        chunks: Those that its evidence stands in; of others the titles are not known.
    """
    return Item(
        key=query.query_id,
        question=query.query,
        asked=query.asked,
        expected=query.expected_answer or "",
        proofs=_proofs(query.evidence, chunks),
        chunk_ids=query.source_chunk_ids,
        type=query.type,
        language=query.language,
        history=query.history,
    )


def _proofs(evidence: Sequence[Evidence], chunks: Sequence[Chunk]) -> tuple[Proof, ...]:
    titles = {chunk.chunk_id: tuple(chunk.heading_path) for chunk in chunks}
    return tuple(Proof(one.quote, titles.get(one.chunk_id, ()), one.hop) for one in evidence)


def at_most(entries: int) -> FieldInfo:
    """Return a list whose length a grammar may bound; see `upto`."""
    found: FieldInfo = Field(json_schema_extra={"maxItems": entries})
    return found


class Verdict(Protocol):
    """Verdict on one entry."""

    @property
    def id(self) -> str:
        """The id that the entry had in this call."""

    @property
    def question(self) -> str:
        """The question of the entry, repeated."""


V = TypeVar("V", bound=Verdict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One question of a batch.

    Args:
        question: What its verdict must repeat.
        shown: What else is shown, by name; its texts as `visible` leaves them.
    """

    question: str
    shown: Mapping[str, object]

    @property
    def mark(self) -> tuple[str, ...]:
        """What tells it from others of its batch."""
        return tuple(words(self.question))


@dataclass(frozen=True, slots=True)
class SignedVerdict(Generic[V]):
    """A verdict with who gave it."""

    verdict: V
    by: Provenance


@dataclass(frozen=True, slots=True)
class Form(Generic[R, V]):
    """How a batch is asked for.

    Args:
        asker: The model with its prompt.
        hole: Of the prompt, for the list of entries.
        reply_type: What the reply must be.
        verdicts: Takes the verdicts out of a reply.
        broken_rule: Returns the rule that a verdict breaks by itself, None where it breaks none.
        tokens_each: Room in the reply for each entry beyond the first.
    """

    asker: Asker
    hole: str
    reply_type: type[R]
    verdicts: Callable[[R], Sequence[V]]
    broken_rule: Callable[[V], str | None]
    tokens_each: int


def batches(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Return entries in batches of at most MOST, in their order.

    Questions that cannot be told apart never share a batch.
    """
    parts: list[list[Entry]] = []
    for entry in entries:
        last = parts[-1] if parts else []
        if not last or len(last) == MOST or entry.mark in [other.mark for other in last]:
            parts.append([entry])
        else:
            last.append(entry)
    return parts


async def ask_batch(
    entries: Sequence[Entry], form: Form[R, V]
) -> list[SignedVerdict[V] | CallError]:
    """Return a verdict or an error for each entry, in their order.

    A batch for which no reply came at all (kind `error`) is not taken apart: single entries would
    go the same way, at several times the price.

    Raises:
        EndpointError, BudgetError: Nothing can be asked any more.
    """
    if len(entries) == 1:
        return await together([_alone(entries[0], form)])
    verdicts: dict[int, SignedVerdict[V]] = {}
    try:
        verdicts = await _together(entries, form)
    except CallError as error:
        if error.kind == "error":
            return [error] * len(entries)
    left = [number for number in range(len(entries)) if number not in verdicts]
    again = await together([_alone(entries[number], form) for number in left]) if left else []
    rest = dict(zip(left, again, strict=True))
    return [
        verdicts[number] if number in verdicts else rest[number] for number in range(len(entries))
    ]


def names_something(text: str) -> bool:
    """Whether a field that may stay empty is filled; models write "none" there too."""
    return has_content(text) and " ".join(words(text)) not in _NOTHING


async def _alone(entry: Entry, form: Form[R, V]) -> SignedVerdict[V]:
    [name] = names = _names([entry], form)

    def broken_rule(reply: R) -> str | None:
        verdicts = form.verdicts(reply)
        if [verdict.id for verdict in verdicts] != names:
            return f"expected exactly one entry, with the id {name!r}"
        return form.broken_rule(verdicts[0])

    reply = await form.asker.ask(_holes(names, [entry], form), form.reply_type, broken_rule)
    return SignedVerdict(form.verdicts(reply.value)[0], form.asker.provenance(reply.reply))


async def _together(entries: Sequence[Entry], form: Form[R, V]) -> dict[int, SignedVerdict[V]]:
    """Return the verdicts that can be used, by the place of their entry."""
    names = _names(entries, form)
    by_name = dict(zip(names, entries, strict=True))
    reply = await form.asker.ask(
        _holes(names, entries, form),
        form.reply_type,
        lambda reply: _slipped(form.verdicts(reply), by_name),
        Way(more_tokens=form.tokens_each * (len(entries) - 1)),
    )
    verdicts = form.verdicts(reply.value)
    said = [verdict.id for verdict in verdicts]
    return {
        names.index(verdict.id): SignedVerdict(verdict, form.asker.provenance(reply.reply))
        for verdict in verdicts
        if said.count(verdict.id) == 1
        and _mark(verdict) == by_name[verdict.id].mark
        and form.broken_rule(verdict) is None
    }


def _slipped(verdicts: Sequence[Verdict], by_name: Mapping[str, Entry]) -> str | None:
    """Return the rule that is broken where verdicts stand under others' ids; then none counts."""
    if not verdicts:
        return "the list is empty; each question gets exactly one entry"
    marks = {entry.mark: name for name, entry in by_name.items()}
    for verdict in verdicts:
        if verdict.id not in by_name:
            return f"no question has the id {verdict.id!r}; the ids are {', '.join(by_name)}"
        own = marks.get(_mark(verdict), verdict.id)
        if own != verdict.id:
            return f"under the id {verdict.id!r} stands the question of {own!r}"
    return None


def _mark(verdict: Verdict) -> tuple[str, ...]:
    return tuple(words(verdict.question))


def _holes(names: Sequence[str], entries: Sequence[Entry], form: Form[R, V]) -> dict[str, str]:
    listed = [{"id": name, **entry.shown} for name, entry in zip(names, entries, strict=True)]
    return {form.hole: json.dumps(listed, ensure_ascii=False)}


def _names(entries: Sequence[Entry], form: Form[R, V]) -> list[str]:
    """Return an id for each entry that no text can foresee, because all of them decide it."""
    content = json.dumps([form.hole, *(dict(entry.shown) for entry in entries)])
    names: dict[str, None] = {}
    number = 0
    while len(names) < len(entries):
        names[hashlib.sha256(f"{number}\n{content}".encode()).hexdigest()[:5]] = None
        number += 1
    return list(names)
