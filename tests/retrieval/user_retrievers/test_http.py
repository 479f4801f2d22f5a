import json
import socket

import pytest

from ragforge.errors import CallError, UsageError
from ragforge.records import Hit
from ragforge.retrieval.user_retrievers import HttpRetriever


def failure(ask, retriever):
    with pytest.raises(CallError, match=r"http://127\.0\.0\.1:\d+/search: ") as caught:
        ask(retriever, "q")
    return caught.value


def test_the_query_is_posted_as_json(server, ask):
    """This is the contract that a user's service is written to."""
    ask(HttpRetriever(f"{server.url}?index=x y"), "Wie groß?", k=3)

    [(path, headers, content)] = server.requests
    assert path == "/search?index=x%20y"
    assert headers["Content-Type"] == "application/json"
    assert json.loads(content) == {"query": "Wie groß?", "k": 3}


@pytest.mark.parametrize(
    "reply",
    [
        {"hits": [{"chunk_id": "b", "score": 2.5}, {"chunk_id": "a", "score": 1}]},
        {"results": [{"id": "b", "score": 2.5}, {"id": "a", "score": 1}]},
        {"documents": [["b", 2.5], ["a", 1]]},
        [{"id": "b", "score": 2.5}, {"id": "a", "score": 1}],
    ],
)
def test_replies_of_several_shapes_are_read(server, ask, reply):
    """Services that exist already should not have to change."""
    server.body = json.dumps(reply).encode()

    assert ask(HttpRetriever(server.url), "q") == [
        Hit(chunk_id="b", score=2.5),
        Hit(chunk_id="a", score=1),
    ]


def test_replies_are_matched_by_text(server, chunks, ids):
    """Services often return the text with an id of their own."""
    server.body = b'[{"id": "0b5e", "text": "blue"}]'

    assert ids(HttpRetriever(server.url, chunks(a="red", b="blue")), "q") == ["b"]


def test_oddities_are_told(server, ask):
    """A service that repeats chunks has a defect its owner wants to know."""
    server.body = b'["a", "a"]'
    notes = []

    ask(HttpRetriever(server.url, note=notes.append), "q")

    assert len(notes) == 1


def test_an_error_status_is_a_failure_of_the_query(server, ask):
    """No reply is never an empty ranking, which would be scored 0."""
    server.status, server.body = 500, b"index is down"

    error = failure(ask, HttpRetriever(server.url))

    assert error.kind == "error"
    assert "status 500: 'index is down'" in str(error)
    assert error.raw == "index is down"


def test_an_html_page_is_an_invalid_reply(server, ask):
    """Proxies and login pages answer with status 200."""
    server.body = b"<html>Please log in</html>"

    error = failure(ask, HttpRetriever(server.url))

    assert error.kind == "invalid"
    assert "is not JSON: '<html>Please log in</html>'" in str(error)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"answer": "busy"}', "mapping with 'answer'; expected a list under one of hits"),
        (b'{"error": "busy"}', "the result tells of an 'error': 'busy'"),
        (b'{"error": "busy", "hits": []}', "the result tells of an 'error': 'busy'"),
        (b'{"status": "error", "hits": []}', "the result tells of an error: status is error"),
        (b'{"success": false, "message": "busy"}', "success is false: busy"),
        (b'{"status": 500, "hits": []}', "status is 500"),
        (b'{"code": 503, "msg": "busy", "hits": []}', "code is 503: busy"),
        (b'{"message": "Rate limit exceeded", "hits": []}', "Rate limit exceeded"),
        (b'{"timed_out": true, "hits": ["a"]}', "the search timed out"),
        (b'{"hits": null}', "type NoneType"),
        (b'[{"id": "a", "score": NaN}]', "score nan"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"", "is not JSON"),
    ],
)
def test_json_of_another_shape_is_an_invalid_reply(server, ask, body, message):
    """An error object must not be read as a search that found nothing."""
    server.body = body

    error = failure(ask, HttpRetriever(server.url))

    assert error.kind == "invalid"
    assert message in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        {"results": [], "error": "shard failed"},
        {"hits": ["a"], "errors": [{"reason": "shard failed"}]},
        {"hits": {"hits": [], "error": {"reason": "shard failed"}}},
    ],
)
def test_an_error_beside_results_is_a_failure_of_the_query(server, ask, reply):
    """A service that broke down half way has not found nothing."""
    server.body = json.dumps(reply).encode()

    error = failure(ask, HttpRetriever(server.url))

    assert "shard failed" in str(error)


@pytest.mark.parametrize("error", [None, "", [], {}, False])
def test_an_error_that_says_nothing_is_none(server, ask, error):
    """Many services always have the field."""
    server.body = json.dumps({"results": ["a"], "error": error}).encode()

    assert ask(HttpRetriever(server.url), "q") == [Hit(chunk_id="a", score=1)]


def test_the_results_of_another_query_are_a_failure_of_the_query(server, ask):
    """A mix-up of replies would be scored as this query's ranking, as it is not by settings."""
    server.body = b'{"query": "something else", "results": ["a"]}'

    error = failure(ask, HttpRetriever(server.url))

    assert error.kind == "invalid"
    assert "is for another query: 'something else' where 'q' was asked" in str(error)
    assert error.raw.startswith('{"query"')


def test_a_query_may_be_repeated_with_other_blanks(server, ask):
    """It is the same one."""
    server.body = b'{"query": " Q ", "results": ["a"]}'

    assert ask(HttpRetriever(server.url), "q") == [Hit(chunk_id="a", score=1)]


def test_a_service_that_is_asked_too_much_is_not_asked_again(server, ask):
    """A second try would hide the failure and make the latency one of two."""
    server.status = 429

    error = failure(ask, HttpRetriever(server.url))

    assert len(server.requests) == 1
    assert "--concurrency" in str(error)


@pytest.mark.parametrize("status", [302, 307, 308])
def test_redirects_are_refused(server, make_server, ask, status):
    """Queries may be confidential and must reach no server but the one that was named."""
    other = make_server()
    server.status, server.headers = status, (("Location", other.url),)

    error = failure(ask, HttpRetriever(server.url))

    assert error.kind == "error"
    assert f"status {status}, a redirect to '{other.url}'" in str(error)
    assert other.requests == []


@pytest.mark.parametrize("hang", ["silent", "endless"])
def test_a_service_that_hangs_fails_the_query_in_time(server, ask, hang):
    """One lost connection, or one that trickles, must not hold up the run."""
    setattr(server, hang, True)

    error = failure(ask, HttpRetriever(server.url, timeout_s=0.2))

    assert error.kind == "error"
    assert "no reply in 0.2 s" in str(error)


def test_a_huge_reply_is_cut_off(server, ask):
    """A service that returns its whole index must not fill the memory."""
    server.body = b" " * (17 * 1024 * 1024)

    error = failure(ask, HttpRetriever(server.url))

    assert error.kind == "invalid"
    assert "longer than 16,000,000 bytes" in str(error)


def test_a_refused_connection_is_a_failure_of_the_query(ask):
    """A service that restarts loses some queries, not the run."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    error = failure(ask, HttpRetriever(f"http://127.0.0.1:{port}/search"))

    assert error.kind == "error"
    assert "no reply: " in str(error)


def test_proxies_of_the_environment_are_not_used(server, ask, monkeypatch):
    """A service on the own machine must not be looked for elsewhere."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.body = b'["a"]'

    assert ask(HttpRetriever(server.url), "q") == [Hit(chunk_id="a", score=1)]


def test_keys_in_the_address_are_not_shown(server, ask):
    """Messages end up in files that are passed on."""
    server.status = 403

    assert "s3cret" not in str(failure(ask, HttpRetriever(f"{server.url}?key=s3cret")))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:///etc/passwd", "expected http://HOST"),
        ("ftp://host/x", "expected http://HOST"),
        ("http://", "expected http://HOST"),
        ("http://host:port/", "Port could not be cast .*; expected http://HOST"),
        ("http://[::1/", "Invalid IPv6 URL; expected http://HOST"),
        (f"http://{'a' * 70}.org/", "expected http://HOST"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused(url, message):
    """The mistake must show before the first query, and no file be read as if it were a reply."""
    with pytest.raises(UsageError, match=message):
        HttpRetriever(url)


def test_credentials_in_the_address_are_refused_and_not_repeated():
    """Secrets come from the environment only."""
    with pytest.raises(UsageError, match="holds a user name or password") as caught:
        HttpRetriever("https://me:s3cret@host/search")

    assert "s3cret" not in str(caught.value)
