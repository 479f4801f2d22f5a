"""A model that tells an observer of each call."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from ragforge.errors import CallError, UsageError
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.llm.embeddings import EMBEDDINGS
from ragforge.llm.flow.state import Flow
from ragforge.llm.structured import reply_wrapping
from ragforge.observe import Event, Observer


@dataclass(frozen=True, slots=True)
class ObservedModel:
    """Sends an event of each call; of embeddings without the texts, which are the corpus.

    Args:
        inner: Asked.
        observer: Told.
        name, endpoint: What the model and its place are called.
        price: For what a call cost; None where unknown.
        flow: For how many calls are in flight; None where none is made.
    """

    inner: ChatModel
    observer: Observer
    name: str
    endpoint: str
    price: Price | None
    flow: Flow | None = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Ask in the event loop that the model was opened in.

        Raises:
            UsageError: This is another one.
        """
        if asyncio.get_running_loop() is not self.loop:
            raise UsageError(
                "this model was opened in another event loop; open one with connect() in each"
            )
        is_chat = request.schema_name != EMBEDDINGS
        labels = {"model": self.name, "endpoint": self.endpoint, "schema": request.schema_name}
        numbers = {
            "temperature": request.temperature,
            "max_output_tokens": float(request.max_output_tokens),
            "seed": float(request.seed),
        }
        if self.flow is not None:
            numbers["in_flight"] = float(self.flow.in_flight)
        turns = tuple((turn.role, turn.content) for turn in request.messages if is_chat)
        try:
            reply = await self.inner.ask(request)
        except CallError as error:
            labels["kind"] = error.kind
            self.observer(Event("call", "", "failed", str(error), numbers, labels, turns))
            raise
        numbers |= self._reply_numbers(reply)
        labels["reply_model"] = reply.model
        labels["reply_id"] = reply.reply_id
        labels["finish_reason"] = reply.finish_reason
        labels["wrapping"] = reply_wrapping(reply.text) if is_chat else ""
        turns = (*turns, ("assistant", reply.text)) if is_chat else ()
        outcome: Literal["cached", "done"] = "cached" if reply.cached else "done"
        self.observer(Event("call", "", outcome, "", numbers, labels, turns))
        return reply

    def _reply_numbers(self, reply: ChatReply) -> dict[str, float]:
        numbers = {"latency_s": reply.latency_s}
        if not reply.usage.estimated:
            numbers["prompt_tokens"] = float(reply.usage.prompt_tokens)
            numbers["completion_tokens"] = float(reply.usage.completion_tokens)
        if self.price is not None and not reply.cached:
            numbers["cost_usd"] = self.price.cost_usd(reply.usage)
        return numbers
