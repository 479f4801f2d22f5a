"""Chat requests and replies, the protocol of models, and the keys of calls."""

import json
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Literal, Protocol

from ragforge.deferred import dataclass, hashlib
from ragforge.errors import CallError
from ragforge.records.record import MOCK_FINGERPRINT

KEY_VERSION = 2
"""Grows when the meaning of a call key changes."""

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model, complete: equal requests deserve equal replies.

    Args:
        messages: The turns, the system's first.
        schema_name: Name of the reply's schema, letters, digits and underscores.
        schema: JSON schema of the reply; whether the endpoint can enforce it is its affair.
        temperature, seed, max_output_tokens: Sampling; see `ModelSettings`.
        vote: Which of several independent replies to the same question this is.
        permutation: Which order of what is shown this is.
        prompt_sha256: Digest of the prompt file the messages were made from.
        extra: Further fields of the body, as the user wants them.
        logprobs: Alternatives to ask for at each token, with their probabilities; 0 for none.
        since: The drift of a judge since which it is asked; replies of before answer others.
    """

    messages: tuple[Message, ...]
    schema_name: str
    schema: Mapping[str, object]
    temperature: float = 0.0
    seed: int = 0
    max_output_tokens: int = 1024
    vote: int = 0
    permutation: int = 0
    prompt_sha256: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    logprobs: int = 0
    since: str = ""


_KEY_FIELDS = tuple(
    field.name
    for field in fields(ChatRequest)
    if field.name not in ("messages", "logprobs", "since")
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the endpoint counted them or, where it did not, as estimated."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Numeral:
    """A digit that is a token of its own, with what the model might have said in its place.

    Args:
        at: Offset of the digit in the text of the reply.
        logprobs: Natural logarithm of the probability of each alternative token, blanks around it
            taken off.
    """

    at: int
    logprobs: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The reply of a model.

    Args:
        text: The content, "" where there is none.
        finish_reason: The endpoint's word: `stop`, `length`, `content_filter`, …
        refusal: The model's refusal where it comes apart from the content, else "".
        model: The model's name as the endpoint gives it.
        fingerprint, reply_id: What the endpoint gives to tell its set-up and its replies apart.
        numerals: Its digits, where probabilities were asked for and given.
        latency_s: Seconds from sending to the last byte, of the attempt that succeeded.
        key: Key in the call store.
        cached: Whether it comes from the store and cost nothing now.
    """

    text: str
    finish_reason: str = "stop"
    refusal: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    fingerprint: str = ""
    reply_id: str = ""
    numerals: tuple[Numeral, ...] = ()
    latency_s: float = 0.0
    key: str = ""
    cached: bool = False

    @property
    def is_mock(self) -> bool:
        """Whether `ragforge mock` made it up, in the place of a model."""
        return self.fingerprint == MOCK_FINGERPRINT


class DryRunError(CallError):
    """A call that a dry run did not make."""

    def __init__(self) -> None:
        super().__init__("error", "not asked: dry run")


class ChatModel(Protocol):
    """Anything that answers chat requests. Wrappers (store, retry, budget) are ChatModels too."""

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: This request failed for good; others may succeed.
            EndpointError: No request can succeed (key refused, unknown model, endpoint down).
            BudgetError: The limit on calls, tokens or money is reached.
        """


def call_key(endpoint: str, model: str, request: ChatRequest) -> str:
    """Return the key of a call: equal for equal questions to the same model, and only then.

    The API key is no part of it, nor how the endpoint is made to hold to the schema.
    """
    asked = {
        "version": KEY_VERSION,
        "endpoint": endpoint,
        "model": model,
        **{name: getattr(request, name) for name in _KEY_FIELDS},
        "messages": [(turn.role, turn.content) for turn in request.messages],
    }
    if request.logprobs:
        asked["logprobs"] = request.logprobs
    if request.since:
        asked["since"] = request.since
    text = json.dumps(asked, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def estimate_tokens(request: ChatRequest) -> int:
    """Estimate the prompt tokens of a request: four characters a token, two for non-ASCII text."""
    text = "".join(message.content for message in request.messages)
    wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return (len(text) - wide) // 4 + wide // 2 + 4 * len(request.messages)
