import asyncio
import base64
import gzip
import json
import socketserver
import subprocess
import sys
import zlib
from dataclasses import replace
from threading import Thread

import httpx
import pytest
import respx
from endpoint import Reply, answering, completion, fault
from fakes import request

from ragforge.config import ModelSettings
from ragforge.errors import CallError, ConfigError, EndpointError
from ragforge.llm.chat import Message, Usage
from ragforge.llm.openai_endpoint import OpenAIEndpoint
from ragforge.llm.retries import AttemptError
from ragforge.llm.wire import Dialect, embeddings_request, unpack

URL = "http://model.test/v1"
KEY = "sk-test-0123456789"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def model(url=URL, **changes):
    return ModelSettings(
        name="test-model", base_url=url, **{"timeout_s": 5, "transport": "httpx2", **changes}
    )


def ask(settings, *requests, **options):
    """Ask in turn and return the replies."""

    async def session():
        endpoint = OpenAIEndpoint(settings, **options)
        try:
            return [await endpoint.ask(each) for each in requests or (request(),)]
        finally:
            await endpoint.close()

    return asyncio.run(session())


@pytest.fixture
def mocked():
    """The chat route of an endpoint that is not there."""
    with respx.mock(base_url=URL) as router:
        yield router.post("/chat/completions")


@pytest.fixture
def reply_to(mocked):
    """Ask an endpoint that gives one answer, and return the reply."""

    def ask_once(status=200, body=None, headers=None):
        kind = "content" if isinstance(body, bytes) else "json"
        mocked.return_value = httpx.Response(status, headers=headers, **{kind: body})
        [reply] = ask(model())
        return reply

    return ask_once


def test_a_completion_becomes_a_reply(reply_to):
    """Every field of it is used somewhere: in the ledger, in provenance, in a failure."""
    body = completion("hi", usage={"prompt_tokens": 7, "completion_tokens": 3}, model="m-2024")

    reply = reply_to(200, {**body, "system_fingerprint": "fp_1"})

    assert (reply.text, reply.finish_reason, reply.refusal) == ("hi", "stop", "")
    assert reply.usage == Usage(7, 3, estimated=False)
    assert (reply.model, reply.fingerprint, reply.cached) == ("m-2024", "fp_1", False)
    assert reply.latency_s > 0


@pytest.mark.parametrize(
    ("changes", "text", "reason", "refusal"),
    [
        ({"finish_reason": "length"}, "hi", "length", ""),
        ({"finish_reason": "content_filter"}, "hi", "content_filter", ""),
        ({"refusal": "No."}, "hi", "stop", "No."),
        ({"finish_reason": None}, "hi", "stop", ""),
    ],
)
def test_the_end_of_a_reply_is_told(reply_to, changes, text, reason, refusal):
    """What was cut, filtered or refused must not be read as a whole reply."""
    reply = reply_to(200, completion("hi", **changes))

    assert (reply.text, reply.finish_reason, reply.refusal) == (text, reason, refusal)


def test_missing_content_is_empty_text(reply_to):
    """A refusal comes with content null."""
    assert reply_to(200, completion(None, refusal="No.")).text == ""


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 3},
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": 1, "completion_tokens": -(10**30)},
        {"prompt_tokens": 10**30, "completion_tokens": 2},
        {"prompt_tokens": 3, "completion_tokens": 1e308},
        {"prompt_tokens": True, "completion_tokens": 2},
        "many",
    ],
)
def test_missing_usage_is_estimated_and_marked(reply_to, usage):
    """Budgets must hold at servers that do not count, and nobody may take it for a count."""
    reply = reply_to(200, completion("x" * 40, usage=usage))

    assert reply.usage.estimated
    assert reply.usage.completion_tokens == 10
    assert reply.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html>Bad gateway</html>", "the reply is not JSON"),
        (200, b"", "the reply is not JSON"),
        (200, b"[" * 100_000, "the reply is not JSON"),
        (200, b'"hi"', "the reply is not a JSON object"),
        (200, {"choices": []}, r"no chat completion: it holds no choices\[0\]\.message"),
        (200, {"choices": [{}]}, "no chat completion"),
        (200, {"choices": [{"message": None}]}, "no chat completion"),
        (200, {"choices": [{"message": {"content": ["hi"]}}]}, "no chat completion"),
        (200, {"choices": None}, "no chat completion"),
        (200, {"error": {"message": "overloaded"}}, "no chat completion: .*overloaded"),
        (408, {"error": {"message": "slow"}}, "HTTP 408: slow"),
        (409, {"error": {"message": "lock"}}, "HTTP 409: lock"),
        (429, {"error": {"message": "slow down"}}, "HTTP 429: slow down"),
        (500, {"error": {"message": "oops"}}, "HTTP 500: oops"),
        (502, b"<html>Bad gateway</html>", "HTTP 502: <html>Bad gateway</html>"),
        (503, b"", "HTTP 503: Service Unavailable"),
        (529, {"type": "error"}, "HTTP 529"),
    ],
)
def test_what_may_pass_is_transient(reply_to, status, body, message):
    """None of these is an error of the client's, and several come with status 200."""
    with pytest.raises(AttemptError, match=message) as caught:
        reply_to(status, body)

    assert not caught.value.unreachable


def test_a_wait_that_is_asked_for_is_passed_on(reply_to):
    """Coming back too early is refused again."""
    with pytest.raises(AttemptError, match="HTTP 429") as caught:
        reply_to(429, {"error": {"message": "slow down"}}, {"Retry-After": "12"})

    assert caught.value.retry_after_s == 12


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (401, {"message": "wrong key"}, "HTTP 401: wrong key .model 'test-model'"),
        (403, {"message": "not allowed"}, "HTTP 403: not allowed"),
        (404, {"message": "no such model"}, "HTTP 404: no such model"),
        (429, {"message": "pay", "code": "insufficient_quota"}, "HTTP 429: pay"),
        (429, {"message": "pay", "type": "insufficient_quota"}, "HTTP 429: pay"),
    ],
)
def test_what_every_call_would_meet_stops_the_run(reply_to, status, error, message):
    """A wrong key must cost one call, not one a pair."""
    with pytest.raises(EndpointError, match=message):
        reply_to(status, {"error": error})


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "prompt is too long"}}),
        (413, b"too large"),
        (422, {"detail": "prompt is too long"}),
    ],
)
def test_a_request_refused_for_what_it_holds_fails_alone(reply_to, status, body):
    """One chunk that is too long must not stop the others."""
    with pytest.raises(CallError, match=f"HTTP {status}: ") as caught:
        reply_to(status, body)

    assert caught.value.kind == "error"
    assert "too l" in caught.value.raw


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.ConnectTimeout("slow")]
)
def test_a_connection_that_fails_is_transient_and_unreachable(mocked, error):
    """A server that restarts is back in a moment; one that is not there never answers."""
    mocked.side_effect = error

    with pytest.raises(AttemptError, match=URL) as caught:
        ask(model())

    assert caught.value.unreachable


def test_the_client_does_not_retry_by_itself(mocked):
    """Attempts that nobody counts would break every limit."""
    mocked.return_value = httpx.Response(500)

    with pytest.raises(AttemptError, match="HTTP 500"):
        ask(model())

    assert mocked.call_count == 1


def test_the_request_carries_all_its_fields(mocked):
    """Sampling is part of the call key; it must be part of the call."""
    mocked.return_value = httpx.Response(200, json=completion("hi"))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}}

    ask(model(), request("q", schema=schema, temperature=0.5, seed=3, max_output_tokens=77))

    sent = mocked.calls.last.request
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert json.loads(sent.content) == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "q"},
        ],
        "temperature": 0.5,
        "seed": 3,
        "max_tokens": 77,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "relevance",
                "strict": True,
                "schema": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}},
                },
            },
        },
    }


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_later_requests_are_like_the_first_but_for_what_they_say(serve, transport):
    """Of the official client's, only the first is whole: they take longer than sending does."""
    cookie = {"Set-Cookie": "route=a; Path=/"}
    endpoint = serve(lambda *_: Reply(completion("hi"), headers=cookie))

    ask(model(endpoint.url, transport=transport), request("é"), request("a longer one"))

    first, later = endpoint.seen
    assert (first.user, later.user) == ("é", "a longer one")
    length = str(len(json.dumps(later.body, ensure_ascii=False, separators=(",", ":"))))
    expected = {**first.headers, "content-length": length, "cookie": "route=a"}
    assert (later.path, later.headers) == (first.path, expected)


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_variables_of_the_official_client_hold_whatever_sends(serve, monkeypatch, transport):
    """Accounts are billed by them, and gateways let through whom they name."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: search \nno header\nauthorization: Key k")
    endpoint = serve()

    ask(model(endpoint.url, transport=transport), relevance(), relevance("Why?"))

    names = ("openai-organization", "openai-project", "x-team", "authorization", "content-type")
    sent = [[seen.headers[name] for name in names] for seen in endpoint.seen]
    assert sent == [["org-1", "proj-1", "search", "Key k", "application/json"]] * 2


def test_the_official_client_is_not_loaded_where_another_sends(serve):
    """It takes longer to load than all else that a command needs before its first request."""
    endpoint = serve(lambda *_: Reply(completion("hi")))
    settings = {"base_url": endpoint.url, "transport": "aiohttp", "name": "m"}

    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(settings)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert (len(endpoint.seen), done.stdout.strip()) == (1, "[]")


LOADED = """
import asyncio, json, sys
from ragforge.config import ModelSettings
from ragforge.llm.chat import ChatRequest, Message
from ragforge.llm.openai_endpoint import OpenAIEndpoint

async def ask():
    endpoint = OpenAIEndpoint(ModelSettings(**json.loads(sys.argv[1])))
    await endpoint.ask(ChatRequest((Message("user", "hi"),), "", {}))
    await endpoint.close()

asyncio.run(ask())
print([name for name in ("openai", "httpx2") if name in sys.modules])
"""


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_cookie_of_a_later_reply_is_sent_back(serve, transport):
    """Gateways keep a conversation with one server by it, and change it as they like."""
    set_by = [{}, {"Set-Cookie": "route=a; Path=/"}, {"Set-Cookie": "route=b; Path=/"}, {}]
    endpoint = serve(lambda *_: Reply(completion("hi"), headers=set_by[len(endpoint.seen) - 1]))

    ask(model(endpoint.url, transport=transport), *map(request, "abcd"))

    sent = [seen.headers.get("cookie") for seen in endpoint.seen]
    assert sent == [None, None, "route=a", "route=b"]


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_cookie_of_the_user_goes_with_every_request(serve, monkeypatch, transport):
    """Gateways log people in by one, and a refusal may set another before any reply is good."""
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Cookie: sso=abc")
    cookie = {"Set-Cookie": "route=a; Path=/"}
    replies = iter([Reply(b"busy", 503, cookie), *[Reply(completion("hi"))] * 3])
    endpoint = serve(lambda *_: next(replies))

    async def session():
        asked = OpenAIEndpoint(model(endpoint.url, transport=transport))
        with pytest.raises(AttemptError, match="busy"):
            await asked.ask(request("a"))
        for text in "bcd":
            await asked.ask(request(text))
        await asked.close()

    asyncio.run(session())

    assert ["sso=abc" in seen.headers["cookie"] for seen in endpoint.seen] == [True] * 4


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_cookie_that_no_header_can_hold_is_forgotten(serve, transport):
    """One letter of a gateway's must not fail all requests behind it."""
    cookie = {"Set-Cookie": "name=J\u00fcrgen; Path=/"}
    endpoint = serve(lambda *_: Reply(completion("hi"), headers=cookie))

    replies = ask(model(endpoint.url, transport=transport), *map(request, "abc"))

    assert [reply.text for reply in replies] == ["hi"] * 3


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize("headers", [{"X-A": "x" * 20_000}, {f"X-{n}": "x" for n in range(95)}])
def test_a_reply_with_long_or_many_headers_is_read(serve, transport, headers):
    """Gateways tell who let a request through, in kilobytes."""
    endpoint = serve(lambda *_: Reply(completion("hi"), headers=headers))

    [reply] = ask(model(endpoint.url, transport=transport))

    assert reply.text == "hi"


class DeafProxy(socketserver.BaseRequestHandler):
    """Keeps what it is sent, and connects nobody."""

    def handle(self):
        self.server.seen.append(self.request.recv(65536).decode("latin-1"))
        self.request.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_proxy_is_told_neither_the_key_nor_other_headers(monkeypatch, transport):
    """What is said to an endpoint over TLS is for that alone."""
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team-Token: secret-of-the-team")
    with socketserver.TCPServer(("127.0.0.1", 0), DeafProxy) as proxy:
        proxy.seen = []
        Thread(target=proxy.serve_forever, daemon=True).start()
        through = f"http://127.0.0.1:{proxy.server_address[1]}"

        with pytest.raises(AttemptError, match=r"cannot be reached: 407") as caught:
            ask(model("https://model.invalid/v1", transport=transport, proxy=through))
        proxy.shutdown()

    [said] = proxy.seen
    assert said.startswith("CONNECT model.invalid:443")
    assert [KEY in said, "secret-of-the-team" in said] == [False, False]
    assert not caught.value.maybe_billed


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_the_head_of_a_broken_reply_is_not_shown(transport):
    """It may hold cookies, by which others could go on in one's name."""

    class Torn(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            self.request.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: sess=top-secret\r\nX-")

    with socketserver.TCPServer(("127.0.0.1", 0), Torn) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        with pytest.raises(AttemptError, match="cannot be reached") as caught:
            ask(model(url, transport=transport))
        server.shutdown()

    assert "top-secret" not in str(caught.value)


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_later_reply_is_unpacked(serve, transport):
    """Gateways pack what is long enough, which the first reply may not be."""
    packed = gzip.compress(json.dumps(completion("hi" * 200_000)).encode())
    replies = iter([Reply(completion("hi")), Reply(packed, headers={"Content-Encoding": "gzip"})])
    endpoint = serve(lambda *_: next(replies))

    first, later = ask(model(endpoint.url, transport=transport), request("q"), request("r"))

    assert (first.text, later.text) == ("hi", "hi" * 200_000)


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize(
    "bad",
    [
        Reply({"error": {"message": "slow down", "code": "rate"}}, 429, {"Retry-After": "7"}),
        Reply({"error": {"message": f"no such key {KEY}"}}, 401),
        Reply(b"overloaded", 503),
        Reply({"error": {"message": "too long", "param": "messages"}}, 422),
        Reply(b"[" * 100_000, 500),
        Reply(status=307, headers={"Location": "http://other.test/"}),
        Reply(reset=True),
        Reply(completion("hi"), cut=5),
        Reply(b"not gzip", headers={"Content-Encoding": "gzip"}),
        Reply(gzip.compress(b"overloaded"), 503, {"Content-Encoding": "gzip"}),
        Reply(b"x", headers={"Content-Encoding": "br"}),
        Reply(b" " * 65536, endless=True),
        Reply(b" " * 8_000_001),
        Reply(completion("hi"), headers={f"X-{n}": "x" * 1000 for n in range(2000)}),
    ],
    ids="429 401 503 422 deep 307 reset cut unpacked packed br endless announced flood".split(),
)
def test_a_later_request_that_fails_is_told_as_a_first_one_is(serve, transport, bad):
    """Whoever reads of it must not care how the request was made."""
    endpoint = serve(lambda *_: next(replies))
    settings = model(endpoint.url, transport=transport)

    replies = iter([bad])
    with pytest.raises((AttemptError, CallError, EndpointError)) as first:
        ask(settings)
    replies = iter([Reply(completion("hi")), bad])
    with pytest.raises((AttemptError, CallError, EndpointError)) as later:
        ask(settings, request("q"), request("r"))

    assert type(later.value) is type(first.value)
    assert (str(later.value), vars(later.value)) == (str(first.value), vars(first.value))


def test_bounds_on_strings_are_kept_where_they_are_wanted(mocked):
    """A small local model rambles until a grammar stops it."""
    mocked.return_value = httpx.Response(200, json=completion("hi"))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}}

    ask(model(), request(schema=schema), bounded=True)

    sent = json.loads(mocked.calls.last.request.content)
    assert sent["response_format"]["json_schema"]["schema"] == schema


class Picky:
    """An endpoint that refuses what it does not know, in the words of the real ones."""

    def __init__(self, *refused):
        self.refused = refused

    def __call__(self, path, body, number):
        form = body.get("response_format", {}).get("type", "")
        if form in self.refused:
            return fault(
                400, f"'response_format' of type '{form}' is not supported", param="response_format"
            )
        for name in body:
            if name in self.refused:
                other = "Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                return fault(
                    400,
                    f"Unsupported parameter: '{name}' is not supported with this model. {other}",
                    code="unsupported_parameter",
                    param=name,
                )
        return answering(path, body, number)


def relevance(text="What do blue whales eat?"):
    passage = "Blue whales eat krill."
    prompt = f"query: {json.dumps(text)}\npassage: {json.dumps(passage)}"
    properties = {
        "grade": {"type": "integer"},
        "evidence": {"type": "string"},
    }
    return request(
        schema={"type": "object", "properties": properties},
        messages=(Message("system", "Grade."), Message("user", prompt)),
    )


@pytest.mark.parametrize(
    ("refused", "dialect", "requests"),
    [
        ((), Dialect(), 1),
        (("json_schema",), Dialect(mode="json_object"), 2),
        (("json_schema", "json_object"), Dialect(mode="plain"), 3),
        (("temperature",), Dialect(omit=("temperature",)), 2),
        (("max_tokens",), Dialect(tokens_field="max_completion_tokens"), 2),
        (
            ("temperature", "seed", "max_tokens", "json_schema", "json_object"),
            Dialect("plain", "max_completion_tokens", ("temperature", "seed")),
            6,
        ),
    ],
)
def test_the_dialect_of_an_endpoint_is_learnt_once(serve, refused, dialect, requests):
    """Newer models refuse what older servers need; nobody should have to configure that."""
    endpoint, on_dialect = serve(Picky(*refused)), []

    replies = ask(model(endpoint.url), *[relevance()] * 3, on_dialect=on_dialect.append)

    assert [json.loads(reply.text)["grade"] for reply in replies] == [2, 2, 2]
    assert on_dialect == [dialect]
    assert len(endpoint.seen) == requests + 2


def test_equal_questions_at_once_learn_the_dialect_once(serve):
    """Else the first moment of a run would be a burst of refused calls."""
    endpoint = serve(Picky("json_schema"))

    async def session():
        adapter = OpenAIEndpoint(model(endpoint.url))
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(adapter.ask(relevance()))
        await adapter.close()

    asyncio.run(session())

    assert len(endpoint.seen) == 21


def test_those_who_waited_for_the_first_call_go_together(serve):
    """One after the other they would take as long as all of them."""
    endpoint = serve(lambda *request: replace(answering(*request), delay_s=0.2))

    async def session():
        asked = OpenAIEndpoint(model(endpoint.url))
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(asked.ask(relevance()))
        await asked.close()

    asyncio.run(session())

    assert endpoint.most_in_flight == 5


def test_a_known_dialect_is_not_probed_again(serve):
    """What was learnt yesterday costs nothing today."""
    endpoint, on_dialect = serve(Picky("json_schema")), []
    known = Dialect(mode="json_object")

    ask(model(endpoint.url), relevance(), dialect=known, on_dialect=on_dialect.append)

    assert len(endpoint.seen) == 1
    assert on_dialect == []


def test_a_known_dialect_that_holds_no_more_is_learnt_anew(serve):
    """A server that was changed over night must not refuse every call of the next run."""
    endpoint, on_dialect = serve(Picky("json_schema")), []

    ask(model(endpoint.url), relevance(), dialect=Dialect(), on_dialect=on_dialect.append)

    assert on_dialect == [Dialect(mode="json_object")]


def test_one_odd_refusal_does_not_change_a_proven_dialect(serve):
    """Text that upsets a server must not cost all later calls their schema."""

    def respond(path, body, number):
        return fault(400, "schema too deep") if number == 1 else answering(path, body, number)

    endpoint = serve(respond)

    async def session():
        adapter = OpenAIEndpoint(model(endpoint.url))
        await adapter.ask(relevance())
        with pytest.raises(CallError, match="schema too deep"):
            await adapter.ask(relevance())
        await adapter.ask(relevance())
        await adapter.close()

    asyncio.run(session())

    assert endpoint.bodies[2]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("refused", [("json_schema",), ("json_schema", "json_object")])
def test_without_enforcement_the_schema_is_in_the_prompt(serve, refused):
    """A model that is not made to hold to a schema must at least be told of it."""
    endpoint = serve(Picky(*refused))

    ask(model(endpoint.url), relevance())

    assert (
        '{"type": "object", "properties": {"grade"' in endpoint.bodies[-1]["messages"][0]["content"]
    )


@pytest.mark.parametrize("slow", [{"delay_s": 30}, {"dribble_s": 0.02}])
def test_an_attempt_is_limited_in_time_even_if_the_reply_trickles(serve, slow):
    """The client's own time-out begins anew with every byte."""
    endpoint = serve(lambda *_: Reply(completion("hi"), **slow))

    with pytest.raises(AttemptError, match=r"no reply within 0\.2 s"):
        ask(model(endpoint.url, timeout_s=0.2))


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize(
    ("broken", "said", "billed"),
    [
        ({"reset": True}, "cannot be reached", False),
        ({"cut": 5}, "the reply broke off", True),
        ({"cut": 5, "reset": True}, "the reply broke off", True),
    ],
    ids=["reset", "cut", "reset within"],
)
def test_a_connection_that_breaks_is_transient(serve, transport, broken, said, billed):
    """Half a reply is none, but the endpoint may charge for it."""
    endpoint = serve(lambda *_: Reply(completion("hi"), **broken))

    with pytest.raises(AttemptError, match=rf"127\.0\.0\.1:\d+/v1/: {said}") as caught:
        ask(model(endpoint.url, transport=transport))

    assert (caught.value.fault, caught.value.maybe_billed) == ("transient", billed)


def test_a_body_that_cannot_be_unpacked_is_transient(serve):
    """A broken proxy must not look like a bug of the program."""
    packed = gzip.compress(b"x" * 100)[:20]
    endpoint = serve(lambda *_: Reply(packed, headers={"Content-Encoding": "gzip"}))

    with pytest.raises(AttemptError, match=r"."):
        ask(model(endpoint.url))


@pytest.fixture(scope="module")
def bomb():
    """300 MB of blanks, packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(b" " * 1_000_000) for _ in range(300)) + packer.flush()


@pytest.fixture
def without_end(bomb):
    """Replies that memory cannot hold, by name."""
    return {
        "endless": Reply(b" " * 65536, endless=True),
        "endless refusal": Reply(b" " * 65536, endless=True, status=400),
        "bomb": Reply(bomb, headers={"Content-Encoding": "gzip"}),
        "bomb as refusal": Reply(bomb, headers={"Content-Encoding": "gzip"}, status=429),
        "announced": Reply(b" " * 8_000_001),
    }


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize(
    "name",
    ["endless", "endless refusal", "bomb", "bomb as refusal", "announced"],
)
def test_a_reply_without_end_is_read_up_to_a_limit(serve, without_end, transport, name):
    """Whoever is asked must not decide how much memory is used."""
    endpoint = serve(lambda *_: without_end[name])

    with pytest.raises(AttemptError, match=r"longer than 8,000,000 bytes") as caught:
        ask(model(endpoint.url, transport=transport, timeout_s=60))

    assert (caught.value.fault, caught.value.maybe_billed) == ("invalid_reply", True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is read")
@pytest.mark.parametrize(("transport", "name"), [("httpx2", "bomb"), ("aiohttp", "endless")])
def test_calls_at_once_hold_few_large_replies(serve, without_end, transport, name):
    """The memory must not grow with the number of calls in flight."""
    endpoint = serve(lambda *_: without_end[name])
    settings = {"base_url": endpoint.url, "transport": transport, "name": "m", "concurrency": 32}

    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, json.dumps(settings)],
        capture_output=True,
        text=True,
        check=True,
    )

    found = json.loads(done.stdout)
    assert found["kinds"] == ["AttemptError"]
    assert found["peak_mb"] < 200


AT_ONCE = """
import asyncio, json, pathlib, re, sys
from ragforge.config import ModelSettings
from ragforge.llm.chat import ChatRequest, Message
from ragforge.llm.openai_endpoint import OpenAIEndpoint

async def ask():
    endpoint = OpenAIEndpoint(ModelSettings(**json.loads(sys.argv[1])))
    request = ChatRequest((Message("user", "hi"),), "grade", {})
    return await asyncio.gather(*[endpoint.ask(request) for _ in range(32)], return_exceptions=True)

kinds = sorted({type(reply).__name__ for reply in asyncio.run(ask())})
# What getrusage says begins with the memory of the process that started this one.
status = pathlib.Path("/proc/self/status").read_text()
peak_mb = int(re.search(r"VmHWM:\\s*(\\d+)", status)[1]) / 1024
print(json.dumps({"kinds": kinds, "peak_mb": peak_mb}))
"""


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_a_reply_in_another_encoding_is_not_unpacked(serve, transport, encoding):
    """Each way of unpacking would need a limit of its own, and gzip is what was asked for."""
    endpoint = serve(lambda *_: Reply(b"x", headers={"Content-Encoding": encoding}))

    with pytest.raises(AttemptError, match=f"packed as '{encoding}'; expected gzip, deflate"):
        ask(model(endpoint.url, transport=transport))

    assert endpoint.seen[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_packed_reply_is_read(serve, transport, encoding, packed):
    """Gateways pack what they pass on."""
    content = packed(json.dumps(completion("hi" * 200_000)).encode())
    endpoint = serve(lambda *_: Reply(content, headers={"Content-Encoding": encoding}))

    [reply] = ask(model(endpoint.url, transport=transport))

    assert reply.text == "hi" * 200_000


def test_more_large_replies_than_are_read_at_once_all_arrive(serve):
    """They wait for each other, and none for ever."""
    endpoint = serve(lambda *_: Reply(completion("x" * 600_000)))

    async def at_once():
        asked = OpenAIEndpoint(model(endpoint.url, timeout_s=60))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asked.ask(request(str(n)))) for n in range(12)]
        await asked.close()
        return [task.result() for task in tasks]

    assert [len(reply.text) for reply in asyncio.run(at_once())] == [600_000] * 12


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_flood_of_headers_is_a_failed_attempt(serve, transport):
    """One transport has an error of its own for it, which must not look like a bug."""
    flood = {f"X-{n}": "x" * 1000 for n in range(2000)}
    endpoint = serve(lambda *_: Reply(completion("hi"), headers=flood))

    with pytest.raises(AttemptError, match=r"127\.0\.0\.1"):
        ask(model(endpoint.url, transport=transport))


def test_a_reply_of_countless_values_is_not_parsed(serve):
    """Three bytes of JSON become an object of sixty-four."""
    endpoint = serve(lambda *_: Reply(b"[" + b"[]," * 2_100_000 + b"[]]"))

    with pytest.raises(AttemptError, match="holds more than 2,000,000 values"):
        ask(model(endpoint.url, timeout_s=60))


def test_an_address_where_nobody_listens_is_unreachable(serve):
    """It is the usual mistake, and the message must hold the address."""
    with pytest.raises(AttemptError, match=r"http://127\.0\.0\.1:1/v1/: cannot be reached"):
        ask(model("http://127.0.0.1:1/v1"))


ECHOES = {
    "401": Reply({"error": {"message": f"Received={KEY}"}}, status=401),
    "400": Reply({"error": {"message": f"Received={KEY}"}}, status=400),
    "500": Reply(f"<pre>Authorization: Bearer {KEY}</pre>".encode(), status=500),
    "200 html": Reply(f"<pre>Authorization: Bearer {KEY}</pre>".encode()),
    "200 list": Reply([KEY]),
    "200 error": Reply({"error": {"message": f"Received={KEY}"}}),
}


@pytest.mark.parametrize("reply", ECHOES.values(), ids=ECHOES.keys())
def test_an_echoed_key_is_kept_out_of_messages_and_records(serve, reply):
    """Gateways repeat the key they refuse, and failure records are passed on."""
    endpoint = serve(lambda *_: reply)

    with pytest.raises((EndpointError, CallError, AttemptError), match=r".") as caught:
        ask(model(endpoint.url))

    assert KEY not in f"{caught.value!r} {getattr(caught.value, 'raw', '')}"


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        KEY.replace("-", "\\u002d").replace("t", "\\U0074".lower()),
        KEY.replace("-", "%2D"),
        "".join(f"&#{ord(each)};" for each in KEY),
        base64.b64encode(f"Bearer {KEY}".encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
    ],
)
def test_a_key_in_a_good_reply_is_masked(serve, form):
    """Replies are stored, shown and passed on; a prompt can ask a gateway for its headers."""
    body = completion(f"your key is {form}!", refusal=f"no: {form}", model=f"m {form}")
    endpoint = serve(lambda *_: Reply({**body, "id": form, "system_fingerprint": form}))

    [reply] = ask(model(endpoint.url))

    shown = f"{reply!r}"
    assert reply.text.startswith("your key is ")
    assert "[key]" in reply.text
    assert [KEY in shown, KEY[3:] in shown, form in shown] == [False, False, False]


@pytest.mark.parametrize("word", ["none", "x", "lm-studio", "not-needed"])
def test_a_placeholder_for_a_key_changes_no_reply(serve, monkeypatch, word):
    """Local servers want a word there, and texts hold it too."""
    monkeypatch.setenv("OPENAI_API_KEY", word)
    endpoint = serve(lambda *_: Reply(completion(f"with {word} and 5% more")))

    [reply] = ask(model(endpoint.url))

    assert reply.text == f"with {word} and 5% more"


def test_a_key_in_embeddings_is_masked(serve):
    """The reason why a vector is no use holds what stood in its place."""
    row = {"index": 0, "embedding": [KEY]}
    endpoint = serve(lambda *_: Reply({"data": [row]}))

    with pytest.raises(AttemptError, match=r"\[key\]") as caught:
        embed(endpoint.url, ["a"])

    assert KEY not in f"{caught.value} {caught.value.raw}"


def test_the_key_is_not_sent_to_another_server(serve):
    """A redirect is the server's word, not the user's."""
    other = serve()
    there = {"Location": f"{other.url.replace('127.0.0.1', 'localhost')}/chat/completions"}
    endpoint = serve(lambda *_: Reply(status=307, headers=there))

    with pytest.raises(EndpointError, match=r"HTTP 307: redirects to 'http://localhost"):
        ask(model(endpoint.url))

    assert other.seen == []


def test_the_key_is_read_from_the_variable_that_is_named(serve, monkeypatch):
    """Users of several providers have several keys."""
    monkeypatch.setenv("OTHER_KEY", "sk-other-123456")
    endpoint = serve()

    ask(model(endpoint.url, api_key_env="OTHER_KEY"), relevance())

    assert endpoint.seen[0].headers["authorization"] == "Bearer sk-other-123456"


def test_a_missing_key_is_named_before_any_call(monkeypatch):
    """The provider's own message says nothing of --model offline."""
    monkeypatch.delenv("OPENAI_API_KEY")

    with pytest.raises(ConfigError, match="variable OPENAI_API_KEY holds no key; set it"):
        OpenAIEndpoint(ModelSettings(name="m"))


def test_a_server_of_the_environment_needs_no_key(monkeypatch):
    """It is named as much as one of the settings; many servers of one's own check none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")

    assert OpenAIEndpoint(ModelSettings(name="m"))


def test_a_missing_transport_is_named_before_any_call(monkeypatch):
    """A thousand calls would fail, one after the other, for a package."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"pip install 'ragforge\[fast\]'"):
        OpenAIEndpoint(model(transport="aiohttp"))


def test_an_endpoint_of_ones_own_needs_no_key(serve, monkeypatch):
    """Local servers have none."""
    monkeypatch.delenv("OPENAI_API_KEY")
    endpoint = serve()

    [reply] = ask(model(endpoint.url), relevance())

    assert json.loads(reply.text)["grade"] == 2


def embed(url, texts):
    async def session():
        endpoint = OpenAIEndpoint(model(url, embedding_model="emb"))
        try:
            return await endpoint.embed(embeddings_request(texts))
        finally:
            await endpoint.close()

    return asyncio.run(session())


def test_embeddings_come_back_in_the_order_of_the_texts(serve):
    """Servers may answer in any order; the index tells."""
    rows = [{"index": 1, "embedding": [2, 0]}, {"index": 0, "embedding": [1, 0.5]}]
    endpoint = serve(lambda *_: Reply({"data": rows}))

    assert unpack(embed(endpoint.url, ["a", "b"]).text) == [[1.0, 0.5], [2.0, 0.0]]
    assert endpoint.bodies == [{"model": "emb", "input": ["a", "b"], "encoding_format": "float"}]


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": None},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": None}]},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
        {"data": [{"index": 0, "embedding": [1e60]}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]},
        {"data": [7]},
        {"data": {"a": 1}},
        {},
    ],
)
def test_embeddings_that_lack_something_are_transient(serve, body):
    """A vector that is missing must not become one of zeros."""
    endpoint = serve(lambda *_: Reply(body))

    with pytest.raises(AttemptError, match="embeddings"):
        embed(endpoint.url, ["a"])
