import contextlib
import http.client
import socket
import threading

import pytest

from ragforge.viewer.server import ImpatientConnection, serving

pytestmark = pytest.mark.slow


WAIT_S = 20


@pytest.fixture
def impatient(monkeypatch):
    """Wait a tenth of a second for requests, and for replies to be taken."""
    monkeypatch.setattr(ImpatientConnection, "request_s", 0.1)
    monkeypatch.setattr(ImpatientConnection, "unread_s", 0.1)


@pytest.fixture
def connect():
    """Open connections to a site."""
    opened = []

    def make(access):
        opened.append(socket.create_connection((access.host, access.port), timeout=WAIT_S))
        return opened[-1]

    yield make
    for connection in opened:
        connection.close()


def closed(connection):
    """Whether the other side ends the connection in time, without a word."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def get(access, path="/"):
    connection = http.client.HTTPConnection(access.host, access.port, timeout=WAIT_S)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("sent", [b"", b"GE", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_half_a_request_is_not_waited_for(folder, render, impatient, connect, sent):
    """A few thousand of them would take all files that the process may open."""
    with serving([folder], render) as access:
        connection = connect(access)
        connection.sendall(sent)

        assert closed(connection)


def test_a_request_that_trickles_is_not_waited_for(folder, render, impatient, connect):
    """Each byte is a sign of life, and a request of one byte a second has no end."""
    with serving([folder], render) as access:
        connection = connect(access)
        trickling = threading.Thread(target=trickle, args=(connection,))
        trickling.start()

        assert closed(connection)
        trickling.join()


def trickle(connection):
    """Send byte after byte, until nobody takes them any more."""
    with contextlib.suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        while True:
            connection.sendall(b"x")
            threading.Event().wait(0.02)


def test_a_second_request_must_become_whole_too(folder, render, impatient, connect):
    """Else a good first one would buy all the time there is."""
    with serving([folder], render) as access:
        connection = connect(access)
        host = f"Host: 127.0.0.1:{access.port}".encode()
        connection.sendall(b"HEAD / HTTP/1.1\r\n" + host + b"\r\n\r\n")
        head = connection.recv(65536)
        connection.sendall(b"HEAD / HT")

        assert head.startswith(b"HTTP/1.1 200")
        assert closed(connection)


def test_a_report_may_take_longer_than_a_request(folder, dataset, impatient):
    """The time is for those who ask, not for the work they ask for."""
    waited = threading.Event()

    def slow(_):
        waited.wait(0.5)
        return "report"

    with serving([folder], slow) as access:
        assert get(access, "/datasets/first/report") == 200


def test_a_reply_that_nobody_takes_is_given_up(folder, dataset, impatient, connect):
    """It lies in memory as long as the connection is open."""
    with serving([folder], lambda _: "x" * 30_000_000) as access:
        connection = connect(access)
        host = f"Host: 127.0.0.1:{access.port}".encode()
        connection.sendall(b"GET /datasets/first/report HTTP/1.1\r\n" + host + b"\r\n\r\n")
        begun = connection.recv(1)
        threading.Event().wait(0.5)

        assert begun == b"H"
        assert length_of(connection) < 30_000_000


def length_of(connection):
    """Return how much is there to be read until the end."""
    length = 0
    try:
        while piece := connection.recv(1_000_000):
            length += len(piece)
    except ConnectionResetError:
        pass
    return length


def test_those_who_wait_longest_make_room(folder, render, monkeypatch, connect):
    """Whoever opens connections without end must not keep the others out."""
    monkeypatch.setattr(ImpatientConnection, "most", 5)
    with serving([folder], render) as access:
        waiting = [connect(access) for _ in range(8)]

        assert get(access) == 200
        assert [closed(each) for each in waiting[:3]] == [True, True, True]
