"""Retries: which failed attempts are repeated, after which wait, and when a call is given up."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from ragforge.errors import CallError, EndpointError
from ragforge.llm.attempt_errors import AttemptError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.observe import Event, Observer

T = TypeVar("T")

Pause = Callable[[float], Awaitable[None]]

LONGEST_WAIT_S = 60.0
"""Longest wait of one call between two attempts, whatever the endpoint asks for."""

DOWN_AFTER = 10
"""Calls that give up one after the other, none succeeding, before the endpoint counts as down."""

_LEAST_WAIT_SHARE = 0.25
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a call is tried.

    Args:
        max_attempts: Attempts in all; refusals for too many calls do not count.
        max_s: Seconds from the first failure, after which no further attempt begins, whatever the
            failures were.
        first_wait_s: Upper end of the first random wait; doubles with each attempt.
        pause: Waits so many seconds between attempts; may raise instead where the run is stopped.
    """

    max_attempts: int
    max_s: float = 3600.0
    first_wait_s: float = 0.5
    pause: Pause = asyncio.sleep


@dataclass(slots=True)
class RetryingModel:
    """Asks again while failures may pass, and stops the run when nothing gets through any more.

    Args:
        inner: Raises AttemptError for what may pass.
        policy: For each call.
        observer: Told of each retry.
    """

    inner: ChatModel
    policy: RetryPolicy
    observer: Observer
    _lost: int = field(default=0, init=False)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request, in as many attempts as it takes and is allowed."""
        try:
            reply = await with_retries(partial(self.inner.ask, request), self.policy, self.observer)
        except CallError as error:
            if isinstance(error.__cause__, AttemptError):
                self._lost += 1
            if self._lost >= DOWN_AFTER:
                raise EndpointError(f"{error} ({DOWN_AFTER} calls in a row)") from error
            raise
        self._lost = 0
        return reply


async def with_retries(
    send: Callable[[], Awaitable[T]], policy: RetryPolicy, observer: Observer
) -> T:
    """Return the result of the first attempt that succeeds.

    Args:
        send: Makes one attempt; raises AttemptError for what may pass.
        policy: How many attempts, and for how long.
        observer: Told of each retry.

    Raises:
        EndpointError: The endpoint could not be reached in any attempt.
        CallError: It failed otherwise each time.
    """
    failures: _Failures | None = None
    while True:
        try:
            return await send()
        except AttemptError as error:
            failures = failures or _Failures()
            failures.add(error)
            if failures.use_up(policy):
                raise failures.give_up(policy, error) from error
            wait_s = _wait_s(policy.first_wait_s, failures.attempts, error.retry_after_s)
            retry = _retry_event(error, failures.attempts, wait_s)
        observer(retry)
        await policy.pause(wait_s)


@dataclass(slots=True)
class _Failures:
    """The failed attempts of one call."""

    attempts: int = 0
    counted: int = 0
    """Attempts that use up the policy's."""
    reached: bool = False
    """Whether the endpoint answered in any of them."""
    first_at_s: float = field(default_factory=time.monotonic)

    def add(self, error: AttemptError) -> None:
        self.attempts += 1
        self.counted += error.counted
        self.reached = self.reached or not error.unreachable

    def use_up(self, policy: RetryPolicy) -> bool:
        """Whether no attempt or no time is left."""
        is_late = time.monotonic() - self.first_at_s >= policy.max_s
        return self.counted >= policy.max_attempts or is_late

    def give_up(self, policy: RetryPolicy, last: AttemptError) -> Exception:
        """Return the error that ends the call."""
        if self.counted >= policy.max_attempts:
            message = f"gave up after {self.counted} attempts: {last}"
        else:
            message = f"gave up after {time.monotonic() - self.first_at_s:.0f} s: {last}"
        if not self.reached:
            return EndpointError(message)
        return CallError("error", message, last.raw)


def _wait_s(first_wait_s: float, attempts: int, asked_s: float | None) -> float:
    """Return the seconds the endpoint asks to wait and a little more, else a random, growing wait.

    An endpoint that asks for no wait at all is not believed.
    """
    highest = min(first_wait_s * 2 ** min(attempts - 1, _MOST_DOUBLINGS), LONGEST_WAIT_S)
    jittered = random.uniform(0, highest)  # noqa: S311  # no secret hangs on a wait
    least = _LEAST_WAIT_SHARE * first_wait_s
    return max(least, min((asked_s or 0.0) + jittered / (4 if asked_s else 1), LONGEST_WAIT_S))


def _retry_event(error: AttemptError, attempts: int, wait_s: float) -> Event:
    numbers = {"wait_s": wait_s, "attempts": float(attempts)}
    return Event("retry", message=str(error), numbers=numbers, labels={"kind": error.fault})
