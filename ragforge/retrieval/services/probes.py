"""Probing a service with one question: what was sent, what came, and what was understood of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Literal, Protocol

from ragforge.deferred import dataclass
from ragforge.errors import CallError, DataError, EndpointError
from ragforge.http_service import read_json
from ragforge.records import Hit
from ragforge.retrieval import ContextPassage, SystemAnswer
from ragforge.retrieval.services.client import Exchange, ServiceClient
from ragforge.retrieval.services.retriever import Result, ServiceRetriever
from ragforge.retrieval.services.shapes import (
    PathProposal,
    propose_answer,
    propose_fields,
    propose_results,
)
from ragforge.retrieval.services.streams import MIME
from ragforge.retrieval.services.system import ServiceSystem

State = Literal["understood", "not understood", "failed"]


@dataclass(frozen=True, slots=True)
class Probe:
    """What one question to a service showed; nothing of it is secret.

    Args:
        where: The section of the settings.
        question: What was asked.
        state: Whether a good reply came, and could be read.
        exchanges: Requests with their replies, one for each attempt and page.
        results: What a retriever found.
        answer: What a system said; None where it is a retriever, or nothing came.
        reason: Why it failed, or could not be read; "" where it was understood.
        missing: Fields of results or contexts that no path finds.
        proposals: Paths that may find what is missing.
        places: What each result is in a set, where one was given; see `PlaceOf`.
        settings: Those of an address, with what was set and what is proposed, to be put into a
            file; empty for a service that has a name.
    """

    where: str
    question: str
    state: State
    exchanges: tuple[Exchange, ...] = ()
    results: tuple[Result, ...] = ()
    answer: SystemAnswer | None = None
    reason: str = ""
    missing: tuple[str, ...] = ()
    proposals: tuple[PathProposal, ...] = ()
    places: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


class PlaceOf(Protocol):
    """Tells what a hit is in a set."""

    def __call__(self, hit: Hit, /) -> str:
        """Return the id of its chunk, or where its text stands, in words."""


async def probe_retriever(
    retriever: ServiceRetriever, question: str, k: int, place_of: PlaceOf | None = None
) -> Probe:
    """Return what a question to a retriever shows; a failure is shown, and not raised.

    Args:
        retriever: Is asked.
        question: The question.
        k: How many results.
        place_of: Tells what a hit is in the set that the retriever was given.
    """
    exchanges: list[Exchange] = []
    where = retriever.client.where
    try:
        results = await retriever.results(question, k, exchanges.append)
    except (CallError, EndpointError) as error:
        failed = _failed(where, question, error, _fit(retriever.client, exchanges))
        return _with_proposals(failed, propose_results)
    missing = [
        name
        for name in ("id", "text", "document", "score")
        if results and all(getattr(result, name) is None for result in results)
    ]
    shown = _fit(retriever.client, exchanges)
    value = _json_of(shown)
    items = retriever.items(value) if value is not None else []
    proposals = [item for item in propose_fields(items) if item.setting in missing]
    state: State = "understood"
    reason = ""
    places: list[str] = []
    try:
        # What has an id or a text is a hit, in some set or in none.
        for result in results if place_of else _bare(results):
            hit = next(iter(retriever.read([result], question, 1)), None)
            places += [place_of(hit) if hit else "nowhere"] if place_of else []
    except DataError as error:
        state = "not understood"
        reason = retriever.client.secrets.mask_message(str(error))
        proposals = propose_results(value)
    return Probe(
        where=where,
        question=question,
        state=state,
        reason=reason,
        exchanges=shown,
        results=tuple(_masked(result, retriever.client) for result in results),
        missing=tuple(missing),
        proposals=tuple(proposals),
        places=tuple(places),
    )


def _bare(results: Iterable[Result]) -> Iterator[Result]:
    """Yield the results whose fields are not known, such as pairs of an id and a score."""
    return (result for result in results if not (result.id or result.text))


async def probe_system(system: ServiceSystem, question: str) -> Probe:
    """Return what a question to a system shows, likewise."""
    exchanges: list[Exchange] = []
    where = system.client.where
    try:
        answer = await system.answer(question, exchanges.append)
    except (CallError, EndpointError) as error:
        failed = _failed(where, question, error, _fit(system.client, exchanges))
        return _with_proposals(failed, propose_answer)
    probe = Probe(
        where=where,
        question=question,
        state="understood",
        exchanges=_fit(system.client, exchanges),
        answer=_masked_answer(answer, system.client),
    )
    if answer.context:
        return probe
    probe = replace(probe, missing=("contexts",))
    with_paths = _with_proposals(probe, propose_answer)
    fitting = [item for item in with_paths.proposals if item.setting != "answer"]
    return replace(with_paths, proposals=tuple(fitting))


def _failed(where: str, question: str, error: Exception, exchanges: tuple[Exchange, ...]) -> Probe:
    is_read = isinstance(error, CallError) and error.kind == "invalid"
    state: State = "not understood" if is_read and exchanges else "failed"
    return Probe(where, question, state, exchanges, reason=str(error))


def _with_proposals(probe: Probe, propose: Callable[[object], list[PathProposal]]) -> Probe:
    """Return a probe with the paths that its last reply lets hope for."""
    value = _json_of(probe.exchanges)
    if probe.state == "failed" or value is None:
        return probe
    return replace(probe, proposals=tuple(propose(value)))


def _json_of(exchanges: Sequence[Exchange]) -> object:
    """Return the JSON of the last reply; None where there is none."""
    if exchanges and exchanges[-1].content_type != MIME:
        with suppress(ValueError):
            return read_json(exchanges[-1].text)
    return None


def _masked(result: Result, client: ServiceClient) -> Result:
    """Return a result as it can be shown."""

    def mask(text: str | None) -> str | None:
        return None if text is None else client.secrets.mask_message(text)

    return replace(
        result, id=mask(result.id), text=mask(result.text), document=mask(result.document)
    )


def _masked_answer(answer: SystemAnswer, client: ServiceClient) -> SystemAnswer:
    """Return an answer as it can be shown, likewise."""
    mask = client.secrets.mask_message
    passages = (
        ContextPassage(*(tuple(map(mask, part)) for part in (each.ids, each.texts, each.doc_ids)))
        for each in answer.context
    )
    return SystemAnswer(mask(answer.text), tuple(passages))


def _fit(client: ServiceClient, exchanges: Sequence[Exchange]) -> tuple[Exchange, ...]:
    """Return exchanges as they can be shown: without short secrets as well."""
    return tuple(
        replace(exchange, text=client.secrets.mask_message(exchange.text)) for exchange in exchanges
    )
