"""HTTP as clients send it, in whatever pieces it arrives."""

import json

import pytest

from ragforge.mock.http_messages import BadRequestError, Parser

SIZED = b"POST /a?b=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)


def parse(data, pieces=1):
    """Return the requests of some bytes that arrive in pieces of a size."""
    parser = Parser()
    found = []
    for at in range(0, len(data), pieces):
        parser.feed(data[at : at + pieces])
        while (request := parser.next_request()) is not None:
            found.append(request)
    return found


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
@pytest.mark.parametrize("data", [SIZED, CHUNKED])
def test_a_body_may_come_in_any_pieces(data, pieces):
    """TCP knows no messages."""
    assert [request.body for request in parse(data, pieces)] == [b"hello"]


def test_path_and_query_are_told_apart():
    """Routes have no queries."""
    [request] = parse(SIZED)

    assert (request.method, request.path, request.query) == ("POST", "/a", "b=1")


@pytest.mark.parametrize("pieces", [1, 10_000])
def test_requests_may_follow_each_other(pieces):
    """A connection is kept open for many."""
    assert [request.body for request in parse(SIZED + CHUNKED + SIZED, pieces)] == [b"hello"] * 3


def test_a_request_without_a_length_has_no_body():
    """GET has none."""
    assert [request.body for request in parse(b"GET / HTTP/1.1\r\n\r\n")] == [b""]


def test_header_names_have_no_case():
    """Clients write them as they like."""
    [request] = parse(b"GET / HTTP/1.1\r\nX-Some: One\r\n\r\n")

    assert request.headers == {"x-some": "One"}


@pytest.mark.parametrize(
    ("version", "wish", "keep"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
    ],
)
def test_the_client_says_whether_more_comes(version, wish, keep):
    """Who waits for the end of a reply waits for the end of the connection."""
    [request] = parse(f"GET / HTTP/{version}\r\n{wish}\r\n".encode())

    assert request.keep_alive is keep


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / FTP/1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n", 413),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000, 431),
    ],
)
def test_what_is_no_request_is_refused(data, status):
    """A connection out of step cannot be mended."""
    with pytest.raises(BadRequestError) as caught:
        parse(data)

    assert caught.value.status == status


def test_nonsense_gets_400_and_the_connection_closes(start):
    """Whoever speaks another protocol should be told."""
    with start().connected() as connection:
        connection.sendall(b"hello\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65536), b""))

    assert received.startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_the_connection_closes_on_demand(start):
    """HTTP/1.0 clients read to the end."""
    with start().connected() as connection:
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65536), b""))

    assert json.loads(received.partition(b"\r\n\r\n")[2])["object"] == "list"


def test_a_client_that_waits_to_send_its_body_is_told_to(start, plain):
    """curl does so before each large body, and else waits a second."""
    content = json.dumps(plain()).encode()
    with start().connected() as connection:
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nExpect: 100-continue\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        connection.sendall(head.encode())
        told = connection.recv(25)
        connection.sendall(content)
        replied = connection.recv(15)

    assert (told, replied) == (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK")


def test_requests_behind_a_slow_one_are_answered_in_order(start, plain):
    """A client may send the next before the reply."""
    content = json.dumps(plain()).encode()
    request = (
        f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        + content
    )
    last = b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n"
    with start(latency="fixed:20").connected() as connection:
        connection.sendall(request + request + last)
        received = b"".join(iter(lambda: connection.recv(65536), b""))

    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.endswith(b'"owned_by": "ragforge"}]}')
