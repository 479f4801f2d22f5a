"""Running `ragforge generate` against endpoints that do as they are told."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from endpoint import Body, Endpoint, Reply, completion, serving

from ragforge.cli import main
from ragforge.files.set.dataset import Dataset
from ragforge.files.shipped_folders import shipped
from ragforge.mock.content import body_sha256, good_content
from ragforge.pipeline.validating import validate

POLICIES = shipped("datasets") / "helpcentre" / "documents" / "policies"
"""Nine documents in 81 chunks."""

PAGE = """# Returns

## Time limit for parcels

Parcels may be sent back within thirty days of the day on which they were delivered.
"""
"""A document in one chunk."""

SET = ("queries.jsonl", "judgments.jsonl", "pool.jsonl", "plan.jsonl", "rejected.jsonl")
"""What two runs on the same inputs have in common, whatever their directories are called."""

_STAGES = {
    "candidates": "write",
    "follow_ups": "write",
    "near_misses": "write",
    "questions": "check_question",
    "premise": "check_answer",
    "pairs": "compare_answers",
    "found": "find_answer",
    "verdicts": "judge",
    "grade": "judge",
    "verdict": "recheck",
}

Change = Callable[[str, Body, Body], object]
"""From the stage, a good reply and the request to the reply that is sent: an object, or a Reply."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a run of the command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """What was printed for scripts."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def generate(out: Path, *flags: str, n: int = 6, documents: Path = POLICIES) -> Done:
    """Run the command in this process."""
    words = ["generate", "--documents", str(documents), "-n", str(n), "--out", str(out), *flags]
    return run(words)


def pages(folder: Path, *names: str) -> Path:
    """Write a folder of documents that all read the same."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(PAGE)
    return folder


def run(words: list[str]) -> Done:
    """Run a command in this process."""
    said, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = main([*words, "-q"] if words[0] == "generate" else words)
    return Done(code, said.getvalue(), told.getvalue())


def stage_of(body: Body) -> str:
    """Return what a request asks for."""
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    return next(stage for field, stage in _STAGES.items() if field in properties)


def good(body: Body) -> Body:
    """Return the reply that the shipped mock endpoint gives."""
    value: Body = good_content(body, body_sha256(body), 0).value
    return value


def keep(stage: str, reply: Body, body: Body) -> object:
    """Change nothing."""
    return reply


@contextlib.contextmanager
def endpoint(change: Change = keep) -> Iterator[Endpoint]:
    """Serve good replies, changed as told."""

    def respond(path: str, body: Body, number: int) -> Reply:
        said = change(stage_of(body), good(body), body)
        return said if isinstance(said, Reply) else Reply(completion(said))

    with serving(respond) as running:
        yield running


def at(running: Endpoint, name: str = "writer") -> tuple[str, ...]:
    """Return the flags that name an endpoint."""
    return ("--model", name, "--base-url", running.url)


def stages(running: Endpoint) -> list[str]:
    """Return what was asked for, in turn."""
    return [stage_of(body) for body in running.bodies]


def files(out: Path) -> dict[str, bytes]:
    """Return all files of a set but those of the call store."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".ragforge" not in path.parts
    }


def made(out: Path) -> dict[str, bytes]:
    """Return the files that do not tell of their directory."""
    return {name: content for name, content in files(out).items() if name in SET}


def accepted(out: Path) -> list[dict[str, Any]]:
    """Return the accepted queries as rows."""
    rows = [json.loads(line) for line in (out / "queries.jsonl").read_text().splitlines()]
    return [row for row in rows if row["status"] == "accepted"]


def ids(out: Path) -> list[str]:
    """Return the ids of the accepted queries."""
    return [row["query_id"] for row in accepted(out)]


def problems(out: Path) -> list[Any]:
    """Return what `ragforge validate` finds wrong."""
    return list(validate(Dataset(out)).problems)
