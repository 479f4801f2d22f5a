"""Rate limits and waits in the headers of replies."""

import email.utils
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_WAIT_S = 1e9
"""What any longer wait counts as; no calendar and no clock goes as far as some endpoints ask."""
_PART = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)(ms|s|m|h|d)")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit that an endpoint states: so many a minute, so many left."""

    per_minute: float
    remaining: float


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of a reply's headers; None where it tells none."""

    requests: RateLimit | None
    tokens: RateLimit | None


def read_rate_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """Return the limits in `x-ratelimit-limit-…` and `x-ratelimit-remaining-…`, None if none.

    Args:
        headers: Looked up as given: without regard to case where the mapping does so.
    """
    if "x-ratelimit-limit-requests" not in headers and "x-ratelimit-limit-tokens" not in headers:
        return None
    return RateLimits(_rate_limit(headers, "requests"), _rate_limit(headers, "tokens"))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a reply asks to wait, None where it does not say or makes no sense.

    They are 0 to LONGEST_WAIT_S.

    Args:
        headers: Looked up without regard to case. `retry-after-ms` goes before `retry-after`,
            which holds seconds or an HTTP date. A date is compared with the reply's own, where
            it carries one: the clock here may be wrong.
    """
    low = {name.lower(): value.strip() for name, value in headers.items()}
    if "retry-after-ms" in low:
        milliseconds = _number(low["retry-after-ms"])
        if milliseconds is not None:
            return min(milliseconds / 1000, LONGEST_WAIT_S)
    value = low.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, low.get("date", ""))
    return None if seconds is None else min(seconds, LONGEST_WAIT_S)


def _rate_limit(headers: Mapping[str, str], what: str) -> RateLimit | None:
    limit = _number(headers.get(f"x-ratelimit-limit-{what}", ""))
    remaining = _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
    if not limit:
        return None
    return RateLimit(limit, limit if remaining is None else remaining)


def _number(text: str) -> float | None:
    """Return a finite number from 0, None for anything else."""
    try:
        number = float(text)
    except ValueError:
        return _duration(text)
    return number if math.isfinite(number) and number >= 0 else None


def _duration(text: str) -> float | None:
    """Return the seconds of a duration such as 1m30s or 250ms."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    return seconds if math.isfinite(seconds) else None


def _until(value: str, date: str) -> float | None:
    then = _timestamp(value)
    if then is None:
        return None
    now = _timestamp(date)
    return max(0.0, then - (time.time() if now is None else now))


def _timestamp(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
