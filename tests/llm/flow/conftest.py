import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import virtual_time
from fakes import Recorder, request

from ragforge.llm.chat import ChatReply, ChatRequest, Usage, estimate_tokens
from ragforge.llm.flow.pacer import PacedModel, Pacer
from ragforge.llm.flow.state import Flow
from ragforge.llm.retries import AttemptError, RetryingModel, RetryPolicy
from ragforge.llm.wire import RateLimit, RateLimits

_REFUSAL_S = 0.002
_LATENCY_S = 0.2
_LATENCY_SIGMA = 0.4


@dataclass
class _Level:
    """What an endpoint has left of a limit a minute; one second's worth at most."""

    per_minute: float
    left: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.per_minute / 60

    def lacks_s(self, amount: float, now: float) -> float:
        per_s = self.per_minute / 60
        self.left, self.at = min(per_s, self.left + (now - self.at) * per_s), now
        return max(0.0, (amount - self.left) / per_s)

    def told(self) -> RateLimit:
        return RateLimit(self.per_minute, math.floor(self.left))


@dataclass
class SimulatedEndpoint:
    """A ChatModel with the limits and the faults that endpoints have, in virtual time.

    Args:
        seed: Of its latencies, lengths of replies and random refusals.
        requests_per_minute, tokens_per_minute: Limits; one second's worth may come at once.
        most_in_flight: Limit on calls at once.
        refused_share: How many calls it refuses at random.
        retry_after_s: What it says where it would take a call again after so many seconds.
        refusing, down: When it refuses, or drops, whatever arrives or is in flight.
        tells_limits: Whether replies carry headers.
    """

    seed: int = 0
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    most_in_flight: int | None = None
    refused_share: float = 0.0
    retry_after_s: Callable[[float], float | None] = lambda lacking_s: None
    refusing: tuple[float, float] = (math.inf, math.inf)
    down: tuple[float, float] = (math.inf, math.inf)
    tells_limits: bool = False
    apply_limits: Callable[[RateLimits], None] = lambda told: None
    sent: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    dropped: list[float] = field(default_factory=list)
    replied: list[float] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    """How many it had at once, itself among them, at each call it took."""

    @property
    def mean_latency_s(self) -> float:
        """The mean of the lognormal distribution that latencies are drawn from."""
        return _LATENCY_S * math.exp(_LATENCY_SIGMA**2 / 2)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._now_in_flight = 0
        limits = (self.requests_per_minute, self.tokens_per_minute)
        self._requests, self._tokens = (_Level(most) if most else None for most in limits)

    async def ask(self, request: ChatRequest) -> ChatReply:
        self.sent.append(virtual_time.now())
        self._drop_if_down()
        usage = Usage(estimate_tokens(request), int(self._rng.lognormvariate(math.log(200), 0.3)))
        lacking_s = self._lacking_s(usage.prompt_tokens + usage.completion_tokens)
        if lacking_s > 0:
            self._tell()
            await self._refuse(lacking_s)
        self._now_in_flight += 1
        self.in_flight.append(self._now_in_flight)
        self._tell()
        try:
            await asyncio.sleep(self._rng.lognormvariate(math.log(_LATENCY_S), _LATENCY_SIGMA))
        finally:
            self._now_in_flight -= 1
        self._drop_if_down()
        if self._is_refusing():
            await self._refuse(1.0)
        self.replied.append(virtual_time.now())
        return ChatReply("fine", usage=usage)

    def _lacking_s(self, tokens: float) -> float:
        crowded = self.most_in_flight is not None and self._now_in_flight >= self.most_in_flight
        if crowded or self._is_refusing() or self._rng.uniform(0, 1) < self.refused_share:
            return 1.0
        now = virtual_time.now()
        wanted = [(self._requests, 1.0), (self._tokens, tokens)]
        limits = [(level, amount) for level, amount in wanted if level is not None]
        lacking_s = max((level.lacks_s(amount, now) for level, amount in limits), default=0.0)
        if lacking_s == 0:
            for level, amount in limits:
                level.left -= amount
        return lacking_s

    def _is_refusing(self) -> bool:
        return self.refusing[0] <= virtual_time.now() < self.refusing[1]

    def _drop_if_down(self) -> None:
        if self.down[0] <= virtual_time.now() < self.down[1]:
            self.dropped.append(virtual_time.now())
            raise AttemptError("connection refused", unreachable=True)

    async def _refuse(self, lacking_s: float) -> None:
        self.refused.append(virtual_time.now())
        await asyncio.sleep(_REFUSAL_S)
        raise AttemptError("429", fault="rate", retry_after_s=self.retry_after_s(lacking_s))

    def _tell(self) -> None:
        if self.tells_limits:
            requests, tokens = (level and level.told() for level in (self._requests, self._tokens))
            self.apply_limits(RateLimits(requests, tokens))


@dataclass
class Client:
    """What asks a simulated endpoint, and what came of it."""

    endpoint: SimulatedEndpoint
    pacer: Pacer
    model: RetryingModel
    flow_told: list[tuple[float, str]] = field(default_factory=list)
    outcomes: list[object] = field(default_factory=list)
    """What each call gave or raised, in the order of their ends."""
    ended_at: float = math.nan

    @property
    def done(self) -> int:
        """Number of calls that gave a reply."""
        return sum(1 for outcome in self.outcomes if isinstance(outcome, ChatReply))

    @property
    def refused_share(self) -> float:
        return len(self.endpoint.refused) / len(self.endpoint.sent)


async def _work(client: Client, waiting: list[ChatRequest]) -> None:
    while waiting:
        try:
            client.outcomes.append(await client.model.ask(waiting.pop()))
        except Exception as error:  # noqa: BLE001  # the test looks at it
            client.outcomes.append(error)
        client.ended_at = virtual_time.now()


async def _ask_all(
    endpoint: SimulatedEndpoint,
    calls: int,
    concurrency: int,
    workers: int,
    beside: Callable[[Client], None],
    *,
    max_wait_s: float = 300.0,
    **limits: float,
) -> Client:
    flow_told: list[tuple[float, str]] = []
    pacer = Pacer(
        Flow(concurrency, virtual_time.now(), **limits),
        max_wait_s,
        lambda message: flow_told.append((virtual_time.now(), message)),
    )
    endpoint.apply_limits = pacer.apply_limits
    model = RetryingModel(PacedModel(endpoint, pacer), RetryPolicy(5), Recorder())
    client = Client(endpoint, pacer, model, flow_told)
    waiting = [request()] * calls
    beside(client)
    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(_work(client, waiting))
    pacer.close()
    return client


@pytest.fixture
def simulate():
    """Ask a simulated endpoint through retries and pacer; return what came of it.

    `beside` is called inside the loop before the first call. There are twice as many workers as
    calls that may be in flight, so that those who wait to try again leave no gap.
    """
    random_state = random.getstate()

    def ask_all(endpoint, calls, concurrency, beside=lambda client: None, **how):
        random.seed(endpoint.seed)  # tenacity's jitter comes from the shared generator
        workers = how.pop("workers", 2 * concurrency)
        return virtual_time.run(_ask_all(endpoint, calls, concurrency, workers, beside, **how))

    yield ask_all
    random.setstate(random_state)


@pytest.fixture
def endpoint():
    """Make a simulated endpoint."""
    return SimulatedEndpoint
