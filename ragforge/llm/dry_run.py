"""Counting what a run would ask, without asking."""

from dataclasses import dataclass

from ragforge.errors import CallError
from ragforge.llm.budget import Price
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Usage, estimate_tokens

EXPECTED_REPLY_TOKENS = 150
"""What a structured reply takes on average where nothing is known yet."""

REPAIR_FACTOR = 2.0
"""Worst case: every reply needs its repair turn."""


class DryRunError(CallError):
    """A call that a dry run did not make."""

    def __init__(self) -> None:
        super().__init__("error", "not asked: dry run")


@dataclass(slots=True)
class Tally:
    """A ChatModel that answers nothing and counts everything.

    Args:
        store: What would be asked first; replies found there cost nothing.
        price: None where unknown.
    """

    store: ChatModel
    price: Price | None
    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    most_completion_tokens: int = 0

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Count a request.

        Raises:
            DryRunError: The reply is not in the store.
        """
        try:
            reply = await self.store.ask(request)
        except DryRunError:
            self.calls += 1
            self.prompt_tokens += estimate_tokens(request)
            self.most_completion_tokens += request.max_output_tokens
            raise
        self.cached += 1
        return reply

    def estimate(self) -> dict[str, object]:
        """Return calls, tokens and money as low, expected and high; money None where unknown."""
        expected = min(self.calls * EXPECTED_REPLY_TOKENS, self.most_completion_tokens)
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
            "cost_usd": {
                name: round(self.price.cost_usd(usage), 6) if self.price else None
                for name, usage in usages.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Unasked:
    """A ChatModel that is never reached in earnest."""

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Refuse.

        Raises:
            DryRunError: Always.
        """
        raise DryRunError
