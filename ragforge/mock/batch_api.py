"""Files and batches, as OpenAI's API has them: uploaded, worked on, listed, cancelled, and spoilt.

A batch is worked on when it is made: what is billed does not depend on who polls. The script says
how long it takes until anybody is told, and what becomes of the first, second, … batch.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from ragforge.deferred import dataclass
from ragforge.mock.bodies import Problem
from ragforge.mock.http_messages import Request
from ragforge.mock.script import BatchFault, Draws, Script

Line: TypeAlias = dict[str, Any]
_MOST_LISTED = 100
_ENDPOINT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class LineReply:
    """What one request of a batch comes to."""

    status: int
    body: Line


@dataclass(slots=True)
class _File:
    name: str
    purpose: str
    content: bytes
    is_cut: bool = False
    """Whether the next download of it is."""


@dataclass(slots=True)
class _Batch:
    """A batch with what it will have come to."""

    number: int
    made_s: float
    fields: Line
    fault: BatchFault
    output: list[Line] = field(default_factory=list)
    errors: list[Line] = field(default_factory=list)
    ended: str = "completed"
    message: str = ""
    has_files: bool = False


class BatchApi:
    """The files and batches of an endpoint.

    Args:
        script: Says what becomes of them.
        clock: Seconds from any start, never going back.
        reply: Works on one request, and bills it.
    """

    def __init__(
        self,
        script: Script,
        clock: Callable[[], float],
        reply: Callable[[bytes], LineReply],
    ) -> None:
        self._script = script
        self._clock = clock
        self._reply = reply
        self._files: dict[str, _File] = {}
        self._batches: dict[str, _Batch] = {}

    @property
    def made(self) -> int:
        """Batches that were made."""
        return len(self._batches)

    def answer(self, request: Request, path: str) -> bytes | Problem | None:
        """Return the body of a reply, or the problem; None where the path is another's.

        Raises:
            ConnectionError: The batch was made, and the script has nobody told.
        """
        what, *rest = path.strip("/").split("/")
        if what == "files":
            return self._on_files(request, rest)
        return self._on_batches(request, rest) if what == "batches" else None

    def _on_files(self, request: Request, rest: list[str]) -> bytes | Problem:
        if (request.method, rest) == ("POST", []):
            return self._upload(request)
        file = self._files.get(rest[0]) if rest else None
        if file is None:
            return Problem(404, f"No such File object: {'/'.join(rest)}")
        if request.method == "DELETE" and len(rest) == 1:
            del self._files[rest[0]]
            return _json({"id": rest[0], "object": "file", "deleted": True})
        if rest[1:] == ["content"]:
            is_cut, file.is_cut = file.is_cut, False
            return _cut(file.content) if is_cut else file.content
        return _json(self._file_fields(rest[0], file))

    def _upload(self, request: Request) -> bytes | Problem:
        parts = _parts(request)
        if "file" not in parts or parts.get("purpose") != b"batch":
            return Problem(400, "expected a file, and batch as its purpose")
        file_id = self._add("input.jsonl", "batch", parts["file"])
        return _json(self._file_fields(file_id, self._files[file_id]))

    def _add(self, name: str, purpose: str, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()[:16]
        file_id = f"file-{len(self._files)}-{digest}"
        self._files[file_id] = _File(name, purpose, content)
        return file_id

    @staticmethod
    def _file_fields(file_id: str, file: _File) -> Line:
        return {
            "id": file_id,
            "object": "file",
            "bytes": len(file.content),
            "created_at": 0,
            "filename": file.name,
            "purpose": file.purpose,
            "status": "processed",
        }

    def _on_batches(self, request: Request, rest: list[str]) -> bytes | Problem:
        if (request.method, rest) == ("POST", []):
            return self._create(request)
        if (request.method, rest) == ("GET", []):
            return self._list(request)
        batch = self._batches.get(rest[0]) if rest else None
        if batch is None:
            return Problem(404, f"No such batch: {'/'.join(rest)}")
        if request.method == "POST" and rest[1:] == ["cancel"]:
            self._cancel(batch)
        return _json(self._batch_json(batch))

    def _create(self, request: Request) -> bytes | Problem:
        try:
            asked = json.loads(request.body)
            file = self._files[asked["input_file_id"]]
        except (ValueError, LookupError, TypeError):
            return Problem(400, "expected an object with the input_file_id of a file")
        if asked.get("endpoint") != _ENDPOINT:
            return Problem(400, f"expected the endpoint {_ENDPOINT}", param="endpoint")
        number = len(self._batches)
        faults = self._script.batch_fault
        fault: BatchFault = faults[number] if number < len(faults) else "none"
        batch_id = f"batch_{number:06d}"
        fields = {
            "id": batch_id,
            "object": "batch",
            "endpoint": _ENDPOINT,
            "input_file_id": asked["input_file_id"],
            "completion_window": asked.get("completion_window", "24h"),
            "created_at": number,
            "metadata": asked.get("metadata") or {},
        }
        batch = self._batches[batch_id] = _Batch(number, self._clock(), fields, fault)
        self._work(batch, file.content)
        if fault == "untold":
            raise ConnectionError
        return _json(self._batch_json(batch))

    def _work(self, batch: _Batch, content: bytes) -> None:
        """Work on the requests of a batch, as far as its fault lets it come."""
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        if batch.fault == "failed":
            batch.ended, batch.message = "failed", "Enqueued token limit reached for mock"
            return
        if batch.fault == "errors":
            problem = Problem(500, "The server had an error while processing your request")
            batch.errors = [_line(line, LineReply(500, _object(problem))) for line in lines]
            return
        worked = lines[: len(lines) // 2] if batch.fault in ("expired", "half") else lines
        for line in worked:
            reply = self._reply(json.dumps(line["body"]).encode())
            (batch.output if reply.status == 200 else batch.errors).append(_line(line, reply))
        draws = Draws(self._script.seed, "order of a batch", batch.number)
        batch.output.sort(key=lambda line: Draws(draws.fraction(), line["custom_id"]).fraction())
        if batch.fault == "expired":
            batch.ended = "expired"
            batch.errors += [_expired(line) for line in lines[len(worked) :]]
        if batch.fault == "duplicated":
            stranger = {**batch.output[0], "custom_id": "of-another-file"}
            batch.output = [*batch.output, *reversed(batch.output), stranger]

    def _list(self, request: Request) -> bytes:
        query = {name: values[0] for name, values in parse_qs(request.query).items()}
        newest = list(reversed(self._batches))
        start = newest.index(query["after"]) + 1 if query.get("after") in newest else 0
        end = start + min(_MOST_LISTED, int(query.get("limit", "20")))
        data = [self._batch_json(self._batches[batch_id]) for batch_id in newest[start:end]]
        return _json({"object": "list", "data": data, "has_more": end < len(newest)})

    def _cancel(self, batch: _Batch) -> None:
        """Cancel a batch; the first half of its output is there, and paid for."""
        if not self._is_over(batch):
            batch.ended = "cancelled"
            batch.output = batch.output[: len(batch.output) // 2]
            batch.made_s = float("-inf")

    def _is_over(self, batch: _Batch) -> bool:
        return self._clock() - batch.made_s >= self._script.batch_s

    def _batch_json(self, batch: _Batch) -> Line:
        """Return a batch as it is told now; its files are made when it is over."""
        counts = {"total": len(batch.output) + len(batch.errors), "completed": 0, "failed": 0}
        if not self._is_over(batch):
            return {**batch.fields, "status": "in_progress", "request_counts": counts}
        if not batch.has_files:
            batch.has_files = True
            if batch.output:
                content = b"".join(_lines(batch.output))
                if batch.fault == "torn":
                    content = _cut(content)
                file_id = self._add("out.jsonl", "batch_output", content)
                self._files[file_id].is_cut = batch.fault == "cut"
                batch.fields["output_file_id"] = file_id
            if batch.errors:
                content = b"".join(_lines(batch.errors))
                batch.fields["error_file_id"] = self._add("err.jsonl", "batch_output", content)
            if batch.message:
                error = {"code": "token_limit_exceeded", "message": batch.message}
                batch.fields["errors"] = {"object": "list", "data": [error]}
        counts |= {"completed": len(batch.output), "failed": len(batch.errors)}
        return {**batch.fields, "status": batch.ended, "request_counts": counts}


def _line(asked: Line, reply: LineReply) -> Line:
    """Return a line of an output or error file."""
    response = {"status_code": reply.status, "request_id": "req_batch", "body": reply.body}
    return {
        "id": f"batch_req_{asked['custom_id'][:16]}",
        "custom_id": asked["custom_id"],
        "response": response,
        "error": None,
    }


def _expired(asked: Line) -> Line:
    error = {"code": "batch_expired", "message": "This request could not be executed in time."}
    return {**_line(asked, LineReply(0, {})), "response": None, "error": error}


def _object(problem: Problem) -> Line:
    found: Line = json.loads(problem.body())
    return found


def _lines(lines: list[Line]) -> Iterator[bytes]:
    return (json.dumps(line).encode() + b"\n" for line in lines)


def _cut(content: bytes) -> bytes:
    return content[: -len(content) // 3]


def _json(value: Line) -> bytes:
    return json.dumps(value).encode()


def _parts(request: Request) -> dict[str, bytes]:
    """Return the fields of a multipart form by name; none where it is no such form."""
    _, _, boundary = request.headers.get("content-type", "").partition("boundary=")
    if not boundary:
        return {}
    found = {}
    for part in request.body.split(b"--" + boundary.strip('"').encode())[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        _, _, name = head.partition(b'name="')
        found[name.partition(b'"')[0].decode("utf-8", "replace")] = content.removesuffix(b"\r\n")
    return found
