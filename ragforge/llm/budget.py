"""Budgets and prices: what may be spent is reserved before a call and settled after it."""

from dataclasses import dataclass, field

from ragforge.config import BudgetSettings
from ragforge.errors import BudgetError, ConfigError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Usage, estimate_tokens


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost, in US dollars per million."""

    input_usd_per_mtok: float
    output_usd_per_mtok: float

    def cost_usd(self, usage: Usage) -> float:
        """Return what a call with that usage costs."""
        return (
            usage.prompt_tokens * self.input_usd_per_mtok
            + usage.completion_tokens * self.output_usd_per_mtok
        ) / 1e6


def find_price(model: str, base_url: str, settings: BudgetSettings) -> Price | None:
    """Return the user's price, else the price table's; None where nobody knows: never 0."""
    if settings.input_usd_per_mtok is not None and settings.output_usd_per_mtok is not None:
        return Price(settings.input_usd_per_mtok, settings.output_usd_per_mtok)
    if model.startswith("local:"):
        return None
    from genai_prices import Usage as PricedUsage  # costs half a second
    from genai_prices import calc_price

    million = PricedUsage(input_tokens=1_000_000, output_tokens=1_000_000)
    try:
        found = calc_price(million, model_ref=model, provider_api_url=base_url or None)
    except LookupError:
        return None
    return Price(float(found.input_price), float(found.output_price))


@dataclass(slots=True)
class BudgetedModel:
    """Lets a call through only if its likely cost still fits.

    The completion is reserved at the mean of the replies so far, at the request's limit before the
    first reply. Limits are exceeded at most by what is in flight.

    Args:
        inner: Makes the attempt.
        settings: The limits.
        price: None where unknown.

    Raises:
        ConfigError: A limit in dollars is set but no price is known.
    """

    inner: ChatModel
    settings: BudgetSettings
    price: Price | None
    calls: int = field(default=0, init=False)
    tokens: float = field(default=0.0, init=False)
    cost_usd: float = field(default=0.0, init=False)
    _replies: int = field(default=0, init=False)
    _completion_tokens: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.settings.max_cost_usd is not None and self.price is None:
            raise ConfigError(
                "--max-cost-usd: the price of the model is not known; give it with "
                "--input-usd-per-mtok and --output-usd-per-mtok"
            )

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request within the budget.

        Raises:
            BudgetError: It does not fit any more.
        """
        expected = self._expect(request)
        self._check(expected)
        self._book(expected, 1)
        try:
            reply = await self.inner.ask(request)
        except BaseException:
            self._book(expected, -1)
            self.calls += 1
            raise
        self._book(expected, -1)
        self._book(reply.usage, 1)
        self._replies += 1
        self._completion_tokens += reply.usage.completion_tokens
        return reply

    def _expect(self, request: ChatRequest) -> Usage:
        mean = self._completion_tokens // self._replies if self._replies else None
        completion = request.max_output_tokens if mean is None else mean
        return Usage(estimate_tokens(request), completion, estimated=True)

    def _check(self, expected: Usage) -> None:
        limits, cost = self.settings, self.price.cost_usd(expected) if self.price else 0.0
        tokens = expected.prompt_tokens + expected.completion_tokens
        if limits.max_calls is not None and self.calls >= limits.max_calls:
            raise BudgetError(f"--max-calls {limits.max_calls} is reached")
        if limits.max_tokens is not None and self.tokens + tokens > limits.max_tokens:
            raise BudgetError(
                f"--max-tokens {limits.max_tokens} is reached: {self.tokens:.0f} used"
            )
        if limits.max_cost_usd is not None and self.cost_usd + cost > limits.max_cost_usd:
            raise BudgetError(
                f"--max-cost-usd {limits.max_cost_usd:g} is reached: {self.cost_usd:.4f} spent"
            )

    def _book(self, usage: Usage, sign: int) -> None:
        self.calls += sign
        self.tokens += sign * (usage.prompt_tokens + usage.completion_tokens)
        if self.price is not None:
            self.cost_usd += sign * self.price.cost_usd(usage)
