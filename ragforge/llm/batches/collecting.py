"""What came of a batch: its replies go into the call store, and what else was paid is counted."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ragforge.deferred import dataclass
from ragforge.llm.batches.records import BatchFolder, BatchRecord, read_line, read_lines
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatReply, ChatRequest, Message, Usage, estimate_tokens
from ragforge.llm.store.calls import CallStore
from ragforge.llm.wire import read_usage

if TYPE_CHECKING:
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

Took: TypeAlias = tuple[float, float, float]
"""Calls, tokens and dollars."""
NOTHING: Final[Took] = (0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Buyer:
    """Who reads, stores and pays the replies of a batch.

    Args:
        store: Where they are kept.
        endpoint: Reads them.
        price: None where unknown.
        share: What a reply costs, as a share of that price.
    """

    store: CallStore
    endpoint: "OpenAIEndpoint"
    price: Price | None
    share: float

    def cost_usd(self, usage: Usage) -> float | None:
        """Return what a reply costs; None where no price is known."""
        return self.price.cost_usd(usage) * self.share if self.price else None

    def took(self, usage: Usage) -> Took:
        """Return what a reply takes of the budget."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        return 1, tokens, self.cost_usd(usage) or 0.0

    def keep(self, record: BatchRecord, key: str, reply: ChatReply) -> None:
        """Store a reply; one that is there stays, as results may rest on it."""
        if self.store.get(key) is None:
            cost_usd = self.cost_usd(reply.usage)
            self.store.put(key, record.endpoint, record.model, reply, cost_usd)


def collect(record: BatchRecord, folder: BatchFolder, buyer: Buyer) -> BatchRecord:
    """Put the replies of a batch into the call store, and return what it came to.

    A reply that cannot be read, or was cut off on its way, was paid all the same: it counts with
    the tokens it tells, else with the most it can have taken, and among the attempts that were
    perhaps billed. It may be called again after it was interrupted.

    Args:
        record: Of the batch; its requests and replies are in the folder.
        folder: Of the batches.
        buyer: Keeps the replies.

    Raises:
        DataError: The files cannot be read, or the store cannot be written.
    """
    path = folder.replies_path(record.name)
    lines = _Lines.read(path)
    took, missing, silent = NOTHING, [], []
    for key, request in _requests(folder.requests_path(record.name)):
        found = _find(lines.bodies(path, key), request, buyer.endpoint)
        if found.usage is not None:
            took = total(took, buyer.took(found.usage))
        if found.reply is not None:
            buyer.keep(record, key, found.reply)
            continue
        missing.append(key)
        if found.usage is not None:
            buyer.store.note_unanswered(key, "the reply of a batch cannot be read")
        elif key not in lines.refused:
            silent.append((key, request))
    for key, request in silent[: lines.n_lost(record.answered)]:
        buyer.store.note_unanswered(key, "the reply of a batch was cut off")
        took = total(took, buyer.took(_most(request)))
    calls, tokens, cost_usd = took
    changes = {"calls": int(calls), "tokens": int(tokens), "cost_usd": cost_usd}
    return record.model_copy(update={"state": "collected", "missing": tuple(missing), **changes})


@dataclass(frozen=True, slots=True)
class _Found:
    """What a batch holds for a request.

    Args:
        reply: The first that can be read.
        usage: What is paid; None where there is nothing.
    """

    reply: ChatReply | None = None
    usage: Usage | None = None


def _find(
    bodies: Iterable[dict[str, Any]], request: ChatRequest, endpoint: "OpenAIEndpoint"
) -> _Found:
    usage = None
    for body in bodies:
        reply = endpoint.read(body, request)
        if reply is not None:
            return _Found(reply, reply.usage)
        usage = read_usage(body) or _most(request)
    return _Found(usage=usage)


def _most(request: ChatRequest) -> Usage:
    """Return the most that a request can take."""
    return Usage(estimate_tokens(request), request.max_output_tokens)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a file of replies.

    Args:
        places: Offsets of the replies to a request; several where it was answered twice.
        refused: Requests that have an error.
        n_replies: Lines that are replies.
        n_torn: Lines that are none and no error either.
    """

    places: Mapping[str, list[int]]
    refused: frozenset[str]
    n_replies: int
    n_torn: int

    @classmethod
    def read(cls, path: Path) -> "_Lines":
        places: defaultdict[str, list[int]] = defaultdict(list)
        refused = set()
        whole = 0
        for offset, line in read_lines(path):
            whole += 1
            key = str(line["custom_id"])
            if reply_body(line) is None:
                refused.add(key)
            else:
                places[key].append(offset)
        with path.open("rb") as stream:
            n_lines = sum(not line.isspace() for line in stream)
        n_replies = sum(map(len, places.values()))
        return cls(dict(places), frozenset(refused), n_replies, n_lines - whole)

    def n_lost(self, answered: int | None) -> int:
        """Return how many replies are not in the file, of those that the provider counts."""
        return max(0, self.n_torn, (answered or 0) - self.n_replies)

    def bodies(self, path: Path, key: str) -> Iterator[dict[str, Any]]:
        """Yield the replies to a request."""
        for offset in self.places.get(key, ()):
            body = reply_body(read_line(path, offset))
            if body is not None:
                yield body


def reply_body(line: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the body of a reply in a line, {} where it is no object; None where it is an error."""
    response = line.get("response")
    if not isinstance(response, dict) or response.get("status_code") != 200:
        return None
    body = response.get("body")
    return body if isinstance(body, dict) else {}


def _requests(path: Path) -> Iterator[tuple[str, ChatRequest]]:
    """Yield the requests of a batch with their call keys."""
    for _, line in read_lines(path):
        yield str(line["custom_id"]), _request(line.get("body"))


def _request(body: object) -> ChatRequest:
    """Return what a body asks, as far as its reply is read by it."""
    fields = body if isinstance(body, dict) else {}
    turns = tuple(Message(turn["role"], turn["content"]) for turn in fields.get("messages", ()))
    most = fields.get("max_completion_tokens") or fields.get("max_tokens") or 0
    logprobs = fields.get("top_logprobs") or 0
    return ChatRequest(turns, "", {}, max_output_tokens=most, logprobs=logprobs)


def request_line(key: str, body: bytes) -> bytes:
    """Return the line of a request in the file of a batch."""
    head = json.dumps({"custom_id": key, "method": "POST", "url": "/v1/chat/completions"})
    return b'%s,"body":%s}\n' % (head[:-1].encode(), body)


def total(one: Took, other: Took) -> Took:
    """Return the sum of what two things took."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
