"""Pacing all calls to one endpoint, key and model, first come, first sent; a circuit breaker."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import field

from ragforge.deferred import dataclass
from ragforge.errors import EndpointError, RagforgeError, StoppedError
from ragforge.llm.chat import ChatModel, ChatReply, ChatRequest, estimate_tokens
from ragforge.llm.flow.state import Flow, Ticket
from ragforge.llm.retries import AttemptError
from ragforge.llm.wire import LONGEST_STATED_WAIT_S, RateLimits

OPENS_AFTER = 8
"""Attempts that fail one after the other, none succeeding, before an endpoint counts as down."""

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 5.0
_PAUSE_GROWS = 1.1

_WATCHED_EVERY_S = 30.0
"""Seconds without any end of a call before the silence is told."""
_HALF_A_DAY_S = 43200.0
_Waiting = tuple["asyncio.Future[Ticket]", float]


@dataclass(slots=True)
class Breaker:
    """Open while the endpoint is down: then one probe at a time, seconds apart.

    An endpoint that never answered is not down but wrong; it never opens for one.

    Args:
        opens_after: Attempts that must fail one after the other.
    """

    opens_after: int = OPENS_AFTER
    opened_at: float = field(default=math.nan, init=False)
    _failures: int = field(default=0, init=False)
    _answered: bool = field(default=False, init=False)
    _probe_at: float = field(default=math.inf, init=False)
    _pause_s: float = field(default=_FIRST_PAUSE_S, init=False)

    @property
    def is_open(self) -> bool:
        """Whether the endpoint counts as down."""
        return not math.isnan(self.opened_at)

    def wait_s(self, now: float) -> float:
        """Return the seconds until the next probe; infinite while one is under way."""
        return max(0.0, self._probe_at - now)

    def probe(self) -> None:
        """Note that a probe is on its way."""
        self._probe_at = math.inf

    def failed(self, now: float) -> bool:
        """Note an attempt that met no working endpoint; return whether this opens the breaker."""
        self._failures += 1
        if self.is_open:
            # Calls that were in flight when it opened fail later, and are no probes.
            if math.isinf(self._probe_at):
                self._pause_s = min(_LONGEST_PAUSE_S, self._pause_s * _PAUSE_GROWS)
                self._probe_at = now + self._pause_s
            return False
        if not self._answered or self._failures < self.opens_after:
            return False
        self.opened_at, self._pause_s = now, _FIRST_PAUSE_S
        self._probe_at = now + self._pause_s
        return True

    def answered(self) -> bool:
        """Note an answer of any kind; return whether this closes the breaker."""
        was_open = self.is_open
        self._answered, self._failures = True, 0
        self.opened_at, self._probe_at = math.nan, math.inf
        return was_open


@dataclass(slots=True)
class Pacer:
    """Lets calls through as the endpoint can take them.

    Args:
        flow: What is known of its limits.
        max_wait_s: Longest wait that is worth it, for an endpoint that is down or asks for one.
        notify: Told in a sentence when the flow changes.
    """

    flow: Flow
    max_wait_s: float
    notify: Callable[[str], None]
    breaker: Breaker = field(default_factory=Breaker)
    _waiting: deque[_Waiting] = field(default_factory=deque, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _watch: asyncio.TimerHandle | None = field(default=None, init=False)
    _ended_at: float = field(default=0.0, init=False)
    _over: RagforgeError | None = field(default=None, init=False)
    _ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _refused_since: float = field(default=math.nan, init=False)
    """When the endpoint began to refuse every call; not a number while it takes some."""

    async def admit(self, prompt_tokens: float) -> Ticket:
        """Return when a call may be sent; the caller reports its end.

        Raises:
            EndpointError: The endpoint stayed down for too long.
            StoppedError: The run is being stopped.
        """
        if self._over is not None:
            raise self._over
        loop = asyncio.get_running_loop()
        if not self._waiting and not self.breaker.is_open:
            now = loop.time()
            if self.flow.wait_s(prompt_tokens, now) == 0:
                return self._sent(prompt_tokens, now)
        future: asyncio.Future[Ticket] = loop.create_future()
        self._waiting.append((future, prompt_tokens))
        self._serve()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.abandoned(future.result())
            raise

    def accepted(self, ticket: Ticket, used_tokens: float, reply_tokens: float) -> None:
        """Report a reply."""
        now = self._now()
        self._refused_since = math.nan
        self._reached()
        self.flow.accepted(ticket, now, used_tokens=used_tokens, reply_tokens=reply_tokens)
        self._ended(now)

    def answered(self, ticket: Ticket) -> None:
        """Report an answer that is no reply: the endpoint is up, its limits are not the matter."""
        now = self._now()
        self._reached()
        self.flow.answered(ticket, now)
        self._ended(now)

    def rejected(self, ticket: Ticket, retry_after_s: float | None) -> None:
        """Report a refusal for too many calls; too long a wait ends all calls that wait here."""
        now = self._now()
        self._reached()
        overload = self.flow.rejected(ticket, now, retry_after_s)
        asked_s = retry_after_s or 0.0
        if self.flow.in_flight:
            # One refusal among calls that are taken may mean nothing.
            asked_s = min(asked_s, self.flow.hold_until - now)
        if asked_s > self.max_wait_s:
            self._stop(
                EndpointError(
                    f"the endpoint takes no calls and asks to wait {asked_s:.0f} s, until "
                    f"{_clock_in(asked_s)}; longer than --max-wait-s {self.max_wait_s:g}"
                )
            )
        elif overload:
            self._notify_overload(now)
        if math.isnan(self._refused_since):
            self._refused_since = now
        elif now - self._refused_since > self.max_wait_s:
            self._stop(
                EndpointError(
                    f"the endpoint has refused every call for {now - self._refused_since:.0f} s; "
                    f"longer than --max-wait-s {self.max_wait_s:g}"
                )
            )
        self._ended(now)

    def failed(self, ticket: Ticket, reason: str, *, unreachable: bool) -> bool:
        """Report an attempt that met no working endpoint; return whether it counts as down."""
        now = self._now()
        was_open = self.breaker.is_open
        if self.breaker.failed(now):
            self.notify(
                f"the endpoint is down ({reason}); it is tried once a second, for up to "
                f"{self.max_wait_s:g} s"
            )
        elif was_open and now - self.breaker.opened_at > self.max_wait_s:
            down_s = now - self.breaker.opened_at
            self._stop(EndpointError(f"{reason}; down for {down_s:.0f} s now"))
        if unreachable:
            self.flow.failed(ticket, now)
        else:
            self.flow.answered(ticket, now)
        self._ended(now)
        return was_open or self.breaker.is_open

    def abandoned(self, ticket: Ticket) -> None:
        """Report a call that was given up here."""
        self.flow.failed(ticket, self._now())
        if self.breaker.is_open:
            self.breaker.failed(self._now())
        self._serve()

    def apply_limits(self, limits: RateLimits) -> None:
        """Apply the limits of a reply's headers."""
        self.flow.apply_limits(limits, self._now())

    async def pause(self, seconds: float) -> None:
        """Wait, as a call does that is to be tried again.

        Raises:
            EndpointError, StoppedError: The run is over; nobody waits for that.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._ending.wait()
        except TimeoutError:
            return
        assert self._over is not None
        raise self._over

    def stop(self) -> None:
        """Let no further call through."""
        self._stop(StoppedError("the run is being stopped"))

    def close(self) -> None:
        """Let go of the timers."""
        for timer in (self._timer, self._watch):
            if timer is not None:
                timer.cancel()
        self._timer = self._watch = None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _sent(self, prompt_tokens: float, now: float) -> Ticket:
        if self._watch is None:
            self._ended_at = now
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(_WATCHED_EVERY_S, self._look)
        return self.flow.send(prompt_tokens, now)

    def _ended(self, now: float) -> None:
        self._ended_at = now
        if self._waiting:
            self._serve()

    def _serve(self) -> None:
        """Let through whoever may go, and come back when the next one may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._now()
        while self._waiting:
            future, prompt_tokens = self._waiting[0]
            if future.done():
                self._waiting.popleft()
                continue
            wait_s = self._wait_s(prompt_tokens, now)
            if wait_s > 0:
                if wait_s < math.inf:
                    loop = asyncio.get_running_loop()
                    self._timer = loop.call_later(wait_s, self._serve)
                return
            self._waiting.popleft()
            if self.breaker.is_open:
                self.breaker.probe()
            future.set_result(self._sent(prompt_tokens, now))

    def _wait_s(self, prompt_tokens: float, now: float) -> float:
        if self.breaker.is_open:
            return self.breaker.wait_s(now)
        return self.flow.wait_s(prompt_tokens, now)

    def _stop(self, error: RagforgeError) -> None:
        self._over = self._over or error
        self._ending.set()
        for future, _ in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()

    def _reached(self) -> None:
        if self.breaker.answered():
            self.flow.restart()
            self.notify("the endpoint answers again")

    def _notify_overload(self, now: float) -> None:
        flow = self.flow
        hold_s = flow.hold_until - now
        rate = f", {60 * flow.measured.per_s:.0f} calls a minute" if flow.measured else ""
        pause = f"; nothing is sent until {_clock_in(hold_s)}" if hold_s > 1 else ""
        self.notify(f"too many calls: {int(flow.limit)} at once{rate} from now on{pause}")

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(_WATCHED_EVERY_S, self._look)
        silent_s = loop.time() - self._ended_at
        if self.flow.in_flight and silent_s >= _WATCHED_EVERY_S:
            self.notify(f"no reply for {silent_s:.0f} s; calls in flight: {self.flow.in_flight}")


@dataclass(frozen=True, slots=True)
class PacedModel:
    """Sends a call when its turn has come, and tells the pacer how it ended.

    Args:
        inner: Makes the attempt.
        pacer: Shared by all that ask the same endpoint and model with the same key.
    """

    inner: ChatModel
    pacer: Pacer

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Make one attempt.

        Raises:
            AttemptError: It failed; while the endpoint is down, in a way that does not count.
            StoppedError: It was not sent.
        """
        pacer, prompt_tokens = self.pacer, float(estimate_tokens(request))
        ticket = await pacer.admit(prompt_tokens)
        try:
            reply = await self.inner.ask(request)
        except AttemptError as error:
            if error.fault == "rate":
                pacer.rejected(ticket, error.retry_after_s)
            elif error.fault == "transient":
                error.counted = not pacer.failed(ticket, str(error), unreachable=error.unreachable)
            else:
                pacer.answered(ticket)
            raise
        except StoppedError:
            pacer.abandoned(ticket)
            raise
        except Exception:
            pacer.answered(ticket)
            raise
        except BaseException:
            pacer.abandoned(ticket)
            raise
        usage = reply.usage
        used = float(usage.prompt_tokens + usage.completion_tokens)
        pacer.accepted(ticket, used, float(usage.completion_tokens))
        return reply


def _clock_in(wait_s: float) -> str:
    """Return the time of day in so many seconds, with the date where it is far."""
    form = "%H:%M:%S" if wait_s < _HALF_A_DAY_S else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(time.time() + min(wait_s, LONGEST_STATED_WAIT_S)))
