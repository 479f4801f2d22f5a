import asyncio
import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ragforge.records import Chunk


@pytest.fixture
def chunks():
    """Make chunks of `id=text`."""
    return lambda **texts: [
        Chunk(chunk_id=chunk_id, doc_id="d", text=text) for chunk_id, text in texts.items()
    ]


@pytest.fixture
def ask():
    """Retrieve and wait."""
    return lambda retriever, query, k=10: asyncio.run(retriever.retrieve(query, k))


@pytest.fixture
def ids(ask):
    """Retrieve, wait, and keep the ids."""
    return lambda retriever, query, k=10: [hit.chunk_id for hit in ask(retriever, query, k)]


class Server(ThreadingHTTPServer):
    """Answers each request alike and remembers what came."""

    status = 200
    headers: tuple[tuple[str, str], ...] = ()
    body = b"[]"
    silent = False
    endless = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/search"
        self.requests = []
        self.released = threading.Event()

    def handle_error(self, request, client_address):
        """Say nothing when a client has gone."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        server = self.server
        content = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests.append((self.path, dict(self.headers), content))
        if server.silent:
            server.released.wait()
            return
        self.send_response(server.status)
        for name, value in server.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.body)
        while server.endless and not server.released.wait(0.01):
            self.wfile.write(b" ")

    def log_message(self, *args):
        """Keep the test output clean."""


@pytest.fixture
def make_server():
    """Start servers on loopback that the test owns."""
    with contextlib.ExitStack() as stack:

        def start():
            server = stack.enter_context(Server())
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            stack.callback(server.released.set)
            return server

        yield start


@pytest.fixture
def server(make_server):
    return make_server()
