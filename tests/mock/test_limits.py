"""Limits: the arithmetic under a clock that the test turns, and what replies say of it."""

from email.utils import parsedate_to_datetime

import pytest

from ragforge.mock.app import Limits, RefillingBucket, duration, retry_after_headers
from ragforge.mock.script import Script


class Clock:
    """A clock that stands until it is turned."""

    now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    """A clock that the test turns."""
    return Clock()


@pytest.fixture
def bucket(clock):
    """Two a second, ten at once."""
    return RefillingBucket(120, 5.0, clock)


def test_a_bucket_starts_full(bucket):
    """The first burst goes through, as at a provider."""
    assert bucket.room() == 10


def test_what_is_charged_is_gone(bucket):
    """Else there is no limit."""
    bucket.charge(4)

    assert bucket.room() == 6


def test_a_bucket_refills_at_its_rate(bucket, clock):
    """The rate is what holds in the long run."""
    bucket.charge(10)
    clock.now_s += 2

    assert bucket.room() == 4


def test_a_bucket_never_holds_more_than_fits(bucket, clock):
    """An hour of silence must not buy an hour's burst."""
    clock.now_s += 3600

    assert bucket.room() == 10


def test_the_wait_is_the_time_until_there_is_room(bucket):
    """It is what Retry-After promises."""
    bucket.charge(10)

    assert bucket.wait_s(3) == 1.5


def test_nothing_waits_while_there_is_room(bucket):
    """A limit that is not reached costs nothing."""
    assert bucket.wait_s(10) == 0


def test_more_than_fits_waits_for_the_full_bucket(bucket):
    """A long prompt must get through at some time."""
    bucket.charge(1)

    assert bucket.wait_s(50) == 0.5


def test_an_overdraft_is_paid_back(bucket, clock):
    """Replies are charged when they are made, whether they fit or not."""
    bucket.charge(30)
    clock.now_s += 10

    assert bucket.room() == 0


def test_one_always_fits(clock):
    """A rate of one a minute with a burst of a second would else let nothing through."""
    assert RefillingBucket(1, 1.0, clock).wait_s(1) == 0


def test_the_scarcer_limit_is_named(clock):
    """The client must wait for both, so for the longer one."""
    limits = Limits(Script(rpm=60, tpm=60), clock)
    limits.take(1)
    limits.charge_reply(30)

    assert limits.take(1).what == "tokens"


def test_a_refused_request_takes_no_room(clock):
    """A client that asks too often must not lock itself out."""
    limits = Limits(Script(rpm=60), clock)
    limits.take(1)
    limits.take(1)
    clock.now_s += 1

    assert limits.take(1) is None


def test_headers_tell_limit_room_and_time(clock):
    """Clients learn their pace from them."""
    limits = Limits(Script(rpm=1200), clock)
    limits.take(1)

    assert limits.headers() == {
        "x-ratelimit-limit-requests": "1200",
        "x-ratelimit-remaining-requests": "19",
        "x-ratelimit-reset-requests": "50ms",
    }


def test_each_limit_has_its_headers(clock):
    """Requests and tokens run out apart."""
    headers = Limits(Script(rpm=60, tpm=6000), clock).headers()

    assert headers["x-ratelimit-remaining-tokens"] == "100"
    assert headers["x-ratelimit-remaining-requests"] == "1"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0ms"), (0.0055, "6ms"), (1.2, "1.2s"), (59.9, "59.9s"), (123, "2m3s")],
)
def test_times_are_written_as_openai_writes_them(seconds, shown):
    """Clients parse these forms."""
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ("none", {}),
        ("seconds", {"retry-after": "2"}),
        ("ms", {"retry-after-ms": "1200"}),
        (
            "date",
            {
                "date": "Thu, 01 Jan 1970 00:00:10 GMT",
                "retry-after": "Thu, 01 Jan 1970 00:00:12 GMT",
            },
        ),
        ("lie", {"retry-after": "0"}),
        ("huge", {"retry-after": "3600"}),
    ],
)
def test_retry_after_has_six_forms(form, headers):
    """Servers differ, and so must be met all."""
    assert retry_after_headers(form, 1.2, 10.0) == headers


def test_seconds_are_rounded_up():
    """A client that comes when told must be let in."""
    assert retry_after_headers("seconds", 0.001, 0.0) == {"retry-after": "1"}


def test_the_burst_goes_through_and_no_more(start, plain):
    """Three fit in half a minute of six a minute."""
    client = start(rpm=6, burst_s=30)
    statuses = [client.chat(plain(str(n))).status for n in range(4)]

    assert statuses == [200, 200, 200, 429]


def test_a_limit_of_tokens_counts_prompt_and_reply(start, plain):
    """A provider's does."""
    client = start(tpm=60, burst_s=1)
    statuses = [client.chat(plain("x" * 40)).status for _ in range(2)]

    assert statuses == [200, 429]


def test_a_429_of_a_limit_says_which(start, plain):
    """Code and type tell a limit from a used-up quota."""
    client = start(rpm=1)
    client.chat(plain())
    error = client.chat(plain()).error

    assert (error["code"], error["type"]) == ("rate_limit_exceeded", "requests")


def test_a_429_of_a_limit_says_when(start, plain):
    """One an hour: the next is let in in an hour, less the time the test takes."""
    client = start(rpm=1 / 60)
    client.chat(plain())

    assert 3500 <= int(client.chat(plain()).headers["retry-after"]) <= 3600


def test_a_date_says_when(start, plain):
    """The second form that HTTP allows."""
    client = start(rpm=1, retry_after="date")
    client.chat(plain())

    assert parsedate_to_datetime(client.chat(plain()).headers["retry-after"]).year >= 2025


def test_good_replies_carry_the_headers(start, plain):
    """A client that reads them never meets a 429."""
    headers = start(rpm=6000).chat(plain()).headers

    assert headers["x-ratelimit-limit-requests"] == "6000"


def test_the_headers_can_be_left_out(start, plain):
    """Many servers send none."""
    headers = start(rpm=6000, rl_headers="off").chat(plain()).headers

    assert not [name for name in headers if name.startswith("x-ratelimit")]


def test_a_429_is_not_billed_and_counted_as_rejected(start, plain):
    """It is what a client's pacing is measured by."""
    client = start(rpm=1)
    for _ in range(3):
        client.chat(plain())

    assert client.running.ledger()["billed"] == 1
    assert client.running.stats()["rejected"] == 2


def test_more_at_once_than_allowed_are_rejected(start, plain):
    """Local servers limit what they work on, not how often they are asked."""
    client = start(p_hang=1, max_inflight=1)
    with client.waiting(plain("first")):
        client.wait_until(in_flight=1)
        status = client.chat(plain("second")).status

    assert status == 429


@pytest.mark.parametrize(("form", "said"), [("lie", "0"), ("huge", "3600")])
def test_lies_are_told_with_every_429(start, plain, form, said):
    """Also where there is no time to tell."""
    assert start(p429=1, retry_after=form).chat(plain()).headers["retry-after"] == said


def test_the_quota_ends_after_so_many_replies(start, plain):
    """Waiting does not help, which the code says."""
    client = start(quota_after=2)
    replies = [client.chat(plain()) for _ in range(3)]

    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[2].error["code"] == "insufficient_quota"


def test_a_reset_fills_the_quota(start, plain):
    """As if the bill were paid."""
    client = start(quota_after=1)
    client.chat(plain())
    client.running.reset()

    assert client.chat(plain()).status == 200
