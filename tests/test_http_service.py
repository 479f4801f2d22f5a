import asyncio
import contextlib
import gzip
import json
import socket
import threading

import pytest

from ragforge.errors import CallError, UsageError
from ragforge.http_service import Service, parse_address


@pytest.fixture
def post():
    """Post to an address and wait."""
    return lambda url, body=None: asyncio.run(
        Service(url, what="thing", function="f(x)", timeout_s=10).post(body or {})
    )


@contextlib.contextmanager
def trickling(sent, byte):
    """Answer one request with some bytes, and then with one after the other."""
    ended = threading.Event()

    def answer():
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(sent)
            while not ended.wait(0.02):
                connection.sendall(byte)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        ended.set()
        thread.join()


def test_the_json_of_the_reply_is_returned_with_its_start(server, post):
    """The start goes into failure records, where all of it may be too long."""
    server.body = json.dumps({"a": "b" * 1000}).encode()

    reply = post(server.url, {"x": 1})

    assert reply.value == {"a": "b" * 1000}
    assert reply.start == server.body.decode()[:200]
    assert json.loads(server.requests[0][2]) == {"x": 1}


@pytest.mark.parametrize("named", ["iso-8859-1", "UTF-16", '"windows-1252"'])
def test_a_reply_is_read_in_the_encoding_that_it_names(server, post, named):
    """Letters that are lost are found in no document, and the value is 0."""
    server.headers = (("Content-Type", f"application/json; charset={named}"),)
    server.body = json.dumps({"a": "täglich"}, ensure_ascii=False).encode(named.strip('"'))

    assert post(server.url).value == {"a": "täglich"}


def test_an_error_status_is_no_reply(server, post):
    """Whatever its body says."""
    server.status, server.body = 404, b"{}"

    with pytest.raises(CallError, match=r"status 404: '\{\}'") as caught:
        post(server.url)

    assert (caught.value.kind, caught.value.raw) == ("error", "{}")


def test_messages_name_the_thing(post):
    """The user knows it by the flag it was given with."""
    with pytest.raises(UsageError, match="thing address 'ftp://x'; expected http://HOST"):
        post("ftp://x")


@pytest.mark.parametrize("spec", ["http://h/x", "http:http://h/x"])
def test_an_address_may_have_a_prefix(spec):
    """Both ways of writing it are in use."""
    assert parse_address(spec, "thing") == "http://h/x"


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", "no reply in 0.3 s"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "no reply in 0.3 s"),
    ],
)
def test_a_reply_that_never_comes_to_its_body_ends_in_time(sent, message):
    """The time of a socket begins anew with each byte, and so would that of a header."""
    with trickling(sent, b"a") as url, pytest.raises(CallError, match=message):
        asyncio.run(Service(url, what="thing", function="f(x)", timeout_s=0.3).post({}))


def test_a_packed_reply_that_is_too_long_is_given_up(server, post):
    """Little that is sent may be much."""
    server.body = gzip.compress(b" " * 20_000_000)
    server.headers = (("Content-Encoding", "gzip"),)

    with pytest.raises(CallError, match="longer than 16,000,000 bytes") as caught:
        post(server.url)

    assert caught.value.kind == "invalid"


def test_a_packed_reply_is_read(server, post):
    """Proxies pack what they pass on."""
    server.body = gzip.compress(b'{"a": 1}')
    server.headers = (("Content-Encoding", "gzip"),)

    assert post(server.url).value == {"a": 1}
