"""A client that shows what really comes over the wire, and requests to send with it."""

import contextlib
import http.client
import json
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from ragforge.llm.structured import reply_schema
from ragforge.mock import Script, serving
from ragforge.stages.judge.llm import RelevanceReply

TIMEOUT_S = 20


@dataclass(frozen=True)
class Received:
    """A reply; header names in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.content)

    @property
    def choice(self) -> Any:
        """The first choice of a chat completion."""
        return self.json["choices"][0]

    @property
    def text(self) -> Any:
        """What the model says."""
        return self.choice["message"]["content"]

    @property
    def error(self) -> Any:
        """The error object."""
        return self.json["error"]


class Client:
    """Sends requests to a running endpoint, each over a connection of its own."""

    def __init__(self, running) -> None:
        self.running = running
        parts = urlsplit(running.url)
        self.address = (parts.hostname, parts.port)

    def ask(self, method, path, body=None, timeout=TIMEOUT_S, **headers) -> Received:
        """Send one request and read its reply; underscores in header names stand for hyphens."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, content, named)
            reply = connection.getresponse()
            low = {name.lower(): value for name, value in reply.getheaders()}
            return Received(reply.status, low, reply.read())

    def chat(self, body, **more) -> Received:
        """Ask for a chat completion."""
        return self.ask("POST", "/v1/chat/completions", body, **more)

    def wait_until(self, *, in_flight) -> None:
        """Wait until so many requests are being worked on."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while self.running.stats()["in_flight"] != in_flight:
            if time.monotonic() > deadline_s:
                raise TimeoutError

    @contextlib.contextmanager
    def connected(self):
        """Open a bare connection."""
        with socket.create_connection(self.address, timeout=TIMEOUT_S) as connection:
            yield connection

    @contextlib.contextmanager
    def waiting(self, body):
        """Send a chat request without reading its reply."""
        content = json.dumps(body).encode()
        with self.connected() as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(content)}\r\n\r\n"
            connection.sendall(head.encode() + content)
            yield connection


@pytest.fixture
def start():
    """Run endpoints with a script until the test ends; return a client of each."""
    with contextlib.ExitStack() as stack:
        yield lambda **script: Client(stack.enter_context(serving(Script(**script))))


@pytest.fixture
def client_of():
    """Make a client of an endpoint that the test runs itself."""
    return Client


@pytest.fixture
def plain():
    """Make a request without a schema."""

    def make(text="hello", **changes):
        return {"model": "m", "messages": [{"role": "user", "content": text}], **changes}

    return make


@pytest.fixture
def judging():
    """Make the request of a judge."""

    def make(number=0, **changes):
        query = json.dumps(f"how often is beeswax put on wood, number {number}")
        prompt = f'<<D>>\nquery: {query}\npassage: "Beeswax is put on wood.\\nTwice."\n<<D>>'
        schema = {"name": "relevance", "strict": True, "schema": reply_schema(RelevanceReply)}
        form = {"type": "json_schema", "json_schema": schema}
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": prompt}]
        return {"model": "m", "messages": messages, "response_format": form, **changes}

    return make
