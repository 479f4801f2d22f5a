"""Telling an observer of each call."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from ragforge.errors import CallError, UsageError
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, estimate_tokens
from ragforge.llm.embeddings import EMBEDDINGS
from ragforge.llm.faults import AttemptError
from ragforge.llm.flow.pacer import Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.structured import wrapping
from ragforge.observe import Event, Observer


@dataclass(frozen=True, slots=True)
class PacedModel:
    """Sends a call when its turn has come, and tells the pacer how it ended.

    Args:
        inner: Makes the attempt.
        pacer: Shared by all that ask the same endpoint and model with the same key.
    """

    inner: ChatModel
    pacer: Pacer

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Make one attempt.

        Raises:
            AttemptError: It failed; while the endpoint is down, in a way that does not count.
        """
        pacer, prompt_tokens = self.pacer, float(estimate_tokens(request))
        ticket = await pacer.admit(prompt_tokens)
        try:
            reply = await self.inner.ask(request)
        except AttemptError as error:
            if error.fault == "rate":
                pacer.rejected(ticket, error.retry_after_s)
            elif error.fault == "transient":
                error.counted = not pacer.failed(ticket, str(error), unreachable=error.unreachable)
            else:
                pacer.answered(ticket)
            raise
        except Exception:
            pacer.answered(ticket)
            raise
        except BaseException:
            pacer.abandoned(ticket)
            raise
        usage = reply.usage
        used = float(usage.prompt_tokens + usage.completion_tokens)
        pacer.accepted(ticket, used, float(usage.completion_tokens))
        return reply


@dataclass(frozen=True, slots=True)
class ObservedModel:
    """Tells an observer of each call; of embeddings without the texts, which are the corpus.

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
        numbers |= self._taken(reply)
        labels["reply_model"] = reply.model
        labels["reply_id"] = reply.reply_id
        labels["finish_reason"] = reply.finish_reason
        labels["wrapping"] = wrapping(reply.text) if is_chat else ""
        turns = (*turns, ("assistant", reply.text)) if is_chat else ()
        outcome: Literal["cached", "done"] = "cached" if reply.cached else "done"
        self.observer(Event("call", "", outcome, "", numbers, labels, turns))
        return reply

    def _taken(self, reply: ChatReply) -> dict[str, float]:
        taken = {"latency_s": reply.latency_s}
        if not reply.usage.estimated:
            taken["prompt_tokens"] = float(reply.usage.prompt_tokens)
            taken["completion_tokens"] = float(reply.usage.completion_tokens)
        if self.price is not None and not reply.cached:
            taken["cost_usd"] = self.price.cost_usd(reply.usage)
        return taken
