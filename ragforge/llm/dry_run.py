"""Counting the calls of a dry run, which makes none."""

from dataclasses import dataclass, field

from ragforge.config import ModelSettings
from ragforge.errors import CallError
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatReply, ChatRequest, Usage, call_key, estimate_tokens
from ragforge.llm.store import CallStore
from ragforge.llm.store.calls import ReplyAverages

EXPECTED_REPLY_TOKENS = 150
"""What a structured reply takes on average where nothing is known yet."""

REPAIR_FACTOR = 2.0
"""Worst case: every reply needs its repair turn."""


class DryRunError(CallError):
    """A call that a dry run did not make."""

    def __init__(self) -> None:
        super().__init__("error", "not asked: dry run")


@dataclass(slots=True)
class CountingModel:
    """A model that answers only from the store, and counts calls, tokens and cost.

    Args:
        store: Replies found there cost nothing.
        endpoint, model: What the call keys are bound to.
        price: None where unknown.
        settings: Calls in flight and a minute, for the time it will take.
    """

    store: CallStore
    endpoint: str
    model: str
    price: Price | None
    settings: ModelSettings
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    most_completion_tokens: int = 0
    replies: float = 0.0
    """Calls in units of one with the usual limit on its reply."""
    _asked: set[str] = field(default_factory=set)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Count a request; equal ones are one call.

        Raises:
            DryRunError: The reply is not in the store.
        """
        key = call_key(self.endpoint, self.model, request)
        found = self.store.get(key)
        if found is not None:
            self.cached += 1
            return found
        if key not in self._asked:
            self._asked.add(key)
            self.calls += 1
            self.prompt_tokens += estimate_tokens(request)
            self.most_completion_tokens += request.max_output_tokens
            self.replies += request.max_output_tokens / self.settings.max_output_tokens
        raise DryRunError

    def estimate(self) -> dict[str, object]:
        """Return calls, tokens and money as low, expected and high; money None where unknown."""
        averages = self.store.recent_averages(self.endpoint, self.model)
        each = averages.completion_tokens if averages else EXPECTED_REPLY_TOKENS
        expected = min(int(self.replies * each), self.most_completion_tokens)
        usages = {
            "low": Usage(self.prompt_tokens, expected // 3),
            "expected": Usage(self.prompt_tokens, expected),
            "high": Usage(
                int(self.prompt_tokens * REPAIR_FACTOR),
                int(self.most_completion_tokens * REPAIR_FACTOR),
            ),
        }
        return {
            "calls": self.calls,
            "calls_high": int(self.calls * REPAIR_FACTOR),
            "cached": self.cached,
            "tokens": {
                name: usage.prompt_tokens + usage.completion_tokens
                for name, usage in usages.items()
            },
            "seconds": self._seconds(averages, self.prompt_tokens + expected),
            "cost_usd": {
                name: round(self.price.cost_usd(usage), 6) if self.price else None
                for name, usage in usages.items()
            },
        }

    def _seconds(self, averages: ReplyAverages | None, tokens: int) -> float | None:
        """Return how long the calls should take; None where neither replies nor limits tell."""
        settings = self.settings
        bounds = []
        if averages is not None:
            bounds.append(self.calls * averages.latency_s / settings.concurrency)
        if settings.requests_per_minute is not None:
            bounds.append(60 * self.calls / settings.requests_per_minute)
        if settings.tokens_per_minute is not None:
            bounds.append(60 * tokens / settings.tokens_per_minute)
        if not self.calls:
            return 0.0
        return round(max(bounds), 1) if bounds else None
