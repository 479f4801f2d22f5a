"""Requests that the script, or their shape, gets refused."""

import pytest

from ragforge.llm.wire import Dialect, milder_dialect


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("temperature", {"temperature": 0.0}, Dialect(omit=("temperature",))),
        ("seed", {"seed": 0}, Dialect(omit=("seed",))),
        ("max_tokens", {"max_tokens": 9}, Dialect(tokens_field="max_completion_tokens")),
        ("json_schema", {}, Dialect(mode="json_object")),
    ],
)
def test_refusals_are_worded_as_servers_word_them(start, judging, name, changes, expected):
    """What a client has learnt to read of real servers it reads here."""
    reply = start(refuse=(name,)).chat(judging(**changes))
    error = reply.error

    assert reply.status == 400
    assert milder_dialect(Dialect(), error["message"], error["param"] or "") == expected


def test_a_refused_json_object_leads_to_plain_text(start, plain):
    """The last form that is left."""
    reply = start(refuse=("json_object",)).chat(plain(response_format={"type": "json_object"}))

    assert milder_dialect(Dialect(mode="json_object"), reply.error["message"], "") == Dialect(
        mode="plain"
    )


@pytest.mark.parametrize("name", ["temperature", "seed", "max_tokens", "json_object"])
def test_what_is_not_asked_for_is_not_refused(start, judging, name):
    """A client that has learnt must get through."""
    assert start(refuse=(name,)).chat(judging(max_completion_tokens=9)).status == 200


def test_the_default_temperature_is_not_refused(start, plain):
    """Models that take no other one take this one."""
    assert start(refuse=("temperature",)).chat(plain(temperature=1)).status == 200


def test_only_the_right_key_is_taken(start, plain):
    """A forgotten key must show before the first real run."""
    client = start(auth="sk-right")

    assert client.chat(plain(), authorization="Bearer sk-right").status == 200
    assert client.chat(plain(), authorization="Bearer sk-wrong").status == 401


def test_no_key_is_a_wrong_key(start, plain):
    """Servers tell both with 401."""
    assert start(auth="sk-right").chat(plain()).error["code"] == "invalid_api_key"


def test_a_401_echoes_no_more_than_the_start_of_the_key(start, plain):
    """Real ones echo a part, which a client must not print in full either."""
    reply = start(auth="sk-right").chat(plain(), authorization="Bearer abcdefgh-secret")

    assert "abcd****" in reply.error["message"]
    assert b"abcde" not in reply.content


@pytest.mark.parametrize(
    ("status", "code"), [(403, "model_not_allowed"), (404, "model_not_found"), (400, None)]
)
def test_any_status_can_be_for_ever(start, plain, status, code):
    """A run must stop at what no repetition mends."""
    reply = start(always_status=status).chat(plain())

    assert (reply.status, reply.error["code"]) == (status, code)


def test_an_unknown_model_is_named(start, plain):
    """The user sees what is misspelt."""
    assert "`m`" in start(always_status=404).chat(plain()).error["message"]


def test_one_text_can_be_refused(start, plain):
    """One bad request must not end the others."""
    client = start(bad_text="poison")

    assert client.chat(plain("a poisoned cup")).status == 400
    assert client.chat(plain("a cup")).status == 200


def test_a_redirect_names_its_target(start, plain):
    """A client that follows takes texts, and perhaps the key, elsewhere."""
    reply = start(redirect_to="http://127.0.0.1:1/v1").chat(plain())

    assert (reply.status, reply.headers["location"]) == (307, "http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"no JSON", None),
        (b"[]", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
        ({"messages": [{"role": "user", "content": "a"}]}, "model"),
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": ["a"]}, "messages"),
        ({"model": "m", "messages": [{}], "stream": True}, "stream"),
    ],
)
def test_what_is_no_chat_request_gets_400(start, body, param):
    """A wrong request must be told as such, not answered or dropped."""
    reply = start().chat(body)

    assert (reply.status, reply.error["param"]) == (400, param)


@pytest.mark.parametrize(
    "body",
    [{"model": "m"}, {"model": "m", "input": []}, {"model": "m", "input": "a", "dimensions": -1}],
)
def test_what_is_no_embedding_request_gets_400(start, body):
    """As for chats."""
    assert start().ask("POST", "/v1/embeddings", body).status == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/chat/completions"), ("POST", "/v1/responses"), ("GET", "/"), ("GET", "/__what")],
)
def test_what_is_not_served_gets_404(start, method, path):
    """In the shape in which OpenAI tells it."""
    reply = start().ask(method, path)

    assert (reply.status, reply.error["type"]) == (404, "invalid_request_error")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/Missing"},
        {"type": "strange"},
        {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"},
        {"properties": [1]},
        {"type": "integer", "minimum": "low"},
    ],
)
def test_a_schema_without_a_value_gets_400(start, plain, schema):
    """A server that enforces schemas compiles them first."""
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    reply = start().chat(plain(response_format=form))

    assert (reply.status, reply.error["param"]) == (400, "response_format")
