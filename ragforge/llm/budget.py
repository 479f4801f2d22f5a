"""Budgets and prices: what may be spent is reserved before a call and settled after it."""

import ipaddress
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from ragforge.config import BudgetSettings
from ragforge.deferred import dataclass
from ragforge.errors import BudgetError, ConfigError, DataError, StoppedError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Usage, estimate_tokens
from ragforge.llm.retries import AttemptError

if TYPE_CHECKING:
    import asyncio


def _event() -> "asyncio.Event":
    import asyncio  # Most commands ask nothing, and need not wait for it.

    return asyncio.Event()


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost, in US dollars per million."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float

    def cost_usd(self, usage: Usage) -> float:
        """Return the cost of a call with that usage."""
        return (
            usage.prompt_tokens * self.input_usd_per_mtok
            + usage.completion_tokens * self.output_usd_per_mtok
        ) / 1e6


_OPENAI = ("", "https://api.openai.com/v1")
_PRICED_TOKENS = 1000
_EMBEDDING = {
    "text-embedding-3-small": Price(0.02, 0.0),
    "text-embedding-3-large": Price(0.13, 0.0),
    "text-embedding-ada-002": Price(0.10, 0.0),
}
"""OpenAI's own, which the price table lacks. Source: openai.com/api/pricing."""


def find_price(model: str, address: str, settings: BudgetSettings) -> Price | None:
    """Return the user's price, else the price table's; None where nobody knows: never 0.

    That of the table is of short requests; some models charge more for very long ones.
    """
    if settings.input_usd_per_mtok is not None and settings.output_usd_per_mtok is not None:
        return Price(settings.input_usd_per_mtok, settings.output_usd_per_mtok)
    if model.startswith("local:") or _is_of_no_provider(address):
        return None
    from genai_prices import Usage as PricedUsage  # It brings pydantic, and a long table.
    from genai_prices import calc_price

    usage = PricedUsage(input_tokens=_PRICED_TOKENS, output_tokens=_PRICED_TOKENS)
    try:
        found = calc_price(usage, model_ref=model, provider_api_url=address or None)
    except LookupError:
        return _EMBEDDING.get(model) if address.rstrip("/") in _OPENAI else None
    to_million = 1_000_000 // _PRICED_TOKENS
    return Price(float(found.input_price * to_million), float(found.output_price * to_million))


def _is_of_no_provider(address: str) -> bool:
    """Whether an address has no domain: those of providers, whose prices are known, have one."""
    host = urlsplit(address).hostname
    if host is None or "." not in host:
        return host is not None
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return False


def require_price(price: Price | None, settings: BudgetSettings) -> None:
    """Refuse a limit in dollars for a model whose price nobody knows.

    Raises:
        ConfigError: There is one.
    """
    if settings.max_cost_usd is not None and price is None:
        raise ConfigError(
            "--max-cost-usd: the price of the model is not known; give it with "
            "--input-usd-per-mtok and --output-usd-per-mtok"
        )


@dataclass(frozen=True, slots=True)
class _Amount:
    """Tokens, in and out, and dollars (0 where the price is unknown and so not limited)."""

    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "_Amount") -> "_Amount":
        return _Amount(self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: "_Amount") -> "_Amount":
        return _Amount(self.tokens - other.tokens, self.cost_usd - other.cost_usd)


def _unnoted(request: ChatRequest, error: AttemptError) -> None:
    """Ignore a call that was not answered."""


@dataclass(frozen=True, slots=True)
class Need:
    """What an account has to hold for one more call, as calls, tokens and dollars.

    Args:
        alone: With what was spent.
        beside: With what calls in flight can take at most, too.
    """

    alone: tuple[float, float, float]
    beside: tuple[float, float, float]


class SharedLimits(Protocol):
    """A budget that several processes draw on."""

    def granted(self, need: Need) -> BudgetSettings:
        """Return the limits of this process, raised for one more call where that may be.

        Called before each call; may block for the time of a small file.

        Raises:
            BudgetError: The call does not fit, whatever calls in flight give back.
        """
        ...


@dataclass(slots=True)
class BudgetAccount:
    """The account of one budget, with what was spent and is reserved; several models may share it.

    `calls` counts attempts, failed ones included.
    """

    calls: int = 0
    spent: _Amount = field(default_factory=_Amount)
    in_flight: int = 0
    reserved: _Amount = field(default_factory=_Amount)
    settled: "asyncio.Event" = field(default_factory=_event)
    shared_limits: SharedLimits | None = None
    """Where the limits are shared with other processes."""

    @classmethod
    def after(cls, used: tuple[float, float, float]) -> "BudgetAccount":
        """Return an account in which calls, tokens and dollars were used before."""
        calls, tokens, cost_usd = used
        return cls(calls=int(calls), spent=_Amount(int(tokens), cost_usd))

    @property
    def used(self) -> tuple[float, float, float]:
        """Calls, tokens and dollars; without what is in flight."""
        return self.calls, self.spent.tokens, self.spent.cost_usd

    def need(self, most: _Amount) -> Need:
        """Return what is needed for a call that takes so much at most."""
        alone = self.spent + most
        beside = alone + self.reserved
        calls = self.calls + 1
        return Need((calls, alone.tokens, alone.cost_usd), (calls, beside.tokens, beside.cost_usd))

    def reserve(self, most: _Amount) -> None:
        """Set aside what a call can take at most."""
        self.calls += 1
        self.in_flight += 1
        self.reserved += most

    def settle(self, most: _Amount) -> None:
        """Give back what was set aside for a call, and wake those that wait for room."""
        self.in_flight -= 1
        # Sums of fractions drift; nothing in flight is exactly nothing.
        self.reserved = self.reserved - most if self.in_flight else _Amount()
        self.settled.set()
        self.settled = _event()


@dataclass(slots=True)
class BudgetedModel:
    """Lets a call through only if the most it can take still fits.

    That is the whole reply the request allows, so that limits hold whatever comes back (but for
    prompts, whose tokens are estimated). A call that would fit if calls in flight turn out shorter
    waits for them. An attempt that failed costs what the endpoint says it charged; where it may
    have charged without saying, or the call was given up on its way, it counts as the most it can
    have taken.

    Args:
        inner: Makes the attempt.
        settings: The limits.
        price: None where unknown.
        unanswered: Told of each attempt that may have been billed for nothing.
        account: Shared with other models where all of them have one budget.

    Raises:
        ConfigError: A limit in dollars is set but no price is known.
    """

    inner: ChatModel
    settings: BudgetSettings
    price: Price | None
    unanswered: Callable[[ChatRequest, AttemptError], None] = _unnoted
    account: BudgetAccount = field(default_factory=BudgetAccount)

    def __post_init__(self) -> None:
        require_price(self.price, self.settings)

    @property
    def calls(self) -> int:
        """Attempts made, failed ones included."""
        return self.account.calls

    @property
    def tokens(self) -> int:
        """Tokens used, in and out."""
        return self.account.spent.tokens

    @property
    def cost_usd(self) -> float:
        """Dollars spent; 0 where the price is unknown."""
        return self.account.spent.cost_usd

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request within the budget.

        Raises:
            BudgetError: It does not fit any more.
        """
        most = self._amount(Usage(estimate_tokens(request), request.max_output_tokens))
        while not self._fits(most):
            await self.account.settled.wait()
        self.account.reserve(most)
        try:
            reply = await self.inner.ask(request)
            self.account.spent += self._amount(reply.usage)
        except StoppedError:
            self.account.calls -= 1  # It was never sent.
            raise
        except AttemptError as error:
            self._count(request, error, most)
            raise
        except BaseException as error:
            if not isinstance(error, Exception):
                given_up = "it was given up before its reply came"
                # Why it is given up matters more than a store that fails.
                with suppress(DataError):
                    self._count(request, AttemptError(given_up, maybe_billed=True), most)
            raise
        finally:
            self.account.settle(most)
        return reply

    def _count(self, request: ChatRequest, error: AttemptError, most: _Amount) -> None:
        """Count an attempt that gave no reply."""
        if error.usage is not None:
            self.account.spent += self._amount(error.usage)
        elif error.maybe_billed:
            self.account.spent += most
        if error.maybe_billed:
            self.unanswered(request, error)

    def _fits(self, most: _Amount) -> bool:
        """Whether a call fits beside those in flight; an error where it cannot even alone."""
        limits = self.settings
        if self.account.shared_limits is not None:
            limits = self.account.shared_limits.granted(self.account.need(most))
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise BudgetError(f"--max-calls {limits.max_calls} is reached")
        alone = self.account.spent + most
        if limits.max_tokens is not None and alone.tokens > limits.max_tokens:
            raise BudgetError(
                f"--max-tokens {limits.max_tokens} is reached: {self.tokens} used, "
                f"and the next call may take {most.tokens}"
            )
        if limits.max_cost_usd is not None and alone.cost_usd > limits.max_cost_usd:
            raise BudgetError(
                f"--max-cost-usd {limits.max_cost_usd:g} is reached: {self.cost_usd:.4f} spent, "
                f"and the next call may take {most.cost_usd:.4f}"
            )
        beside = alone + self.account.reserved
        return beside.tokens <= (limits.max_tokens or math.inf) and beside.cost_usd <= (
            limits.max_cost_usd or math.inf
        )

    def _amount(self, usage: Usage) -> _Amount:
        # Whoever answers, nothing gives back what was spent.
        usage = Usage(max(0, usage.prompt_tokens), max(0, usage.completion_tokens))
        cost_usd = self.price.cost_usd(usage) if self.price else 0.0
        return _Amount(usage.prompt_tokens + usage.completion_tokens, cost_usd)
