"""A RAG system that settings describe: its answer by paths, or piece by piece out of a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Final

from ragforge.config import SystemService
from ragforge.deferred import dataclass, pattern
from ragforge.errors import CallError, EndpointError
from ragforge.files.text import is_unicode
from ragforge.http_service import read_json
from ragforge.records.model import JsonValue
from ragforge.retrieval import ContextPassage, SystemAnswer
from ragforge.retrieval.object_fields import Note, document_names_of, ignore_note
from ragforge.retrieval.rag_systems import read_answer, usd_of
from ragforge.retrieval.services.client import Exchange, OnExchange, ServiceClient
from ragforge.retrieval.services.dialects import ServicePlan, plan_of
from ragforge.retrieval.services.paths import ReplyPath, describe
from ragforge.retrieval.services.retriever import pass_over, refuse_other_query
from ragforge.retrieval.services.streams import DONE, MIME, StreamEvent, each_event

_ERROR_EVENT: Final = "error"
_CUT: Final = "length"
_ASIDE: Final = pattern(r"reasoning|thinking|tool|function_call|mcp_call|[._-]done\Z|[._-]end\Z")
"""Types of events of OpenAI's Responses API and the AI SDK that hold no piece of an answer."""
_STATUS: Final = pattern(
    r"(?:\A|[._-])(?:status|progress|search|searching|retrieval|retrieving|heartbeat|ping|logs?)"
    r"(?:[._-]|\Z)"
)
"""Types of events that say what a system is doing."""
_CUT_OFF: Final = "an answer was cut off at the service's limit of tokens, and is graded as it came"


class ServiceSystem:
    """Asks a RAG system that settings describe.

    Args:
        name: Of the service in the settings.
        service: Its settings.
        client: Sends the requests; made of the settings where None.
        timeout_s: Of one request, where the settings do not say.
        note: Takes sentences for the user.

    Raises:
        ConfigError: The settings cannot be used, see `ServiceClient`.
    """

    def __init__(
        self,
        name: str,
        service: SystemService,
        *,
        client: ServiceClient | None = None,
        timeout_s: float = 120.0,
        note: Note = ignore_note,
    ) -> None:
        where = f"systems.{name}"
        plan = plan_of(service)
        self.client = client or ServiceClient(where, service, plan, timeout_s=timeout_s, note=note)
        self._reader = _AnswerReader(where, plan, self.client)
        self._usd_per_query = service.usd_per_query

    @property
    def takes_contexts(self) -> bool:
        """Whether its request holds the `{contexts}` that it is to answer from."""
        return "contexts" in self.client.holes

    async def answer(self, query: str, on_exchange: OnExchange = pass_over) -> SystemAnswer:
        """Return the answer of the service, which retrieves by itself.

        Raises:
            CallError: `error` where no good reply came, `invalid` where it cannot be read.
            EndpointError: Its credentials are not taken, or it wants contexts.
        """
        if self.takes_contexts:
            raise EndpointError(
                f"{self.client.where}: its request holds {{contexts}}, which a sweep gives it; "
                "there are none here"
            )
        return await self._asked({"query": query}, on_exchange)

    async def answer_from(self, query: str, contexts: Sequence[str]) -> SystemAnswer:
        """Return the answer of the service, which was given contexts.

        Raises:
            CallError, EndpointError: As for `answer`.
        """
        return await self._asked({"query": query, "contexts": list(contexts)}, pass_over)

    async def _asked(
        self, values: Mapping[str, JsonValue], on_exchange: OnExchange
    ) -> SystemAnswer:
        try:
            exchange = await self.client.ask(values, on_exchange)
        except CallError as error:
            raise self.client.without_secrets(error) from None
        try:
            answer = self._reader.read(exchange, str(values["query"]))
        except CallError as error:
            told = CallError(error.kind, str(error), error.raw or exchange.start)
            raise self.client.without_secrets(told) from None
        ids = (name for passage in answer.context for name in passage.ids)
        if not all(map(is_unicode, (answer.text, *ids))):
            raise CallError(
                "invalid",
                f"{self.client.where}: the answer holds half a surrogate pair",
                exchange.start,
            )
        if answer.cost_usd is None:
            return replace(answer, cost_usd=self._usd_per_query)
        return answer


class _AnswerReader:
    def __init__(self, where: str, plan: ServicePlan, client: ServiceClient) -> None:
        self._where = where
        self._client = client
        self._answer = ReplyPath(plan.answer, f"{where}.answer")
        self._contexts = ReplyPath(plan.contexts, f"{where}.contexts")
        self._delta = ReplyPath(plan.delta, f"{where}.delta")
        self._is_own_delta = plan.delta != ServicePlan().delta
        self._cost = ReplyPath(plan.cost, f"{where}.cost")
        self._echo = ReplyPath(plan.echo, f"{where}.echo")
        self._id = ReplyPath(plan.id, f"{where}.id")
        self._text = ReplyPath(plan.text, f"{where}.text")
        self._document = ReplyPath(plan.document, f"{where}.document")

    def read(self, exchange: Exchange, query: str) -> SystemAnswer:
        """Return the answer of a reply.

        Raises:
            CallError: It holds none.
        """
        if exchange.content_type == MIME:
            return self._of_stream(exchange)
        value = self._client.json(exchange)
        answer = replace(self._whole_answer(value, exchange), cost_usd=self._cost_of(value))
        refuse_other_query(self._client, self._echo, value, query, answer.text)
        if isinstance(value, Mapping) and _finish_reason(value.get("choices")) == _CUT:
            self._client.tell_once(_CUT_OFF)
        return answer

    def _whole_answer(self, value: object, exchange: Exchange) -> SystemAnswer:
        if not self._answer:
            answer = read_answer(value, self._where, exchange.start)
            return SystemAnswer(answer.text, self._passages(value)) if self._contexts else answer
        text = self._answer.scalar(value)
        if text is None:
            raise CallError(
                "invalid",
                f"{self._answer.where} = {self._answer.expression!r}: matches nothing in the "
                f"reply, which is {describe(value)}",
            )
        return SystemAnswer(text, self._passages(value))

    def _of_stream(self, exchange: Exchange) -> SystemAnswer:
        answer = _Streamed()
        for event in each_event(exchange.text):
            if event.data == DONE:
                answer.is_open = False
                break
            self._take(answer, self._named(event.name, self._value(event, exchange)))
        if answer.is_open:
            raise CallError("invalid", f"{self._where}: the stream broke off before its end")
        if not (answer.wholes or answer.pieces):
            raise CallError(
                "invalid",
                f"{self._where}: no event of the stream holds a piece of an answer; "
                f"{self._where}.delta says where in an event it stands",
            )
        if answer.is_cut:
            self._client.tell_once(_CUT_OFF)
        return SystemAnswer(answer.text, answer.context, answer.cost_usd)

    def _named(self, name: str, value: object) -> object:
        """Return what an event holds with its name, by which paths and types tell events apart."""
        if not name:
            return value
        if isinstance(value, Mapping):
            return {"event": name, **value}
        is_told = self._is_own_delta or _is_aside({"event": name})
        return {"event": name, "data": value} if is_told and isinstance(value, str) else value

    def _take(self, answer: "_Streamed", value: object) -> None:
        """Take what one event holds."""
        if isinstance(value, str):
            answer.pieces.append(value)
            return
        if isinstance(value, Mapping) and (choices := value.get("choices")):
            reason = _finish_reason(choices)
            answer.is_open = reason is None
            answer.is_cut = answer.is_cut or reason == _CUT
        delta, whole = self._delta.find(value), self._whole(value)
        if isinstance(delta, str):
            if self._is_own_delta or not _is_aside(value):
                answer.pieces.append(delta)
        elif isinstance(whole, str) and (self._answer or not _is_status(value)):
            if isinstance(value, Mapping) and value.get("event") == "message_replace":
                answer.wholes.clear()
                answer.pieces.clear()
            answer.wholes.append(whole)
        answer.context = self._passages(value) or self._usual_passages(value) or answer.context
        cost_usd = self._cost_of(value)
        answer.cost_usd = answer.cost_usd if cost_usd is None else cost_usd

    def _cost_of(self, value: object) -> float | None:
        """Return what an answer cost; a path that fails takes no answer away, and is told."""
        try:
            return usd_of(self._cost.find(value))
        except CallError as error:
            self._client.tell_once(f"what answers cost is not known: {error}")
            return None

    def _whole(self, value: object) -> object:
        if self._answer:
            return self._answer.find(value)
        return value.get("answer") if isinstance(value, Mapping) else None

    def _usual_passages(self, value: object) -> tuple[ContextPassage, ...]:
        """Return the passages of an event where no path says where they stand."""
        if self._contexts or self._answer or not isinstance(value, Mapping):
            return ()
        return read_answer({**value, "answer": ""}, self._where).context

    def _value(self, event: StreamEvent, exchange: Exchange) -> object:
        """Return the JSON of an event, or its text where it is none.

        Raises:
            CallError: It tells of an error, or is half of what it should be.
        """
        if event.name == _ERROR_EVENT:
            raise CallError(
                "error", f"{self._where}: the stream tells of an error: {event.data[:200]}"
            )
        try:
            value = read_json(event.data)
        except ValueError as error:
            if event.data.startswith(("{", "[")):
                raise CallError(
                    "invalid", f"{self._where}: the stream broke off within an event"
                ) from error
            return event.data
        self._client.refuse_error(value, exchange)
        # A plain text may be a number, and is one piece among others.
        return value if isinstance(value, Mapping | list | str) else event.data

    def _passages(self, value: object) -> tuple[ContextPassage, ...]:
        if not self._contexts or self._contexts.find(value) is None:
            return ()
        return tuple(self._passage(item) for item in self._contexts.listed(value))

    def _passage(self, item: object) -> ContextPassage:
        if isinstance(item, str):
            return ContextPassage((item,), (item,), (item,))
        if not (self._id or self._text or self._document):
            [passage] = read_answer(("", [item]), self._where).context
            return passage
        told = [path.scalar(item) for path in (self._id, self._text, self._document)]
        ids, texts, names = ((value,) if value else () for value in told)
        passage = ContextPassage(ids, texts, names or tuple(document_names_of(item)))
        if not (passage.ids or passage.texts or passage.doc_ids):
            raise CallError(
                "invalid",
                f"{self._where}: the paths id, text and document match nothing in a passage of "
                f"contexts, which is {describe(item)}",
            )
        # Where a passage is known by its document alone, that is the chunk.
        return passage if ids or texts else ContextPassage(passage.doc_ids[:1], (), passage.doc_ids)


@dataclass(slots=True)
class _Streamed:
    """An answer while it comes.

    Args:
        pieces: Of its text.
        wholes: What events hold where the answer stands: all of it, all so far, or a piece each.
        context: Its passages, as the last event that has any tells them.
        is_open: Whether more must come; an event without choices, as of usage, ends nothing.
        is_cut: Whether it was cut off at a limit of length.
        cost_usd: What it cost, as the last event that tells it does.
    """

    pieces: list[str] = field(default_factory=list)
    wholes: list[str] = field(default_factory=list)
    context: tuple[ContextPassage, ...] = ()
    is_open: bool = False
    is_cut: bool = False
    cost_usd: float | None = None

    @property
    def text(self) -> str:
        """The answer; where each event holds a piece under its name, all of them in one."""
        if not self.wholes:
            return "".join(self.pieces)
        said = [whole for whole in self.wholes if whole.strip()]
        pairs = list(pairwise(whole.rstrip() for whole in said))
        if sum(len(later) > len(earlier) for earlier, later in pairs[:-1]) > 1:
            pairs.pop()  # What grew may have other marks of sources at last.
        if pairs and all(later.startswith(earlier) for earlier, later in pairs):
            return said[-1]
        *before, last = self.wholes
        joined = "".join(before)
        return last if last.strip() == joined.strip() else joined + last


def _is_aside(event: object) -> bool:
    """Whether an event calls itself a thought or a call of a tool, or repeats what was streamed."""
    return _is_status(event) or any(map(_ASIDE.search, _types_of(event)))


def _is_status(event: object) -> bool:
    """Whether an event calls itself one that says what a system is doing."""
    return any(map(_STATUS.search, _types_of(event)))


def _types_of(event: object) -> list[str]:
    given = [event.get("type"), event.get("event")] if isinstance(event, Mapping) else []
    return [name for name in given if isinstance(name, str)]


def _finish_reason(choices: object) -> object:
    """Return why the first choice of a chat completion ended; None where more must come."""
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    return choices[0].get("finish_reason")
