import json
import socket

import pytest

from ragforge.errors import CallError, UsageError
from ragforge.retrieval.rag_systems import HttpSystem


def failure(ask, answerer):
    with pytest.raises(CallError, match=r"http://127\.0\.0\.1:\d+/search: ") as caught:
        ask(answerer)
    return caught.value


def test_the_query_is_posted_as_json(server, ask):
    """This is the contract that a user's service is written to."""
    server.body = b'{"answer": "a"}'

    ask(HttpSystem(server.url), "Wie groß?")

    [(_, headers, content)] = server.requests
    assert headers["Content-Type"] == "application/json"
    assert json.loads(content) == {"query": "Wie groß?"}


@pytest.mark.parametrize("name", ["chunk_ids", "contexts", "retrieved", "sources"])
def test_the_reply_holds_the_answer_and_its_context(server, ask, name):
    """These names are documented."""
    server.body = json.dumps({"answer": "Krill.", name: ["a"]}).encode()

    found = ask(HttpSystem(server.url))

    assert (found.text, found.context[0].ids) == ("Krill.", ("a",))


def test_the_answer_to_another_query_is_a_failure_of_the_query(server, ask):
    """A mix-up of replies would be graded as this query's answer."""
    server.body = b'{"query": "something else", "answer": "Krill."}'

    error = failure(ask, HttpSystem(server.url))

    assert error.kind == "invalid"
    assert "is for another query: 'something else'" in str(error)


@pytest.mark.parametrize("reply", [b'""', b'{"answer": ""}'])
def test_an_empty_answer_stays_an_answer(server, ask, reply):
    """The system said nothing, and said it in a good reply."""
    server.body = reply

    assert ask(HttpSystem(server.url)).text == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>Please log in</html>", "is not JSON: '<html>Please log in</html>'"),
        (b"", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "no text as its answer"),
        (b'{"detail": "busy"}', "no text as its answer"),
        (b'{"answer": null}', "no text as its answer"),
        (b'["Krill."]', "expected a text"),
        (b"null", "expected a text"),
        (b'{"answer": "\\ud800"}', "half a surrogate pair"),
    ],
)
def test_a_reply_without_an_answer_is_a_failure(server, ask, body, message):
    """A login page graded as an answer would be a score of the proxy."""
    server.body = body

    error = failure(ask, HttpSystem(server.url))

    assert error.kind == "invalid"
    assert message in str(error)


def test_an_error_status_is_a_failure_even_with_an_answer(server, ask):
    """Services apologise in the body of an error."""
    server.status, server.body = 500, b'{"answer": "Sorry."}'

    error = failure(ask, HttpSystem(server.url))

    assert error.kind == "error"
    assert "status 500" in str(error)


def test_redirects_are_refused(server, make_server, ask):
    """Queries may be confidential and must reach no server but the one that was named."""
    other = make_server()
    server.status, server.headers = 307, (("Location", other.url),)

    assert "a redirect to" in str(failure(ask, HttpSystem(server.url)))
    assert other.requests == []


@pytest.mark.parametrize("hang", ["silent", "endless"])
def test_a_service_that_hangs_fails_the_query_in_time(server, ask, hang):
    """One lost connection, or one that trickles, must not hold up the run."""
    setattr(server, hang, True)

    assert "no reply in 0.2 s" in str(failure(ask, HttpSystem(server.url, timeout_s=0.2)))


@pytest.mark.parametrize(
    "source",
    [{"title": "Returns", "url": "https://x.org/a.md"}, {"metadata": {"path": "a.md"}}],
)
def test_sources_may_be_known_by_title_and_address(server, ask, source):
    """Such a list is for readers; the answer beside it was lost."""
    server.body = json.dumps({"answer": "Thirty days.", "sources": [source]}).encode()

    answer = ask(HttpSystem(server.url), "q")

    assert answer.text == "Thirty days."
    assert answer.context[0].doc_ids[0].endswith("a.md")


def test_an_answer_that_calls_itself_failed_is_none(server, ask):
    """An apology would be graded as a wrong answer."""
    server.body = b'{"answer": "Sorry, try again.", "success": false, "message": "quota"}'

    error = failure(ask, HttpSystem(server.url))

    assert "no answer, but an error: success is false: quota" in str(error)


def test_a_huge_reply_is_cut_off(server, ask):
    """A service that returns its whole index must not fill the memory."""
    server.body = b" " * (17 * 1024 * 1024)

    assert "longer than 16,000,000 bytes" in str(failure(ask, HttpSystem(server.url)))


def test_a_refused_connection_is_a_failure_of_the_query(ask):
    """A service that restarts loses some queries, not the run."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    error = failure(ask, HttpSystem(f"http://127.0.0.1:{port}/search"))

    assert "no reply: " in str(error)


def test_credentials_in_the_address_are_refused_and_not_repeated():
    """Secrets come from the environment only."""
    with pytest.raises(UsageError, match=r"system address .* function f\(query\)") as caught:
        HttpSystem("https://me:s3cret@host/ask")

    assert "s3cret" not in str(caught.value)
