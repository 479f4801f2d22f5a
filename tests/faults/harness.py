"""Running the real product against an endpoint that misbehaves."""

import asyncio
import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_processes import CommandProcess

from ragforge.cli import main
from ragforge.config import Settings
from ragforge.mock import Running, Script, serving
from ragforge.observe import Event, Observer, silent
from ragforge.pipeline.job import Job
from ragforge.pipeline.judge.judge_run import JudgingResult
from ragforge.pipeline.judge.judging import judge_file

KEY = "sk-test-faults-0123456789"
LATENCY = "lognorm:40,0.4"
TIMEOUT_S = 90.0
QUERY = "How is beeswax polish put on tables?"
SHARED = ("nothing", "beeswax", "beeswax polish", "beeswax polish for tables")
"""What a passage shares with the query: 0 to 3 of its 3 words, which is the grade of the mock."""


def until(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Wait for a condition.

    Raises:
        TimeoutError: It did not come true.
    """
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError
        time.sleep(0.003)


class Endpoint:
    """A running mock; all times are seconds since its start or last reset."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.url = running.url
        self.reset()

    def reset(self) -> None:
        """Forget all that happened."""
        self.running.reset()
        self._started_s = time.monotonic()

    def clock(self) -> float:
        """Return the time."""
        return time.monotonic() - self._started_s

    def until(self, clock_s: float) -> None:
        """Wait for a time."""
        until(lambda: self.clock() >= clock_s)

    def count(self, name: str) -> int:
        """Return a count of /__ledger or /__stats."""
        return int({**self.running.ledger(), **self.running.stats()}[name])  # type: ignore[call-overload]  # all are

    def until_billed(self, number: int) -> None:
        """Wait until so many replies were billed."""
        until(lambda: self.count("billed") >= number)

    def faults(self, name: str) -> int:
        """Return how often a fault happened."""
        return self.running.stats()["faults"].get(name, 0)  # type: ignore[attr-defined]  # a mapping

    @property
    def sends(self) -> list[float]:
        """When each request arrived."""
        return list(self.running.stats(full=True)["sends"])  # type: ignore[call-overload]  # a list

    @property
    def span_s(self) -> float:
        """From the first request to the last one."""
        return self.sends[-1] - self.sends[0]


@contextlib.contextmanager
def endpoint(**script: Any) -> Iterator[Endpoint]:
    """Run an endpoint with a script."""
    with serving(Script(**script)) as running:
        yield Endpoint(running)


@dataclass(frozen=True)
class Finished:
    """What a run of the command left."""

    code: int
    out: str
    err: str
    took_s: float


@dataclass
class Told:
    """An observer that keeps events and when they came."""

    events: list[Event] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self.events.append(event)
        self.at_s.append(time.monotonic())

    def named(self, name: str) -> list[Event]:
        """Return the events of one name."""
        return [event for event in self.events if event.name == name]


@dataclass
class Product:
    """The command `ragforge judge` over a file of pairs, in a folder of its own."""

    folder: Path
    endpoint: Endpoint
    n: int = 120
    processes: list[subprocess.Popen[str] | CommandProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Write the pairs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pairs = self.folder / "pairs.jsonl"
        self.out = self.folder / "out" / "judged.jsonl"
        self.failed = self.out.with_name("judged.jsonl.failures.jsonl")
        self.store = self.out.parent / ".ragforge" / "calls.sqlite"
        self.write_pairs(self.passage(number) for number in range(self.n))

    @staticmethod
    def passage(number: int) -> str:
        """Return a passage of grade `number % 4`."""
        return f"Note no. {number}: the shop of wood and wax has {SHARED[number % 4]}."

    def write_pairs(self, passages: Iterator[str]) -> None:
        """Write the file of pairs."""
        rows = [
            {"query_id": "q", "query": QUERY, "chunk_id": f"c{number:05}", "text": text}
            for number, text in enumerate(passages)
        ]
        self.pairs.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    def words(self, *flags: str) -> list[str]:
        """Return the command."""
        files = ["--pairs", str(self.pairs), "--out", str(self.out)]
        return ["judge", *files, "--model", "mock", "--base-url", self.endpoint.url, *flags]

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables that a user has, and further ones."""
        known = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "RAGFORGE_"))}
        # What a pool holds, and who grades, must not depend on what is installed.
        local = dict.fromkeys(("RAGFORGE_POOL_POOL_MODEL", "RAGFORGE_MODEL_OFFLINE_MODEL"), "none")
        pinned = {**local, "OPENAI_API_KEY": KEY}
        return {**known, **pinned, **more}

    def begin(self, *flags: str, **unusual: Any) -> subprocess.Popen[str] | CommandProcess:
        """Start the command as a process; where something is unusual, by an interpreter of its own.

        Args:
            flags: Behind the usual ones.
            unusual: As `begin_unusual` takes it.
        """
        if unusual:
            return self.begin_unusual(*flags, **unusual)
        process = CommandProcess(self.words(*flags), self.folder, self.environment())
        self.processes.append(process)
        return process

    def begin_unusual(
        self,
        *flags: str,
        program: tuple[str, ...] = ("-m", "ragforge"),
        first: Callable[[], object] = lambda: None,
        environment: dict[str, str] | None = None,
        **streams: Any,
    ) -> subprocess.Popen[str]:
        """Start the command in another way than users do.

        Args:
            flags: Behind the usual ones.
            program: What Python runs.
            first: Called in the process before that.
            environment: Further variables.
            streams: Other than pipes.
        """

        def prepare() -> None:
            # A shell's background jobs ignore SIGINT, and so would their children.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            first()

        process = subprocess.Popen(
            [sys.executable, *program, *self.words(*flags)],
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env=self.environment(**(environment or {})),
            preexec_fn=prepare,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )
        self.processes.append(process)
        return process

    def run(self, *flags: str, **more: Any) -> Finished:
        """Run the command as a process to its end."""
        return finish(self.begin(*flags, **more))

    def main(self, *flags: str) -> Finished:
        """Run the command in this process."""
        out, err = io.StringIO(), io.StringIO()
        began_s = time.monotonic()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(self.words(*flags))
        return Finished(code, out.getvalue(), err.getvalue(), time.monotonic() - began_s)

    def settings(self, budget: dict[str, object] | None = None, **model: object) -> Settings:
        """Return the settings that name the endpoint."""
        fields = {"name": "mock", "base_url": self.endpoint.url, "concurrency": 16, **model}
        return Settings.model_validate({"model": fields, "budget": budget or {}})

    def judge(
        self, observer: Observer = silent, budget: dict[str, object] | None = None, **model: object
    ) -> JudgingResult:
        """Judge in this process, with settings instead of flags."""
        settings = self.settings(budget, **model)
        return asyncio.run(judge_file(self.pairs, self.out, Job(settings, observer)))

    @property
    def judged(self) -> list[dict[str, Any]]:
        """The rows of the output."""
        return rows(self.out)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The rows of the file of failures."""
        return rows(self.failed) if self.failed.exists() else []

    @property
    def grades(self) -> list[int | None]:
        """The grades by chunk."""
        return [row["grade"] for row in self.judged]

    @property
    def expected(self) -> list[int]:
        """The grades that good replies give."""
        return [number % 4 for number in range(self.n)]

    def ask_store(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query of the call store; [] where there is no store yet."""
        if not self.store.exists():
            return []
        with contextlib.closing(sqlite3.connect(self.store, timeout=30)) as store:
            try:
                return store.execute(sql).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    @property
    def bought(self) -> int:
        """How many replies the store holds."""
        return len(self.ask_store("SELECT key FROM calls"))

    @property
    def unanswered(self) -> int:
        """How many attempts the store holds that may have been billed for nothing."""
        return len(self.ask_store("SELECT id FROM unanswered"))

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def finish(
    process: subprocess.Popen[str] | CommandProcess, timeout_s: float = TIMEOUT_S
) -> Finished:
    """Wait for a process."""
    began_s = time.monotonic()
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Finished(process.returncode, out or "", err or "", time.monotonic() - began_s)


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
