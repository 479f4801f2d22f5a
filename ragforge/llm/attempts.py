"""Trying again: which failures pass, how long to wait, and when to give up."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential
from tenacity.stop import stop_base

from ragforge.errors import CallError, EndpointError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.llm.faults import AttemptError
from ragforge.observe import Event, Observer

T = TypeVar("T")

Pause = Callable[[float], Awaitable[None]]

LONGEST_WAIT_S = 60.0
"""Longest wait of one call between two attempts, whatever the endpoint asks for."""

DOWN_AFTER = 10
"""Calls that give up one after the other, none succeeding, before the endpoint counts as down."""

_LEAST_WAIT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call is tried.

    Args:
        max_attempts: Attempts in all; refusals for too many calls do not count.
        max_s: Seconds after which no further attempt begins, whatever they were.
        first_wait_s: Upper end of the first random wait; doubles with each attempt.
        pause: Waits so many seconds between attempts; may raise instead where the run is stopped.
    """

    max_attempts: int
    max_s: float = 3600.0
    first_wait_s: float = 0.5
    pause: Pause = asyncio.sleep


class _Stop(stop_base):
    """Stops when the counted attempts or the time are used up."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.counted = 0
        self.reached = False
        self.started = time.monotonic()

    def note(self, error: AttemptError) -> None:
        """Count a failed attempt."""
        self.counted += error.counted
        self.reached = self.reached or not error.unreachable

    def __call__(self, retry_state: RetryCallState) -> bool:
        """Say whether it is enough."""
        late = time.monotonic() - self.started >= self.patience.max_s
        return self.counted >= self.patience.max_attempts or late


async def patiently(send: Callable[[], Awaitable[T]], patience: Patience, observer: Observer) -> T:
    """Make an attempt, and further ones while failures may pass.

    Args:
        send: One attempt; raises AttemptError for what may pass.
        patience: How many attempts, and for how long.
        observer: Told of each retry.

    Raises:
        EndpointError: The endpoint could not be reached in any attempt.
        CallError: It failed otherwise each time.
    """
    try:
        # Nearly all calls succeed at once; they do not pay for the machinery below.
        return await send()
    except AttemptError as error:
        first: AttemptError | None = error
    stop = _Stop(patience)
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(AttemptError),
        stop=stop,
        wait=partial(_wait_s, patience.first_wait_s),
        sleep=patience.pause,
        before_sleep=partial(_tell, observer),
        reraise=True,
    )

    async def attempt() -> T:
        nonlocal first
        try:
            if first is not None:
                error, first = first, None
                raise error
            return await send()
        except AttemptError as error:
            stop.note(error)
            raise

    try:
        result: T = await retrying(attempt)
    except AttemptError as error:
        raise _given_up(error, stop) from error
    return result


@dataclass(slots=True)
class RetryingModel:
    """Asks again while failures may pass, and stops the run when nothing gets through any more.

    Args:
        inner: Raises AttemptError for what may pass.
        patience: What a call gets.
        observer: Told of each retry.
    """

    inner: ChatModel
    patience: Patience
    observer: Observer
    _lost: int = field(default=0, init=False)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request, in as many attempts as it takes and is allowed."""
        try:
            reply = await patiently(partial(self.inner.ask, request), self.patience, self.observer)
        except CallError as error:
            if isinstance(error.__cause__, AttemptError):
                self._lost += 1
            if self._lost >= DOWN_AFTER:
                raise EndpointError(f"{error} ({DOWN_AFTER} calls in a row)") from error
            raise
        self._lost = 0
        return reply


def _wait_s(first_wait_s: float, state: RetryCallState) -> float:
    """Return what the endpoint asks to wait and a little more, else a random, growing wait.

    An endpoint that asks for no wait at all is not believed.
    """
    jittered = wait_random_exponential(multiplier=first_wait_s, max=LONGEST_WAIT_S)(state)
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, AttemptError) else None
    least = _LEAST_WAIT_SHARE * first_wait_s
    return max(least, min((asked or 0.0) + jittered / (4 if asked else 1), LONGEST_WAIT_S))


def _tell(observer: Observer, state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    wait_s = state.next_action.sleep if state.next_action else 0.0
    kind = error.fault if isinstance(error, AttemptError) else ""
    numbers = {"wait_s": wait_s, "attempts": float(state.attempt_number)}
    observer(Event("retry", message=str(error), numbers=numbers, labels={"kind": kind}))


def _given_up(error: AttemptError, stop: _Stop) -> Exception:
    if stop.counted >= stop.patience.max_attempts:
        message = f"gave up after {stop.counted} attempts: {error}"
    else:
        message = f"gave up after {time.monotonic() - stop.started:.0f} s: {error}"
    if not stop.reached:
        return EndpointError(message)
    return CallError("error", message, error.raw)
