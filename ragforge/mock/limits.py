"""Limits on the rate: token buckets, what they refuse, and how replies tell of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate

from ragforge.mock.script import RetryAfter, Script

_HUGE_S = 3600


class RefillingBucket:
    """Room that refills at a rate.

    Args:
        per_minute: The rate; room for one always fits.
        burst_s: Seconds of the rate that fit.
        clock: Seconds from any start, never going back.
    """

    def __init__(self, per_minute: float, burst_s: float, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._per_s = per_minute / 60
        self._capacity = max(1.0, self._per_s * burst_s)
        self._clock = clock
        self._level = self._capacity
        self._at_s = clock()

    def room(self) -> float:
        """Return how much fits now; below 0 while more was charged than fitted."""
        now_s = self._clock()
        self._level = min(self._capacity, self._level + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        return self._level

    def wait_s(self, amount: float) -> float:
        """Return the seconds until an amount fits; what never fits waits for the full bucket."""
        return max(0.0, (min(amount, self._capacity) - self.room()) / self._per_s)

    def charge(self, amount: float) -> None:
        """Take an amount, whether it fits or not: the rate holds in the long run."""
        self._level = self.room() - amount

    def full_in_s(self) -> float:
        """Return the seconds until it is full."""
        return (self._capacity - self.room()) / self._per_s


@dataclass(frozen=True, slots=True)
class Shortage:
    """A limit without room.

    Args:
        what: `requests` or `tokens`.
        limit: Per minute.
        wait_s: Until there is room.
    """

    what: str
    limit: float
    wait_s: float


class Limits:
    """The limits of a script.

    Args:
        script: Says which.
        clock: As of `RefillingBucket`.
    """

    def __init__(self, script: Script, clock: Callable[[], float]) -> None:
        self._sends_headers = script.rl_headers == "on"
        rates = {"requests": script.rpm, "tokens": script.tpm}
        self._buckets = {
            what: RefillingBucket(rate, script.burst_s, clock)
            for what, rate in rates.items()
            if rate
        }

    def take(self, tokens: int) -> Shortage | None:
        """Take room for one request with so many tokens, or return the limit that has none."""
        amounts = {"requests": 1, "tokens": tokens}
        short = [
            Shortage(what, bucket.per_minute, wait_s)
            for what, bucket in self._buckets.items()
            if (wait_s := bucket.wait_s(amounts[what])) > 0
        ]
        if short:
            return max(short, key=lambda shortage: shortage.wait_s)
        for what, bucket in self._buckets.items():
            bucket.charge(amounts[what])
        return None

    def charge_reply(self, tokens: int) -> None:
        """Take the tokens of a reply, which were not known when the request was let in."""
        if "tokens" in self._buckets:
            self._buckets["tokens"].charge(tokens)

    def headers(self) -> dict[str, str]:
        """Return the x-ratelimit headers: limit a minute, room left now, time until full."""
        headers: dict[str, str] = {}
        if self._sends_headers:
            for what, bucket in self._buckets.items():
                headers[f"x-ratelimit-limit-{what}"] = f"{bucket.per_minute:.0f}"
                headers[f"x-ratelimit-remaining-{what}"] = str(max(0, math.floor(bucket.room())))
                headers[f"x-ratelimit-reset-{what}"] = duration(bucket.full_in_s())
        return headers


def retry_after_headers(form: RetryAfter, wait_s: float | None, now_s: float) -> dict[str, str]:
    """Return the header that says when to come again.

    Args:
        form: How it says it.
        wait_s: The true time, None where there is none to tell.
        now_s: The wall clock.
    """
    if form == "lie":
        return {"retry-after": "0"}
    if form == "huge":
        return {"retry-after": str(_HUGE_S)}
    if form == "none" or wait_s is None:
        return {}
    if form == "ms":
        return {"retry-after-ms": str(math.ceil(wait_s * 1000))}
    if form == "date":
        until = formatdate(math.ceil(now_s + wait_s), usegmt=True)
        return {"date": formatdate(now_s, usegmt=True), "retry-after": until}
    return {"retry-after": str(math.ceil(wait_s))}


def duration(seconds: float) -> str:
    """Return a time as OpenAI's headers write it: 6ms, 1.2s, 2m3s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    if seconds < 60:
        return f"{math.ceil(seconds * 1000) / 1000:g}s"
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes}m{rest}s"
