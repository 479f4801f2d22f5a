from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.llm.flow.headers import RateLimit, RateLimits, read_rate_limits, retry_after_s


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"RETRY-AFTER": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": "1e9"}, 1e9),
        ({"Retry-After": "1e308"}, 1e9),
        ({"Retry-After-Ms": "1e308"}, 1e9),
        ({"Retry-After": "9999999999999d"}, 1e9),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, 1e9),
        ({"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"Retry-After": "99999999"}, 99999999.0),
        ({"Retry-After-Ms": "-1"}, None),
        ({"Retry-After-Ms": "never"}, None),
        ({"Retry-After-Ms": "never", "Retry-After": "9"}, 9.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_the_wait_an_endpoint_asks_for_is_read(headers, seconds):
    """Gateways write it in several ways, and some write nonsense."""
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("250ms", 0.25),
        ("7s", 7.0),
        ("1.5s", 1.5),
        ("6m0s", 360.0),
        ("1m30s", 90.0),
        ("1h2m3s", 3723.0),
        ("1d", 86400.0),
        ("1m30", None),
        ("m30s", None),
        ("1m 30s", None),
        ("-1s", None),
        ("1w", None),
        ("9" * 400 + "d", None),
    ],
)
def test_durations_with_units_are_read(value, seconds):
    """OpenAI and Groq write 6m0s and 250ms where others write seconds."""
    assert retry_after_s({"retry-after": value}) == seconds


def test_a_date_to_wait_for_becomes_seconds():
    """RFC 9110 allows a date instead of seconds."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)

    assert retry_after_s({"Retry-After": later}) == pytest.approx(30, abs=2)


@given(st.text(max_size=40))
def test_any_text_to_wait_for_is_a_time_or_nothing(text):
    """Headers come from outside; the pacer counts with what is read."""
    seconds = retry_after_s({"retry-after": text})

    assert seconds is None or 0 <= seconds < float("inf")


def limits(**headers):
    return read_rate_limits(
        {f"x-ratelimit-{name.replace('_', '-')}": value for name, value in headers.items()}
    )


def test_both_limits_are_read():
    """Requests and tokens run out independently."""
    told = limits(
        limit_requests="1200",
        remaining_requests="1199",
        limit_tokens="60000",
        remaining_tokens="59000",
    )

    assert told == RateLimits(RateLimit(1200.0, 1199.0), RateLimit(60000.0, 59000.0))


def test_one_limit_may_be_told_alone():
    """Some endpoints limit requests, some tokens."""
    assert limits(limit_tokens="60000", remaining_tokens="0") == RateLimits(
        None, RateLimit(60000.0, 0.0)
    )


def test_replies_without_limits_tell_nothing():
    """What refusals have shown must not be forgotten for it."""
    assert read_rate_limits({"content-type": "application/json"}) is None


def test_what_is_left_without_a_limit_tells_nothing():
    """Without the limit nobody knows how fast it comes back."""
    assert limits(remaining_requests="5") is None


@pytest.mark.parametrize("remaining", ["", "many", "-1", "nan", "inf"])
def test_a_remainder_that_makes_no_sense_counts_as_all(remaining):
    """The limit is of use all the same."""
    assert limits(limit_requests="60", remaining_requests=remaining) == RateLimits(
        RateLimit(60.0, 60.0), None
    )


@pytest.mark.parametrize("limit", ["0", "-1", "", "none", "nan", "inf", "100, 100;w=60"])
def test_a_limit_that_makes_no_sense_is_none(limit):
    """A limit of 0 or -1 means no limit; it must not stop the run."""
    assert limits(limit_requests=limit, remaining_requests="5") == RateLimits(None, None)
