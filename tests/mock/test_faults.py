"""Every fault, as a client meets it."""

import contextlib
import http.client
import json
import time

import pytest

from ragforge.llm.structured import InvalidReplyError, parse_object
from ragforge.mock.content import Content, spoil
from ragforge.mock.script import Draws
from ragforge.stages.judge.llm import RelevanceReply

VALUE = {"reasoning": "it says so", "evidence": "", "contains_answer": False, "grade": 1}
GRADE = {"properties": {"grade": {"type": "integer", "enum": [0, 1, 2, 3]}}}
GOOD = Content(json.dumps(VALUE), VALUE, GRADE)


def variants(fault, good=GOOD):
    """Return everything that a fault makes of a reply."""
    return {spoil(fault, good, Draws(number)).content for number in range(200)}


@pytest.mark.parametrize(
    ("name", "status"), [("p429", 429), ("p500", 500), ("p503", 503), ("p502_html", 502)]
)
def test_error_faults_come_with_their_status(start, plain, name, status):
    """Clients decide by the status whether to try again."""
    assert start(**{name: 1}).chat(plain()).status == status


@pytest.mark.parametrize("name", ["p429", "p500", "p503"])
def test_error_faults_have_openais_shape(start, plain, name):
    """A client reads message, type, param and code."""
    error = start(**{name: 1}).chat(plain()).error

    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("name", ["p429", "p500", "p503", "p502_html", "p_reset"])
def test_faults_before_the_model_works_are_not_billed(start, plain, name):
    """The ledger must be what a provider would charge."""
    client = start(**{name: 1})
    with contextlib.suppress(ConnectionError):
        client.chat(plain())

    assert client.running.ledger()["billed"] == 0


@pytest.mark.parametrize(
    "name",
    [
        "p_badbody",
        "p_html200",
        "p_empty",
        "p_no_usage",
        "p_badjson",
        "p_fence",
        "p_think",
        "p_schema",
        "p_length",
        "p_filter",
        "p_refusal",
        "p_hostile",
    ],
)
def test_useless_replies_are_billed(start, judging, name):
    """A provider charges for a reply whether or not it is any use."""
    client = start(**{name: 1})
    client.chat(judging())

    assert client.running.ledger()["billed"] == 1


def test_a_gateways_error_page_is_html(start, plain):
    """A client that parses each error as JSON fails on it."""
    assert start(p502_html=1).chat(plain()).headers["content-type"] == "text/html"


def test_a_random_429_names_no_time(start, plain):
    """There is no limit whose room could be waited for."""
    headers = start(p429=1).chat(plain()).headers

    assert "retry-after" not in headers


def test_a_hang_sends_nothing(start, plain):
    """Only a client's own time limit ends it."""
    with pytest.raises(TimeoutError):
        start(p_hang=1).chat(plain(), timeout=0.2)


def test_a_hang_is_billed(start, plain):
    """The model works, although nobody hears of it."""
    client = start(p_hang=1)
    with pytest.raises(TimeoutError):
        client.chat(plain(), timeout=0.2)

    assert client.running.ledger()["billed"] == 1


def test_a_slow_body_takes_its_time(start, plain):
    """Only a limit on the whole reply ends it: each read is quick."""
    client = start(p_slow=1, slow_s=0.4)
    started = time.monotonic()
    with client.waiting(plain()) as connection:
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        reply.read()
        took_s = time.monotonic() - started

    assert took_s >= 0.39


def test_a_slow_body_is_whole(start, plain):
    """It is slow, not broken."""
    assert start(p_slow=1, slow_s=0.1).chat(plain()).choice["finish_reason"] == "stop"


def test_a_slow_reply_keeps_the_connection(start, plain):
    """What comes behind it is a reply like any other."""
    client = start(p_slow=1, slow_s=0.05)
    connection = http.client.HTTPConnection(*client.address, timeout=10)
    for _ in range(2):
        connection.request("POST", "/v1/chat/completions", json.dumps(plain()))
        connection.getresponse().read()
    connection.close()

    assert client.running.stats()["connections"] == 1


def test_a_reset_comes_before_any_reply(start, plain):
    """The client cannot know whether the request arrived."""
    with pytest.raises(ConnectionResetError):
        start(p_reset=1).chat(plain())


def test_an_abort_cuts_the_body(start, plain):
    """The headers promise more than comes."""
    with pytest.raises(http.client.IncompleteRead):
        start(p_abort=1).chat(plain())


def test_an_abort_is_billed(start, plain):
    """The reply was made; only its way was cut."""
    client = start(p_abort=1)
    with pytest.raises(http.client.IncompleteRead):
        client.chat(plain())

    assert client.running.ledger()["billed"] == 1


def test_a_bad_body_calls_itself_json(start, plain):
    """A client that trusts the header crashes."""
    reply = start(p_badbody=1).chat(plain())

    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    with pytest.raises(ValueError, match="codec"):
        reply.json  # noqa: B018  # reading it is what fails


def test_a_login_page_comes_with_200(start, plain):
    """Captive portals and proxies answer for the endpoint."""
    reply = start(p_html200=1).chat(plain())

    assert (reply.status, reply.headers["content-type"]) == (200, "text/html")


def test_empty_choices_are_an_empty_list(start, plain):
    """The first choice cannot be taken for granted."""
    assert start(p_empty=1).chat(plain()).json["choices"] == []


def test_usage_may_be_missing(start, plain):
    """The tokens must then be estimated, not counted as none."""
    assert "usage" not in start(p_no_usage=1).chat(plain()).json


def test_cut_content_says_so(start, judging):
    """Half an object must be told from a malformed one."""
    choice = start(p_length=1).chat(judging()).choice

    assert choice["finish_reason"] == "length"
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(choice["message"]["content"])


def test_filtered_content_is_empty_and_says_so(start, plain):
    """Asking again would be filtered again."""
    choice = start(p_filter=1).chat(plain()).choice

    assert (choice["finish_reason"], choice["message"]["content"]) == ("content_filter", "")


def test_a_refusal_takes_the_place_of_content(start, plain):
    """It is no malformed reply, and must not be repaired as one."""
    message = start(p_refusal=1).chat(plain()).choice["message"]

    assert (message["content"], message["refusal"][:9]) == (None, "I'm sorry")


def test_broken_json_has_eight_forms():
    """Each of them was seen from real models."""
    assert len(variants("badjson")) == 8


@pytest.mark.parametrize("good", [GOOD, Content("It is so."), Content("{}", {}, {})])
def test_broken_json_is_never_one_object(good):
    """A fault that does no harm tests nothing."""
    for text in variants("badjson", good):
        with pytest.raises(InvalidReplyError):
            parse_object(text)


@pytest.mark.parametrize("fault", ["fence", "think"])
def test_what_is_around_a_good_reply_can_be_taken_off(fault):
    """Such replies are good ones, and asking again wastes money."""
    [text] = variants(fault)

    assert json.loads(parse_object(text)) == VALUE


def test_a_reply_against_its_schema_has_four_forms():
    """Value out of range, key missing, key added, wrong type."""
    assert len(variants("schema")) == 4


def test_a_reply_against_its_schema_is_json_that_fails_validation():
    """Only a check of the values finds them."""
    for text in variants("schema"):
        with pytest.raises(ValueError, match="validation error"):
            RelevanceReply.model_validate_json(parse_object(text), strict=True)


def test_a_schema_of_true_breaks_nothing():
    """`true` is a schema too, and any value holds to it."""
    good = Content('{"a": 1}', {"a": 1}, {"properties": {"a": True}})

    assert len(variants("schema", good)) == 4


def test_one_form_against_the_schema_is_grade_7():
    """A grade outside the scale must never become a judgment."""
    assert 7 in [json.loads(text).get("grade") for text in variants("schema")]


@pytest.mark.parametrize("holds", ["\x1b[2J", "\x00", "\ud800", "A" * 1_000_000])
def test_hostile_text_comes_in_a_reply_that_is_else_good(holds):
    """It must get as far as files and terminals to show what they do."""
    replies = [json.loads(text) for text in variants("hostile") if not text.startswith("[[")]

    assert [holds in reply["reasoning"] for reply in replies].count(True) == 1


def test_hostile_nesting_is_ten_thousand_deep():
    """Recursive parsers end in a RecursionError."""
    assert "[" * 10_000 + "]" * 10_000 in variants("hostile")


def test_hostile_replies_cross_the_wire(start, judging):
    """A lone surrogate or NUL must not break the endpoint itself."""
    client = start(p_hostile=1)
    statuses = [client.chat(judging(number)).status for number in range(12)]

    assert statuses == [200] * 12


def test_faults_happen_as_often_as_told(start, plain):
    """A probability is no switch."""
    client = start(p500=0.25)
    failed = [client.chat(plain(f"text {n}")).status == 500 for n in range(200)]

    assert 30 <= sum(failed) <= 70


def test_an_attempt_meets_one_fault_at_most(start, plain):
    """Exclusive faults make the counts add up."""
    client = start(p500=0.5, p_badjson=0.5)
    for number in range(20):
        client.chat(plain(str(number)))

    assert sum(client.running.stats()["faults"].values()) == 20


def test_faults_of_content_leave_embeddings_alone(start):
    """A vector has no JSON to break."""
    client = start(p_badjson=1)
    reply = client.ask("POST", "/v1/embeddings", {"model": "m", "input": "a"})

    assert (reply.status, client.running.stats()["faults"]) == (200, {})


def test_faults_of_the_way_meet_embeddings_too(start):
    """Embeddings are paid calls as well."""
    assert start(p503=1).ask("POST", "/v1/embeddings", {"model": "m", "input": "a"}).status == 503


def test_down_time_resets_connections(start, plain):
    """Nothing is heard from an endpoint that is down."""
    client = start(down_from_s=0, down_to_s=60)
    with pytest.raises(ConnectionError):
        client.chat(plain())


def test_down_time_ends(start, plain):
    """A client must notice that it is over."""
    client = start(down_from_s=0, down_to_s=0.0001)

    assert client.chat(plain()).status == 200


def test_reset_sends_rst_not_fin(start, plain):
    """An orderly end is another thing to a client than a reset."""
    client = start(p_reset=1)
    with client.waiting(plain()) as connection, pytest.raises(ConnectionResetError):
        connection.recv(1)
