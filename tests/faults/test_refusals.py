"""Rows 14, 15 and 44: the endpoint will not have it, or wants the texts to go elsewhere."""

import pytest

AT_ONCE = 16
QUIET = ("--concurrency", str(AT_ONCE), "-q")


@pytest.fixture
def out_of_money(start, product):
    """A run of 180 pairs whose quota ends with the 100th reply."""
    ended = product(start(latency="fixed:20", quota_after=100), 180)
    return ended, ended.main(*QUIET)


def test_a_quota_that_is_used_up_stops_the_sends(out_of_money):
    """Row 14: each further call is refused alike (32 at c=32; here 16 at c=16)."""
    run, _ = out_of_money

    assert run.endpoint.count("requests") - 100 <= AT_ONCE


def test_a_quota_that_is_used_up_is_told(out_of_money):
    """Row 14: the user has to pay, not to wait."""
    _, ended = out_of_money

    assert ended.code == 4
    assert "exceeded your current quota" in ended.err


def test_replies_before_the_quota_ended_are_kept(out_of_money):
    """Row 14: they are paid for."""
    run, _ = out_of_money

    assert run.bought == 100


def test_a_run_goes_on_when_the_quota_is_renewed(out_of_money):
    """Row 14: exactly the rest is bought."""
    run, _ = out_of_money
    run.endpoint.reset()

    assert run.main(*QUIET).code == 0
    assert run.endpoint.count("requests") == 80
    assert run.grades == run.expected


REFUSALS = {
    "401": ({"auth": "sk-another"}, "HTTP 401"),
    "403": ({"always_status": 403}, "HTTP 403"),
    "404": ({"always_status": 404}, "HTTP 404"),
}


@pytest.mark.parametrize(("script", "told"), REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("transport", ["aiohttp", "httpx2"])
def test_a_refusal_that_stays_stops_the_run(start, product, script, told, transport):
    """Row 15: nothing that follows could succeed (at most one send a worker, none repeated)."""
    refused = product(start(**script), 100)

    ended = refused.main(*QUIET, "--transport", transport)

    assert ended.code == 4
    assert told in ended.err
    assert refused.endpoint.count("requests") <= AT_ONCE


def test_a_request_that_is_refused_fails_alone(start, product):
    """Row 15: one text that a filter dislikes must not cost the others."""
    flagged = product(start(bad_text="Note no. 7:"), 60)

    assert flagged.main(*QUIET).code == 0

    assert flagged.grades == [None if number == 7 else number % 4 for number in range(60)]


def test_a_request_that_is_refused_is_not_repeated(start, product):
    """Row 15: it would be refused again."""
    flagged = product(start(bad_text="Note no. 7:"), 60)

    flagged.main(*QUIET)

    assert flagged.endpoint.count("requests") == 60


def test_a_first_request_that_is_refused_teaches_nothing(start, product):
    """Row 15: the first request also finds out how the endpoint wants to be asked."""
    flagged = product(start(bad_text="Note no. 0:"), 60)

    assert flagged.main("-q", "--concurrency", "1").code == 0

    assert flagged.endpoint.count("requests") == 60


@pytest.mark.parametrize("transport", ["aiohttp", "httpx2"])
def test_a_redirect_takes_nothing_to_another_server(start, product, transport):
    """Row 44: key and texts are meant for one server only."""
    other = start()
    lured = product(start(redirect_to=f"{other.url}/chat/completions"), 40)

    ended = lured.main(*QUIET, "--transport", transport)

    assert ended.code == 4
    assert "redirects to" in ended.err
    assert other.count("connections") == 0


@pytest.fixture
def proxied(start, product, monkeypatch):
    """A run whose environment names a proxy for everything."""
    proxy = start()
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return proxy, product(start(), 10)


@pytest.mark.parametrize("transport", ["auto", "aiohttp", "httpx2"])
def test_a_proxy_of_the_environment_is_not_used_unasked(proxied, transport):
    """Row 44: a variable that somebody set once must not reroute a corpus."""
    proxy, run = proxied

    assert run.main("-q", "--transport", transport).code == 0
    assert proxy.count("connections") == 0


@pytest.mark.parametrize("transport", ["auto", "aiohttp", "httpx2"])
def test_a_proxy_that_is_allowed_is_used(proxied, transport):
    """Row 44: behind a firewall it is the only way."""
    proxy, run = proxied

    run.main("-q", "--transport", transport, "--proxy", "environment", "--max-attempts", "1")

    assert proxy.count("connections") > 0
    assert run.endpoint.count("connections") == 0
