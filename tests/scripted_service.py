"""A service on loopback that answers each request as a test says, by GET and POST."""

import contextlib
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Seen:
    """A request that came."""

    method: str
    path: str
    params: dict
    headers: dict
    content: bytes

    @property
    def json(self):
        return json.loads(self.content)


@dataclass(frozen=True)
class Answer:
    """What is sent back; a body that is no text is written as JSON."""

    body: object = ()
    status: int = 200
    headers: tuple = ()
    kind: str = "application/json"
    length: int | None = None

    @property
    def content(self):
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class ScriptedService(ThreadingHTTPServer):
    """Answers with `answer`: an `Answer`, a body, or a function of the request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.seen = []
        self.answer = Answer([])
        self.in_flight = 0
        self.most_in_flight = 0
        self.lock = threading.Lock()
        self.released = threading.Event()

    def answers(self, *several):
        """Answer with one after the other, the last one again and again."""
        left = list(several)
        self.answer = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def handle_error(self, request, client_address):
        """Say nothing when a client has gone."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self._reply(b"")

    def do_POST(self):
        self._reply(self.rfile.read(int(self.headers["Content-Length"])))

    def _reply(self, content):
        server = self.server
        parts = urlsplit(self.path)
        params = dict(parse_qsl(parts.query, keep_blank_values=True))
        seen = Seen(self.command, parts.path, params, dict(self.headers), content)
        with server.lock:
            server.seen.append(seen)
            server.in_flight += 1
            server.most_in_flight = max(server.most_in_flight, server.in_flight)
        try:
            self._send(server.answer)
        finally:
            with server.lock:
                server.in_flight -= 1

    def _send(self, answer):
        server = self.server
        answer = answer(server.seen[-1]) if callable(answer) else answer
        answer = answer if isinstance(answer, Answer) else Answer(answer)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        length = len(answer.content) if answer.length is None else answer.length
        self.send_header("Content-Length", str(length))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *args):
        """Keep the test output clean."""


@contextlib.contextmanager
def running_scripted_service():
    """Serve until the block ends."""
    with ScriptedService() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
