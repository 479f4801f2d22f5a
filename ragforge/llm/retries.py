"""Failed attempts: their kinds, which are repeated after which wait, when a call is given up."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Literal, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import CallError, EndpointError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, Usage
from ragforge.observe import Event, Observer

Fault = Literal[
    "rate", "quota", "auth", "missing", "redirect", "bad_request", "transient", "invalid_reply"
]
"""rate: too many calls. quota, auth, missing, redirect: no call can succeed. bad_request: this one
cannot. transient: the endpoint or the way to it failed. invalid_reply: it said nothing usable."""

ENDS_RUN: frozenset[Fault] = frozenset({"quota", "auth", "missing", "redirect"})
"""Kinds that end the run."""

_BY_STATUS: Mapping[int, Fault] = {
    **dict.fromkeys((301, 302, 303, 307, 308), "redirect"),
    **dict.fromkeys((401, 403), "auth"),
    402: "quota",
    **dict.fromkeys((404, 405, 410), "missing"),
    **dict.fromkeys((408, 409, 425), "transient"),
    429: "rate",
}
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "quota_exceeded"}
)
T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]
_LONGEST_WAIT_S = 60.0
"""Longest wait of one call between two attempts, whatever the endpoint asks for."""
DOWN_AFTER = 10
"""Calls that give up one after the other, none succeeding, before the endpoint counts as down."""
_LEAST_WAIT_SHARE = 0.25
_MOST_DOUBLINGS = 60


def classify_status(status: int, code: str) -> Fault:
    """Return the kind of a reply whose status is no success.

    Args:
        status: HTTP status, 300 or above.
        code: The endpoint's own word for the error, "" where it gives none.
    """
    if code in _QUOTA_CODES:
        return "quota"
    if status >= 500:
        return "transient"
    return _BY_STATUS.get(status, "bad_request")


class AttemptError(Exception):
    """An attempt failed in a way that may pass.

    Args:
        message: What happened.
        fault: `rate`, `transient` or `invalid_reply`.
        unreachable: Whether the endpoint did not even answer.
        maybe_billed: Whether the endpoint may have worked, and charge for it, all the same.
        usage: What it says it charged for; None where it does not say.
        retry_after_s: Seconds the endpoint asks to wait, None where it says nothing.
        raw: The start of the reply's body, where there was one.
        counted: Whether it uses up one of the call's attempts.
    """

    def __init__(
        self,
        message: str,
        *,
        fault: Fault = "transient",
        unreachable: bool = False,
        maybe_billed: bool = False,
        usage: Usage | None = None,
        retry_after_s: float | None = None,
        raw: str = "",
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.unreachable = unreachable
        self.maybe_billed = maybe_billed
        self.usage = usage
        self.retry_after_s = retry_after_s
        self.raw = raw
        self.counted = fault != "rate"


async def _sleep(seconds: float) -> None:
    import asyncio  # Those who only count what calls cost need not wait for it.

    await asyncio.sleep(seconds)


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
    pause: Pause = _sleep


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
    import random

    highest = min(first_wait_s * 2 ** min(attempts - 1, _MOST_DOUBLINGS), _LONGEST_WAIT_S)
    jittered = random.uniform(0, highest)  # noqa: S311  # no secret hangs on a wait
    least = _LEAST_WAIT_SHARE * first_wait_s
    return max(least, min((asked_s or 0.0) + jittered / (4 if asked_s else 1), _LONGEST_WAIT_S))


def _retry_event(error: AttemptError, attempts: int, wait_s: float) -> Event:
    numbers = {"wait_s": wait_s, "attempts": float(attempts)}
    return Event("retry", message=str(error), numbers=numbers, labels={"kind": error.fault})
