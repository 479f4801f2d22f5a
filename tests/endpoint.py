"""A scriptable OpenAI-compatible endpoint on loopback, and the replies it can be told to give."""

import contextlib
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the endpoint sends.

    Args:
        body: Bytes, or what is sent as JSON.
        delay_s: Before the first byte.
        dribble_s: Between single bytes of the body; sent at once where 0.
        cut: Bytes of the body that are promised and not sent.
        reset: The connection is reset: instead of any reply, or where it was cut.
        endless: The body is sent again and again, until nobody reads it any more.
    """

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delay_s: float = 0.0
    dribble_s: float = 0.0
    cut: int = 0
    reset: bool = False
    endless: bool = False

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived; its header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Body

    @property
    def user(self) -> str:
        """The last user turn."""
        return str(self.body["messages"][-1]["content"])


Respond = Callable[[str, Body, int], Reply]


class Endpoint(ThreadingHTTPServer):
    """Answers as `respond(path, body, n)` says, n counting from 0, and remembers what came."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, respond: Respond) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.respond = respond
        self.seen: list[Seen] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.released = threading.Event()
        self._lock = threading.Lock()

    @property
    def bodies(self) -> list[Body]:
        """The bodies of all requests."""
        return [seen.body for seen in self.seen]

    def take(self, seen: Seen) -> int:
        """Remember a request and return how many came before it."""
        with self._lock:
            self.seen.append(seen)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            return len(self.seen) - 1

    def done(self) -> None:
        """Note that a reply is about to leave."""
        with self._lock:
            self.in_flight -= 1

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client has gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Endpoint

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(content)
        headers = {name.lower(): value for name, value in self.headers.items()}
        number = self.server.take(Seen(self.path, headers, body))
        try:
            reply = self.server.respond(self.path, body, number)
            if reply.delay_s:
                self.server.released.wait(reply.delay_s)
        finally:
            self.server.done()
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        if reply.reset and not reply.cut:
            self._reset()
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        if reply.endless:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(reply.content)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.endless:
            while not self.server.released.is_set():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(reply.content), reply.content))
        elif reply.dribble_s:
            self._dribble(reply)
        elif reply.cut:
            self._break_off(reply)
        else:
            self.wfile.write(reply.content)

    def _break_off(self, reply: Reply) -> None:
        self.wfile.write(reply.content[: -reply.cut])
        self.close_connection = True
        if reply.reset:
            self.wfile.flush()
            self.server.released.wait(0.1)  # A reset takes with it what is not read yet.
            self._reset()

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        # The buffered streams hold the socket open; without them it closes, and so resets.
        self.rfile.close()
        self.connection.close()
        self.close_connection = True

    def _dribble(self, reply: Reply) -> None:
        for at in range(len(reply.content)):
            self.wfile.write(reply.content[at : at + 1])
            self.wfile.flush()
            if self.server.released.wait(reply.dribble_s):
                return

    def log_message(self, *_: object) -> None:
        """Keep the test output clean."""


@contextlib.contextmanager
def serving(respond: Respond) -> Iterator[Endpoint]:
    """Run an endpoint in a thread until the context ends."""
    with Endpoint(respond) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield endpoint
        finally:
            endpoint.released.set()
            endpoint.shutdown()
            thread.join()


def completion(content: object, **changes: Any) -> Body:
    """Return a chat completion.

    Args:
        content: The message's content; made JSON where it is a mapping.
        changes: finish_reason, refusal, usage (None leaves it out), model.
    """
    text = json.dumps(content) if isinstance(content, Mapping) else content
    body: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": changes.get("model", "test-model"),
        "choices": [
            {
                "index": 0,
                "finish_reason": changes.get("finish_reason", "stop"),
                "message": {
                    "role": "assistant",
                    "content": text,
                    "refusal": changes.get("refusal"),
                },
            }
        ],
        "usage": changes.get("usage", {"prompt_tokens": 10, "completion_tokens": 5}),
    }
    if body["usage"] is None:
        del body["usage"]
    return body


def fault(status: int, message: str, *, code: str = "", param: str = "", **headers: str) -> Reply:
    """Return an error in OpenAI's shape; underscores in header names stand for hyphens."""
    error = {"message": message, "type": "error", "param": param or None, "code": code or None}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({"error": error}, status=status, headers=named)


def valid(body: Body) -> Body:
    """Return a valid reply to a request of one of the stages, by its schema's fields."""
    prompt = body["messages"][-1]["content"]
    system = body["messages"][0]["content"]
    form = body.get("response_format", {}).get("json_schema", {}).get("schema")
    fields = set(form["properties"]) if form else set(re.findall(r'"(\w+)": \{', system))
    if "grade" in fields and "verdicts" not in fields:
        return _relevance(prompt)
    for name, reply in _GENERATION.items():
        if name in fields:
            return reply(prompt)
    if "facts" in fields:
        return _statuses(prompt) if "claims" in fields else _facts(prompt)
    return _recheck(prompt) if {"quote", "answer"} <= fields else _verdict(prompt)


def answering(path: str, body: Body, number: int) -> Reply:
    """Answer every request well."""
    return Reply(completion(valid(body)))


def datum(prompt: str, name: str) -> Any:
    """Return a value that a prompt holds as JSON behind `name: `."""
    [text] = re.findall(rf"^{name}: (.*)$", prompt, re.MULTILINE)
    return json.loads(text)


def _relevance(prompt: str) -> Body:
    return _graded(datum(prompt, "query"), datum(prompt, "passage"))


def _batch(prompt: str) -> Body:
    query = datum(prompt, "query")
    return {
        "verdicts": [
            {"id": shown["id"], **_graded(query, shown["passage"])}
            for shown in datum(prompt, "passages")
        ]
    }


def _graded(query: str, passage: str) -> Body:
    shared = {word for word in re.findall(r"\w{4,}", query.lower()) if word in passage.lower()}
    grade = min(3, len(shared))
    return {
        "reasoning": f"shares {len(shared)} words",
        "evidence": passage.split("\n")[0] if grade >= 2 else "",
        "contains_answer": grade >= 2,
        "grade": grade,
    }


def _proposal(prompt: str) -> Body:
    passages = datum(prompt, "passages")
    lines = [max(shown["text"].strip().split("\n"), key=len) for shown in passages]
    first, *_, last = re.findall(r"\w{4,}", " ".join(shown["text"] for shown in passages))
    sentence = f"Which facts join {first} with {last}, and why?"
    is_keyword = datum(prompt, "type") == "keyword"
    return {
        "quotes": [
            {"passage": shown["passage"], "quote": line}
            for shown, line in zip(passages, lines, strict=True)
        ],
        "question": f"{first} with {last} and more" if is_keyword else sentence,
        "answer": f"It is said that {' '.join(lines)}",
        "difficulty": datum(prompt, "difficulty"),
    }


def _candidates(prompt: str) -> Body:
    return {"candidates": [_proposal(prompt)]}


def _follow_ups(prompt: str) -> Body:
    before = {"first_question": "What is there to know?", "first_answer": "Several things."}
    proposal = _proposal(prompt)
    short = {"question": "And what joins them?", "standalone": proposal["question"]}
    return {"follow_ups": [{**proposal, **before, **short}]}


def _near_misses(prompt: str) -> Body:
    answer = "The documentation does not say that."
    return {"near_misses": [{**_proposal(prompt), "missing": "reason", "answer": answer}]}


def _facts(prompt: str) -> Body:
    return {"facts": [{"statement": datum(prompt, "expected answer"), "importance": "vital"}]}


def _statuses(prompt: str) -> Body:
    answer = datum(prompt, "answer")
    said = {True: (answer, "supported"), False: ("", "missing")}
    statuses = [(fact["id"], *said[fact["fact"] == answer]) for fact in datum(prompt, "facts")]
    other = all(status == "missing" for *_, status in statuses)
    return {
        "facts": [{"id": name, "quote": quote, "status": word} for name, quote, word in statuses],
        "claims": [{"claim": answer, "quote": "", "supported": False}] if other else [],
    }


def _verdict(prompt: str) -> Body:
    same = datum(prompt, "expected answer") == datum(prompt, "answer")
    return {
        "explanation": "compared",
        "unsupported": [],
        "verdict": "correct" if same else "incorrect",
    }


def _questions(prompt: str) -> Body:
    verdict = {"readings": ["one thing", "another thing"], "missing": "", "clear": "yes"}
    return {
        "questions": [
            {"id": one["id"], "question": one["question"], **verdict, "answer": "unknown"}
            for one in datum(prompt, "questions")
        ]
    }


def _pairs(prompt: str) -> Body:
    verdict = {"difference": "", "verdict": "agrees"}
    return {
        "pairs": [
            {"id": one["id"], "question": one["question"], **verdict}
            for one in datum(prompt, "pairs")
        ]
    }


def _from_quotes(prompt: str) -> Body:
    quote = datum(prompt, "quotes")[0]["quote"]
    return {"quote": quote, "premise": "ok", "answerable": "yes", "answer": f"It says: {quote}"}


def _search(_prompt: str) -> Body:
    return {"id": "", "quote": "", "found": "no"}


def _recheck(prompt: str) -> Body:
    texts = " ".join(shown["text"] for shown in datum(prompt, "passages"))
    there = [quote for quote in datum(prompt, "quotes") if quote in texts]
    quote, verdict = (there[0], "same") if there else ("", "none")
    return {"quote": quote, "verdict": verdict, "answer": ""}


_GENERATION: dict[str, Callable[[str], Body]] = {
    "verdicts": _batch,
    "candidates": _candidates,
    "follow_ups": _follow_ups,
    "near_misses": _near_misses,
    "questions": _questions,
    "pairs": _pairs,
    "premise": _from_quotes,
    "found": _search,
}
