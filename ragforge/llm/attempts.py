"""Trying again: which failures pass, how long to wait, and when to give up."""

import email.utils
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from ragforge.errors import CallError, EndpointError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest
from ragforge.observe import Event, Observer

T = TypeVar("T")

MAX_WAIT_S = 60.0
"""Longest wait between two attempts, whatever the endpoint asks for."""

DOWN_AFTER = 10
"""Calls that give up one after the other, none succeeding, before the endpoint counts as down."""


class TransientError(Exception):
    """An attempt failed in a way that may pass.

    Args:
        message: What happened.
        unreachable: Whether the endpoint did not even answer.
        retry_after_s: Seconds the endpoint asks to wait, None where it says nothing.
        raw: The start of the reply's body, where there was one.
    """

    def __init__(
        self,
        message: str,
        *,
        unreachable: bool = False,
        retry_after_s: float | None = None,
        raw: str = "",
    ) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.retry_after_s = retry_after_s
        self.raw = raw


def _wait_s(first_wait_s: float, state: RetryCallState) -> float:
    """Return what the endpoint asks to wait and a little more, else a random, growing wait."""
    jittered = wait_random_exponential(multiplier=first_wait_s, max=MAX_WAIT_S)(state)
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_s if isinstance(error, TransientError) else None
    return jittered if asked is None else min(asked + jittered / 4, MAX_WAIT_S)


async def patiently(
    send: Callable[[], Awaitable[T]],
    max_attempts: int,
    observer: Observer,
    *,
    first_wait_s: float = 1.0,
) -> T:
    """Make an attempt, and further ones while failures may pass.

    Args:
        send: One attempt; raises TransientError for what may pass.
        max_attempts: Attempts in all.
        observer: Told of each retry.
        first_wait_s: Upper end of the first random wait; doubles with each attempt.

    Raises:
        EndpointError: The endpoint could not be reached in any attempt.
        CallError: It failed otherwise each time.
    """

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        wait_s = state.next_action.sleep if state.next_action else 0.0
        observer(Event("retry", message=str(error), numbers={"wait_s": wait_s}))

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(TransientError),
        stop=stop_after_attempt(max_attempts),
        wait=partial(_wait_s, first_wait_s),
        before_sleep=tell,
        reraise=True,
    )
    reached = False

    async def attempt() -> T:
        nonlocal reached
        try:
            return await send()
        except TransientError as error:
            reached = reached or not error.unreachable
            raise

    try:
        result: T = await retrying(attempt)
    except TransientError as error:
        message = f"gave up after {max_attempts} attempts: {error}"
        if not reached:
            raise EndpointError(message) from error
        raise CallError("error", message, error.raw) from error
    return result


@dataclass(slots=True)
class RetryingModel:
    """Asks again while failures may pass, and stops the run when nothing gets through any more.

    Args:
        inner: Raises TransientError for what may pass.
        max_attempts: Attempts a request gets.
        observer: Told of each retry.
        first_wait_s: As in `patiently`.
    """

    inner: ChatModel
    max_attempts: int
    observer: Observer
    first_wait_s: float = 1.0
    _lost: int = field(default=0, init=False)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Answer one request, in as many attempts as it takes and is allowed."""
        try:
            reply = await patiently(
                partial(self.inner.ask, request),
                self.max_attempts,
                self.observer,
                first_wait_s=self.first_wait_s,
            )
        except CallError as error:
            if isinstance(error.__cause__, TransientError):
                self._lost += 1
            if self._lost >= DOWN_AFTER:
                raise EndpointError(f"{error} ({DOWN_AFTER} calls in a row)") from error
            raise
        self._lost = 0
        return reply


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a reply asks to wait, None where it does not say or makes no sense.

    Args:
        headers: Reply headers, looked up without regard to case. `retry-after-ms` goes before
            `retry-after`, which holds seconds or an HTTP date.
    """
    low = {name.lower(): value for name, value in headers.items()}
    try:
        if "retry-after-ms" in low:
            return max(0.0, float(low["retry-after-ms"]) / 1000)
        if "retry-after" not in low:
            return None
        value = low["retry-after"].strip()
        if value.replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
