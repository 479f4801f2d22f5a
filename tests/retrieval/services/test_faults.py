"""Each way in which a service fails: a failure of the query, and never an empty ranking."""

import socket
import time
from email.utils import formatdate

import pytest
from scripted_service import Answer, running_scripted_service

from ragforge.config import RetrieverService
from ragforge.errors import CallError, EndpointError
from ragforge.retrieval.services.retriever import ServiceRetriever

from .conftest import TOKEN


def test_a_page_of_html_is_named_as_one(scripted, retriever, failure):
    """Proxies and logins answer with status 200."""
    scripted.answer = Answer("<!DOCTYPE html><title>Sign in</title>", kind="text/html")

    error = failure(retriever())

    assert error.kind == "invalid"
    assert "a page of HTML and not JSON" in str(error)
    assert "Sign in" in error.raw


def test_json_that_is_called_html_is_read(scripted, retriever, ids):
    """Servers of PHP call all they send so, unless told otherwise."""
    scripted.answer = Answer(["a"], kind="text/html; charset=UTF-8")

    assert ids(retriever(), "q") == ["a"]


def test_a_redirect_is_not_followed_with_a_secret(scripted, make_scripted, retriever, failure):
    """Another host would get the token."""
    other = make_scripted()
    scripted.answer = Answer("", 302, (("Location", f"{other.url}/steal"),))

    error = failure(retriever(headers={"Authorization": "Bearer ${TOKEN}"}))

    assert "status 302, a redirect to" in str(error)
    assert other.seen == []


def test_credentials_that_are_not_taken_end_the_run(scripted, retriever, failure):
    """Every further query would fail alike."""
    scripted.answer = Answer({"detail": f"bad token {TOKEN}"}, 401)

    error = failure(retriever(headers={"Authorization": "Bearer ${TOKEN}"}))

    assert isinstance(error, EndpointError)
    assert "does not take what is sent of ${TOKEN}" in str(error)
    assert TOKEN not in str(error)
    assert len(scripted.seen) == 1


def test_a_busy_service_is_asked_again_when_it_says(scripted, retriever, ids, waits):
    """A query that fails for the moment is no failure."""
    scripted.answers(Answer("slow down", 429, (("Retry-After", "7"),)), Answer(["a"]))

    assert ids(retriever(), "q") == ["a"]
    assert waits[0] == 7.0
    assert len(scripted.seen) == 2


def test_a_service_may_name_the_date_to_wait_for(scripted, retriever, ids, waits):
    """The header has two forms."""
    then = formatdate(time.time() + 9, usegmt=True)
    scripted.answers(Answer("", 503, (("Retry-After", then),)), Answer(["a"]))

    assert ids(retriever(), "q") == ["a"]
    assert 7 <= waits[0] <= 9


def test_a_service_that_wants_too_long_a_wait_has_failed(scripted, retriever, failure, waits):
    """A run must not stand still for an hour."""
    scripted.answer = Answer("", 429, (("Retry-After", "3600"),))

    error = failure(retriever(max_wait_s=30))

    assert "status 429" in str(error)
    assert "it asks to wait 3600 s, and max_wait_s is 30" in str(error)
    assert waits == []


def test_a_service_that_stays_busy_has_failed(scripted, retriever, failure, waits):
    """It is asked so often and no more."""
    scripted.answer = Answer("busy", 503)

    error = failure(retriever(max_attempts=3))

    assert "status 503: 'busy'" in str(error)
    assert len(scripted.seen) == 3
    assert {1.0, 2.0} <= set(waits)


def test_many_attempts_wait_no_longer_than_they_may(scripted, retriever, failure, waits):
    """The service asked for no wait at all, let alone for too long a one."""
    scripted.answer = Answer("busy", 503)

    error = failure(retriever(max_attempts=5, max_wait_s=3))

    assert str(error) == "retrievers.docs: status 503: 'busy'"
    assert len(scripted.seen) == 5
    assert max(waits) == pytest.approx(3, abs=0.5)


def test_a_reply_that_breaks_off_within_a_chunk_fails_its_query_alone(scripted, retriever, failure):
    """The service was reached: the others may well be answered."""
    scripted.answer = Answer(b"500\r\n[", headers=(("Transfer-Encoding", "chunked"),))

    error = failure(retriever())

    assert isinstance(error, CallError)
    assert "the reply broke off" in str(error)
    assert len(scripted.seen) == 1


def test_half_a_json_is_no_reply(scripted, retriever, failure):
    """A connection that broke looks like a short reply."""
    scripted.answer = Answer('{"hits": [{"id": "a"}, {"id"')

    error = failure(retriever())

    assert error.kind == "invalid"
    assert "the reply is not JSON" in str(error)


def test_a_reply_that_ends_too_early_is_no_reply(scripted, retriever, failure):
    """What came may even parse."""
    scripted.answer = Answer('["a"]', length=500)

    assert "the reply ended 495 bytes before its end" in str(failure(retriever()))


def test_the_results_of_another_query_are_refused(scripted, retriever, failure):
    """A cache or a mix-up of answers would be scored as this query's ranking."""
    scripted.answer = Answer({"query": "How?", "hits": ["a"]})

    error = failure(retriever(), "Why?")

    assert error.kind == "invalid"
    assert "for another query: 'How?' where 'Why?' was asked" in str(error)


def test_where_the_reply_repeats_the_query_can_be_said(scripted, retriever, failure, ids):
    """Services tell it in many places, and with other blanks."""
    scripted.answer = Answer({"request": {"q": " why? "}, "hits": ["a"]})

    assert ids(retriever(echo="request.q"), "Why?") == ["a"]
    assert "for another query" in str(failure(retriever(echo="request.q"), "When?"))


@pytest.mark.parametrize(
    ("asked", "repeated", "is_same"),
    [
        ("How long is it?", "how long is it", True),
        ("返品は？", "返品は", True),  # noqa: RUF001
        ("What is C++?", "What is C", False),
        ("?", "!", False),
    ],
)
def test_a_query_may_be_repeated_without_its_mark(
    scripted, retriever, failure, ids, asked, repeated, is_same
):
    """Services lower a query and take its punctuation away before they search."""
    scripted.answer = Answer({"query": repeated, "hits": ["a"]})

    if is_same:
        assert ids(retriever(), asked) == ["a"]
    else:
        assert "for another query" in str(failure(retriever(), asked))


def test_a_service_that_rewrites_queries_can_be_let(scripted, retriever, ids):
    """It repeats what it made of the question."""
    scripted.answer = Answer({"query": "reason for returns", "hits": ["a"]})

    assert ids(retriever(echo="none"), "Why?") == ["a"]


@pytest.mark.parametrize(
    ("body", "path", "told"),
    [
        ({"error": "index is down", "hits": []}, "", "tells of an error: index is down"),
        ({"ok": False, "reason": "quota", "hits": []}, "ok == `false` && reason", "quota"),
        ({"errors": [{"code": 7}], "hits": []}, "", '[{"code": 7}]'),
    ],
)
def test_an_error_inside_of_a_good_status_is_an_error(
    scripted, retriever, failure, body, path, told
):
    """An empty list beside it found nothing of anything."""
    scripted.answer = Answer(body)

    error = failure(retriever(error=path))

    assert error.kind == "error"
    assert told in str(error)


def test_a_service_that_takes_too_long_has_failed(scripted, retriever, failure):
    """A timeout is one query's failure; it is not asked again, as it may work on."""
    scripted.answer = lambda _: scripted.released.wait(20) and Answer([])

    error = failure(retriever(timeout_s=0.2))

    assert "no reply in 0.2 s" in str(error)
    assert len(scripted.seen) == 1


def test_a_service_that_is_not_there_is_tried_again(client_of, retriever, failure, waits):
    """It may be starting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    error = failure(retriever(url=f"http://127.0.0.1:{port}/x"))

    assert isinstance(error, EndpointError)
    assert "no reply" in str(error)
    assert "3 attempts did not reach it" in str(error)
    assert {1.0, 2.0} <= set(waits)


def test_a_service_that_goes_away_fails_its_queries(retriever, ask, make_scripted):
    """It was there: the next query may work, and the run goes on."""
    with running_scripted_service() as server:
        found = retriever(url=server.url, max_attempts=1)
        ask(found, "q")

    with pytest.raises(CallError, match="no reply"):
        ask(found, "q")


def test_that_it_is_waited_for_is_told_once(scripted, client_of, ask):
    """A run that stands still looks like one that hangs."""
    service = RetrieverService(url=scripted.url)
    busy = Answer("slow down", 429, (("Retry-After", "7"),))
    scripted.answers(busy, busy, Answer([]))
    notes = []

    ask(
        ServiceRetriever("docs", service, client=client_of("retrievers.docs", service, {}, notes)),
        "q",
    )

    [note] = notes
    assert note == "retrievers.docs: status 429: 'slow down'; waiting 7 s (said once)"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"results": "data.items"},
            "results = 'data.items': matches nothing in the reply, which is an object with 'hits'",
        ),
        (
            {"results": "hits[0]"},
            "results = 'hits[0]': matches an object with 'uid', 'tags', 'meta', 'nan' where a list",
        ),
        ({"results": "hits[].[uid]"}, "matches a list of lists where a list of results is wanted"),
        (
            {"results": "hits", "id": "tags"},
            "id = 'tags': matches a list of 2 where one value is wanted; tags[0] is the first",
        ),
        (
            {"results": "hits", "id": "meta"},
            "id = 'meta': matches an object with 'x' where one value is wanted",
        ),
        (
            {"results": "hits", "id": "_id", "text": "body"},
            "id = '_id' and retrievers.docs.text = 'body': match nothing in any of 1 results",
        ),
        ({"results": "hits", "id": "uid", "score": "uid"}, "matches 'u1' where a number is wanted"),
        ({"results": "hits", "id": "uid", "score": "nan"}, "matches nan where a number is wanted"),
        ({"results": "length(uid)"}, "results = 'length(uid)': "),
    ],
)
def test_paths_that_match_nothing_or_too_much_are_failures(
    scripted, retriever, failure, fields, told
):
    """They are named with what stands there, and no guess takes their place."""
    scripted.answer = Answer(
        {"hits": [{"uid": "u1", "tags": ["a", "b"], "meta": {"x": 1}, "nan": float("nan")}]}
    )

    error = failure(retriever(**fields))

    assert error.kind == "invalid"
    assert told in str(error)


def test_a_result_that_alone_lacks_its_fields_fails_the_query(scripted, retriever, failure):
    """Left out, it would move all below it up."""
    scripted.answer = Answer({"hits": [{"uid": "u1"}, {"other": 1}]})

    assert "cannot tell which chunk" in str(failure(retriever(results="hits", id="uid")))


def test_a_reply_without_results_names_the_remedy(scripted, retriever, failure):
    """The user has a command that looks for the paths."""
    scripted.answer = Answer({"answer": 42})

    assert "`ragforge probe docs QUERY` looks for one" in str(failure(retriever()))


def test_failures_of_a_call_are_call_errors(scripted, retriever, ask):
    """The runner makes failures of those, and goes on with the next query."""
    scripted.answer = Answer("x", 500)

    with pytest.raises(CallError, match="status 500"):
        ask(retriever(), "q")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"status": "error", "message": "index missing", "results": []}, "index missing"),
        ({"status": "FAILED", "results": []}, "status is FAILED"),
        ({"success": False, "results": []}, "success is false"),
        ({"status": 500, "results": []}, "status is 500"),
        ({"status_code": "429", "results": []}, "status_code is 429"),
        ({"code": 503, "msg": "busy now", "results": []}, "code is 503: busy now"),
        ({"message": "Rate limit exceeded", "results": []}, "Rate limit exceeded"),
        ({"timed_out": True, "results": ["a"]}, "the search timed out"),
        ({"_shards": {"total": 5, "failed": 4}, "results": ["a"]}, "4 shards failed"),
    ],
)
def test_a_reply_that_calls_itself_failed_found_not_nothing(
    scripted, retriever, failure, body, told
):
    """A service without its index scored 0 on every query, as if it had looked."""
    scripted.answer = Answer(body)

    error = failure(retriever())

    assert error.kind == "error"
    assert told in str(error)


@pytest.mark.parametrize(
    "outcome",
    [
        {"status": "ok"},
        {"success": True},
        {"status": 200, "timed_out": False},
        {"_shards": {"total": 5, "failed": 0}},
        {"_shards": "five"},
        {"code": 0, "message": "success"},
        {"code": "200", "message": "Nothing found, without errors."},
        {},
    ],
)
def test_a_reply_that_calls_itself_good_may_have_found_nothing(scripted, retriever, ids, outcome):
    """Nothing found is a value."""
    scripted.answer = Answer({**outcome, "results": []})

    assert ids(retriever(), "Why?") == []


def test_an_error_path_of_ones_own_decides_alone(scripted, retriever, ids):
    """Where `success` says whether something was found, that can be said."""
    scripted.answer = Answer({"success": False, "results": []})

    assert ids(retriever(error="fault"), "Why?") == []


def test_a_message_beside_results_is_none_of_a_fault(scripted, retriever, ids):
    """What was found is there, whatever else is said."""
    scripted.answer = Answer(
        {"message": "You may ask 3 more before the rate limit.", "hits": ["a"]}
    )

    assert ids(retriever(), "Why?") == ["a"]


def test_another_query_is_known_by_the_name_it_was_asked_under(scripted, retriever, failure, ids):
    """A service that calls it `question` gave the ranking of another one, and it was scored."""
    body = {"question": "{query}", "in": {"q": "{query}"}, "top": "{k}"}
    for reply in ({"question": "How?"}, {"in": {"q": "How?"}}):
        scripted.answer = Answer({**reply, "hits": ["a"]})
        error = failure(retriever(body=body), "Why?")
        assert error.kind == "invalid"
        assert "for another query: 'How?' where 'Why?' was asked" in str(error)
        assert ids(retriever(body=body, echo="none"), "Why?") == ["a"]

    scripted.answer = Answer({"question": "Asked: why?", "hits": ["a"]})
    assert ids(retriever(body=body), "Why?") == ["a"]


def test_the_answer_of_a_system_is_no_other_query(scripted, system, answer):
    """Chats take a text and give one under the same name."""
    for name in ("text", "answer"):
        scripted.answer = Answer({name: "Because.", "answer": "Because."})
        assert answer(system(body={name: "{query}"})).text == "Because."

    scripted.answer = Answer({"question": "How?", "answer": "Because."})
    with pytest.raises(CallError, match="for another query: 'How\\?'"):
        answer(system(body={"question": "{query}"}))
