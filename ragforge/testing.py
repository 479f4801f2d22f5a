"""Fakes for users' own tests: they hold to the protocols and need neither network nor model."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from ragforge.deferred import dataclass
from ragforge.llm.chat import ChatReply, ChatRequest
from ragforge.records import Hit


@dataclass(slots=True)
class ScriptedModel:
    """A ChatModel that gives its replies in turn, the last one for ever.

    Args:
        replies: An exception among them is raised in its turn.
        asked: The requests that came.
    """

    replies: Sequence[ChatReply | BaseException]
    asked: list[ChatRequest] = field(default_factory=list)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Give the next reply."""
        self.asked.append(request)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply


@dataclass(frozen=True, slots=True)
class FixedRetriever:
    """A Retriever that knows what it will find.

    Args:
        found: Query text to chunk ids, best first; a query that is not in it finds nothing.
    """

    found: Mapping[str, Sequence[str]]

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the ids under falling scores."""
        ids = self.found.get(query, ())[:k]
        return [
            Hit(chunk_id=chunk_id, score=1 / rank) for rank, chunk_id in enumerate(ids, start=1)
        ]
