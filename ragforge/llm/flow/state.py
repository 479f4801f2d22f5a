"""When the next call may be sent: a state machine without a clock, a socket or a task.

Three things bound what is sent. What the endpoint tells in its headers, or the user in the
settings, becomes token buckets for requests and tokens. What it shows by refusing calls with status
429 becomes either a lower limit on calls in flight, or a measured rate:

- A single refusal says nothing; some endpoints refuse one call in twenty at random. Several among
  the latest calls are an *overload*.
- After the first one, as many calls stay in flight as the endpoint had taken. If it refuses even
  those, or says how long to wait, it counts calls per time and not at once.
- Between two overloads a bucket at the endpoint was empty twice, so what it took in between is
  what flows into it: that is the rate to go on with.

What was learnt is probed again by growing slowly, ever more rarely where the probe fails.
"""

import math
from collections import deque
from dataclasses import field

from ragforge.deferred import dataclass
from ragforge.llm.wire import RateLimit, RateLimits

FIRST_IN_FLIGHT = 8
"""Calls in flight before the endpoint has shown that it takes more."""
_REFUSED_WEIGHS = math.log(0.5 / 0.05)
_TAKEN_WEIGHS = math.log(0.5 / 0.95)
_OVERLOAD_AT_FIRST = 8.5
_OVERLOAD_ONCE_KNOWN = 5.5
_TAKEN_MARGIN = 0.9
_BURST_S = 1.0
_MEASURED_BURST_S = 0.05
_FIRST_CALM_S = 2.0
_LONGEST_CALM_S = 60.0
_FIRST_HOLD_S = 0.5
_LONGEST_HOLD_S = 30.0
_SHARE_OF_GOODPUT = 0.5
_SHARE_OF_MEASURED = 0.97
_FAST_GROWTH_PER_S = 1.15
_SLOW_GROWTH_PER_S = 1.03
_SERIOUS_WAIT_S = 2.0
"""Endpoints that are merely crowded ask to wait for less."""
_SPAN_S = 1.0
_LEAST_PER_S = 0.02
_ENOUGH_TAKEN = 4
_UNMOVED_SHARE = 0.7
_UNMOVED_S = 30.0
_MOSTLY = 0.5
"""Where fewer of the calls behind a cut are refused, the cut was merely too small."""
_LEAST_SEARCHED_PER_S = 0.2
_GROWTH_SEARCHES_S = 3.0
_GROWTH_TAKES = 8
"""Replies a second of growth needs, so that slow endpoints are probed slowly."""
_FIRST_REPLY_TOKENS = 256.0
_REPLY_QUANTILE = 0.9
_LIMIT_SHARE = 0.98


@dataclass(slots=True)
class TokenBucket:
    """Fills evenly up to a capacity; what is taken may be settled later.

    Times are seconds of one monotonic clock: a step of the wall clock changes nothing, and a
    process that was suspended finds one full bucket, not the sum of what it missed.

    Args:
        per_s: What flows in each second.
        capacity: What it holds at most.
        now: The time at which it is full.
    """

    per_s: float
    capacity: float
    now: float
    level: float = field(init=False)
    """What may be taken at the last look; negative where a settled amount was larger."""

    def __post_init__(self) -> None:
        self.level = self.capacity

    def wait_s(self, amount: float, now: float) -> float:
        """Return the seconds until an amount may be taken; a larger one than fits waits for all."""
        self._fill(now)
        lacking = min(amount, self.capacity) - self.level
        return max(0.0, lacking / self.per_s)

    def take(self, amount: float, now: float) -> None:
        """Take an amount, or give one back where it is negative."""
        self._fill(now)
        self.level = min(self.capacity, self.level - amount)

    def at_most(self, level: float, now: float) -> None:
        """Lower the level to what the endpoint says is left."""
        self._fill(now)
        self.level = min(self.level, level)

    def change(self, per_s: float, capacity: float, now: float) -> None:
        """Go on with another rate; what is in it stays as far as it fits."""
        self._fill(now)
        self.per_s, self.capacity = per_s, capacity
        self.level = min(self.level, capacity)

    def _fill(self, now: float) -> None:
        self.level = min(self.capacity, self.level + (now - self.now) * self.per_s)
        self.now = now


@dataclass(slots=True)
class Ticket:
    """A call that was sent."""

    tokens: float
    overloads: int
    """How many overloads there had been; a refusal of an older call is no news."""


@dataclass(slots=True)
class Flow:
    """What is known of one endpoint, key and model.

    All times are seconds of one monotonic clock.

    Args:
        most_in_flight: The user's limit on calls in flight.
        now: The time.
        requests_per_minute, tokens_per_minute: The user's limits; None where unset.
    """

    most_in_flight: int
    now: float
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    in_flight: int = field(default=0, init=False)
    limit: float = field(init=False)
    """Calls in flight that are allowed at the moment."""
    overloads: int = field(default=0, init=False)
    hold_until: float = field(default=-math.inf, init=False)
    measured: TokenBucket | None = field(default=None, init=False)
    """The rate found out by refusals; None while there was no need."""
    requests: TokenBucket | None = field(default=None, init=False)
    tokens: TokenBucket | None = field(default=None, init=False)
    reply_tokens: float = field(default=_FIRST_REPLY_TOKENS, init=False)
    """What nine of ten replies stay below, as a running estimate."""
    _reserved: float = field(default=0.0, init=False)
    """Tokens that calls in flight may take."""
    _suspicion: float = field(default=0.0, init=False)
    """Log likelihood of refusing every second call against one in twenty; never below 0."""
    _taken: deque[float] = field(init=False)
    _taken_since: int = field(default=0, init=False)
    _refused_since: int = field(default=0, init=False)
    _sent_since: int = field(default=0, init=False)
    _share: float = field(default=0.0, init=False)
    """How many of its calls the endpoint refused before the last overload."""
    _cut_per_s: float = field(default=0.0, init=False)
    _unmoved_until: float = field(default=-math.inf, init=False)
    _first_at: float = field(default=math.inf, init=False)
    _overload_at: float = field(default=-math.inf, init=False)
    _cut_to: float = field(default=math.inf, init=False)
    _cuts: int = field(default=0, init=False)
    """How often the calls in flight were cut one after the other."""
    _calm_until: float = field(default=-math.inf, init=False)
    _calm_s: float = field(default=_FIRST_CALM_S, init=False)
    _hold_s: float = field(default=_FIRST_HOLD_S, init=False)
    _grown_at: float = field(default=-math.inf, init=False)
    _rate_known: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.limit = float(min(FIRST_IN_FLIGHT, self.most_in_flight))
        self._taken = deque(maxlen=4096)
        if self.requests_per_minute is not None:
            self.requests = self._bucket(self.requests_per_minute, self.now)
        if self.tokens_per_minute is not None:
            self.tokens = self._bucket(self.tokens_per_minute, self.now)

    def wait_s(self, prompt_tokens: float, now: float) -> float:
        """Return the seconds until a call may be sent; infinite until one in flight ends."""
        if self.in_flight >= int(self.limit):
            return math.inf
        wait_s = self.hold_until - now
        for bucket in (self.requests, self.measured):
            if bucket is not None:
                wait_s = max(wait_s, bucket.wait_s(1.0, now))
        if self.tokens is not None:
            wait_s = max(wait_s, self.tokens.wait_s(prompt_tokens + self.reply_tokens, now))
        return max(0.0, wait_s)

    def send(self, prompt_tokens: float, now: float) -> Ticket:
        """Count a call as sent."""
        self.in_flight += 1
        self._first_at = min(self._first_at, now)
        for bucket in (self.requests, self.measured):
            if bucket is not None:
                bucket.take(1.0, now)
        reserved = prompt_tokens + self.reply_tokens
        if self.tokens is not None:
            self.tokens.take(reserved, now)
        self._reserved += reserved
        self._sent_since += 1
        return Ticket(reserved, self.overloads)

    def accepted(
        self, ticket: Ticket, now: float, *, used_tokens: float, reply_tokens: float
    ) -> None:
        """Note a reply and what it took."""
        self._end(ticket, used_tokens, now)
        self._took(ticket, now)
        self._hold_s = _FIRST_HOLD_S
        # A step up for the tenth above, down for the nine tenths below: it settles at the quantile.
        step = max(1.0, self.reply_tokens * 0.05)
        above = reply_tokens > self.reply_tokens
        self.reply_tokens += step * (_REPLY_QUANTILE if above else _REPLY_QUANTILE - 1)
        self._grow(now)

    def failed(self, ticket: Ticket, now: float) -> None:
        """Note an end that says nothing about limits."""
        self._end(ticket, ticket.tokens, now)

    def answered(self, ticket: Ticket, now: float) -> None:
        """Note an answer that is no reply: whatever is wrong, it was not one call too many."""
        self._end(ticket, ticket.tokens, now)
        self._took(ticket, now)

    def rejected(self, ticket: Ticket, now: float, retry_after_s: float | None) -> bool:
        """Note a refusal for too many calls; return whether it makes an overload."""
        self._end(ticket, 0.0, now)
        if ticket.overloads != self.overloads:
            if self.hold_until > now and retry_after_s:
                self.hold_until = max(self.hold_until, now + retry_after_s)
            return False
        self._suspicion += _REFUSED_WEIGHS
        self._refused_since += 1
        known = _OVERLOAD_ONCE_KNOWN if self.measured or self._is_soon(now) else _OVERLOAD_AT_FIRST
        if self._suspicion < known or now < self._unmoved_until:
            return False
        if self._is_unmoved():
            self.measured, self._suspicion = None, 0.0
            self._unmoved_until = now + _UNMOVED_S
            return False
        self._overload(now, retry_after_s)
        return True

    def apply_limits(self, limits: RateLimits, now: float) -> None:
        """Apply the limits of a reply's headers; a lower limit of the user's stays."""
        if limits.requests is not None:
            mine, under_way = self.requests_per_minute, float(max(0, self.in_flight - 1))
            self.requests = self._limited_bucket(
                self.requests, limits.requests, mine, now, under_way
            )
            self.limit = float(self.most_in_flight) if not self.overloads else self.limit
        if limits.tokens is not None:
            mine, under_way = self.tokens_per_minute, self._reserved
            under_way *= 1 - 1 / max(1, self.in_flight)
            self.tokens = self._limited_bucket(self.tokens, limits.tokens, mine, now, under_way)

    def restart(self) -> None:
        """Begin gently, as behind an outage."""
        self.limit = min(self.limit, float(FIRST_IN_FLIGHT))

    def _end(self, ticket: Ticket, used_tokens: float, now: float) -> None:
        self.in_flight -= 1
        self._reserved = self._reserved - ticket.tokens if self.in_flight else 0.0
        if self.tokens is not None:
            self.tokens.take(used_tokens - ticket.tokens, now)

    def _took(self, ticket: Ticket, now: float) -> None:
        self._suspicion = max(0.0, self._suspicion + _TAKEN_WEIGHS)
        self._taken.append(now)
        self._taken_since += ticket.overloads == self.overloads

    def _is_soon(self, now: float) -> bool:
        """Whether the last overload was just now, and no more calls are in flight than it left."""
        return now < self._calm_until and self.limit <= self._cut_to

    def _overload(self, now: float, retry_after_s: float | None) -> None:
        asked_s, hold_s = retry_after_s or 0.0, 0.0
        mostly = self._refused_since >= _MOSTLY * self._sent_since
        self._cuts = self._cuts + (2 if mostly else 1) if self._is_soon(now) else 0
        if self.measured is not None or self._cuts > 1 or asked_s >= _SERIOUS_WAIT_S:
            self._measure(now)
            hold_s = max(asked_s, self._hold_s)
            self._hold_s = min(_LONGEST_HOLD_S, 2 * self._hold_s)
        else:
            self.limit = self._cut_to = float(max(1, int(_TAKEN_MARGIN * self.in_flight)))
        self.hold_until = now + hold_s
        if self.requests is not None:
            # What flows in during the hold must not go out at once behind it.
            self.requests.at_most(-hold_s * self.requests.per_s, now)
        lasting = now < self._calm_until + _LONGEST_CALM_S
        self._calm_s = min(_LONGEST_CALM_S, 2 * self._calm_s) if lasting else _FIRST_CALM_S
        self._calm_until = self.hold_until + self._calm_s
        self.overloads += 1
        self._suspicion = 0.0
        self._share = self._refused_share()
        self._overload_at = now
        self._taken_since = self._sent_since = 0
        self._refused_since = 0

    def _measure(self, now: float) -> None:
        if self.measured is None:
            span_s = max(_SPAN_S, min(10.0, now - self._first_at))
            recent = self.in_flight + sum(1 for at in self._taken if at > now - span_s)
            per_s = _SHARE_OF_GOODPUT * recent / span_s
        else:
            taken = self._taken_since + self.in_flight
            between = _SHARE_OF_MEASURED * taken / max(1e-3, now - self._overload_at)
            self._rate_known = taken >= _ENOUGH_TAKEN
            blind = max(_LEAST_SEARCHED_PER_S, 0.5 * self.measured.per_s)
            per_s = min(self.measured.per_s, between if self._rate_known else blind)
        per_s = max(_LEAST_PER_S, per_s)
        self.measured = TokenBucket(per_s, max(1.0, per_s * _MEASURED_BURST_S), now)
        self._grown_at = now
        self._cut_per_s = per_s

    def _refused_share(self) -> float:
        return self._refused_since / max(1, self._refused_since + self._taken_since)

    def _is_unmoved(self) -> bool:
        """Whether a lower rate changed nothing, so that it is not the rate that is refused.

        Others may use up a limit that is shared, or the endpoint refuses calls as it likes.
        """
        return (
            self.measured is not None
            and self.measured.per_s <= 1.1 * self._cut_per_s
            and self._taken_since >= 2
            and _UNMOVED_SHARE * self._share <= self._refused_share() < 1 - _UNMOVED_SHARE / 4
        )

    def _grow(self, now: float) -> None:
        self._grow_rate(now)
        most = float(self.most_in_flight)
        if self.limit >= most or self.in_flight + 1 < int(self.limit):
            return
        if not self.overloads:
            self.limit = min(most, self.limit + 1)
        elif now >= self._calm_until:
            self.limit = min(most, self.limit + 1 / self.limit)

    def _grow_rate(self, now: float) -> None:
        if self.measured is None or now < self.hold_until:
            return
        since_s, self._grown_at = now - self._grown_at, now
        if self._rate_known and now < self._calm_until:
            return
        growth = _SLOW_GROWTH_PER_S if self._rate_known else _FAST_GROWTH_PER_S
        most_s = 1 / _GROWTH_TAKES if self._rate_known else _GROWTH_SEARCHES_S
        per_s = self.measured.per_s * growth ** min(since_s, most_s)
        self.measured.change(per_s, max(1.0, per_s * _MEASURED_BURST_S), now)

    def _bucket(self, per_minute: float, now: float) -> TokenBucket:
        per_s = per_minute / 60
        return TokenBucket(per_s, max(1.0, per_s * _BURST_S), now)

    def _limited_bucket(
        self,
        old: TokenBucket | None,
        limit: RateLimit,
        mine: float | None,
        now: float,
        under_way: float,
    ) -> TokenBucket:
        per_minute = min(_LIMIT_SHARE * limit.per_minute, mine or math.inf)
        per_s = per_minute / 60
        bucket = old or self._bucket(per_minute, now)
        if abs(bucket.per_s - per_s) > 1e-9:
            bucket.change(per_s, max(1.0, per_s * _BURST_S), now)
        bucket.at_most(limit.remaining - 1, now)
        if old is None:
            # What is under way was let through before there was a bucket to take it from.
            bucket.take(under_way, now)
        return bucket
