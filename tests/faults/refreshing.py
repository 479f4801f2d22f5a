"""Processes that refresh a set and are stopped, and a thread that reads it meanwhile."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from faults.harness import Endpoint, until
from nights import Night
from versioned_sets import mixture

AT_ONCE = 3
FLAGS = ("--concurrency", str(AT_ONCE), "-q")

REFRESHING = """
import errno, json, os, signal, sys
import openai
import ragforge.cli.refresh, ragforge.corpus.markdown, ragforge.llm.openai_endpoint
import ragforge.pipeline.refreshing.refreshing, ragforge.report.refresh.text
from ragforge.cli import main

def fill(name):
    sync, link = os.fsync, os.symlink

    def full(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").split("/")[-1].startswith(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    def no_link(*more, **named):
        if name == "symlink":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        link(*more, **named)

    os.fsync, os.symlink = full, no_link

for line in sys.stdin:
    words, told, full = json.loads(line)
    child = os.fork()
    if child == 0:
        # A shell's background jobs ignore SIGINT, and so would their children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        out = os.open(told, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if full:
            fill(full)
        sys.argv = ["ragforge", *words]
        os._exit(main(words))
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Each line on its input is done by a child of its own, whose id and exit code it prints: the
command's words, a file for what it tells, and the file for which the disk has no room."""


@dataclass
class Refresher:
    """A process whose children refresh sets; importing everything once saves a second a run."""

    process: "subprocess.Popen[str]" = field(
        default_factory=lambda: subprocess.Popen(
            [sys.executable, "-c", REFRESHING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )

    def number(self) -> int:
        """Return the next id or exit code."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def begin(self, words: list[str], told: Path, full: str) -> int:
        """Start a child, and return its id."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps([words, str(told), full])}\n")
        self.process.stdin.flush()
        return self.number()

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


@dataclass
class Refreshing:
    """The command `ragforge refresh` over a small corpus that changed."""

    night: Night
    endpoint: Endpoint
    refresher: Refresher
    pid: int = 0

    def begin(self, full: str = "") -> None:
        """Start it."""
        self.pid = self.refresher.begin(self.night.words(*FLAGS), self._told, full)

    def end(self) -> int:
        """Wait for it, and return its exit code; the endpoint has nothing to do then."""
        code = self.refresher.number()
        until(lambda: self.endpoint.count("in_flight_now") == 0)
        return code

    def run(self, full: str = "") -> int:
        """Run it to its end, and return its exit code."""
        self.begin(full)
        return self.end()

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    @property
    def is_there(self) -> bool:
        """Whether it runs."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self, moment: "Billed | There") -> tuple[int, int]:
        """Run it, kill it at a moment, and return its code and the calls that were in flight."""
        before = self.billed
        self.begin()
        until(lambda: moment(self, before) or not self.is_there)
        in_flight = self.endpoint.count("in_flight_now")
        self.send(signal.SIGKILL)
        return self.end(), in_flight

    @property
    def told(self) -> str:
        """What it wrote on its streams."""
        return self._told.read_text()

    @property
    def _told(self) -> Path:
        return self.night.folder / "told.txt"

    @property
    def billed(self) -> int:
        """Replies that were billed so far."""
        return self.endpoint.count("billed")


@dataclass(frozen=True)
class Billed:
    """So many replies of this run were billed."""

    number: int

    def __call__(self, run: Refreshing, before: int) -> bool:
        """Say whether it has come."""
        return run.billed >= before + self.number


@dataclass(frozen=True)
class There:
    """A file of the set is there."""

    pattern: str

    def __call__(self, run: Refreshing, before: int) -> bool:
        """Say whether it has come."""
        return next(run.night.set.glob(self.pattern), None) is not None


@dataclass
class Looks:
    """Reads a set over and over in a thread, as those do who measure with it."""

    path: Path
    looks: int = 0
    mixtures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __enter__(self) -> "Looks":
        """Begin."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        # Without a pause it would take the time of the endpoint, which is in the same process.
        while not self._ended.wait(0.01):
            self.looks += 1
            try:
                self.mixtures += mixture(self.path)
            except Exception as error:  # noqa: BLE001  # the test looks at it
                self.errors.append(repr(error))
