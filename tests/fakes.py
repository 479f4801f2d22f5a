"""Fakes that obey the protocols of the package."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ragforge.llm.chat import ChatReply, ChatRequest, Message
from ragforge.observe import Event
from ragforge.testing import ScriptedModel


@dataclass
class FunctionModel:
    """A ChatModel that computes its replies."""

    reply: Callable[[ChatRequest], ChatReply]
    asked: list[ChatRequest] = field(default_factory=list)

    async def ask(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return self.reply(request)


@dataclass
class Recorder:
    """An observer that keeps what it is told."""

    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def named(self, name: str) -> list[Event]:
        """Return the events of one name."""
        return [event for event in self.events if event.name == name]


def saying(*texts: str) -> ScriptedModel:
    """Return a model that says these texts in turn."""
    return ScriptedModel([ChatReply(text) for text in texts])


def request(text: str = "hello", **changes: object) -> ChatRequest:
    """Return a request with one system and one user turn."""
    fields = {
        "messages": (Message("system", "be brief"), Message("user", text)),
        "schema_name": "relevance",
        "schema": {"type": "object", "properties": {"grade": {"type": "integer"}}},
        **changes,
    }
    return ChatRequest(**fields)  # type: ignore[arg-type]  # checked by whoever reads it
