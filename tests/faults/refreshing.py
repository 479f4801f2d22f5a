"""Processes that refresh a set and are stopped, and a thread that reads it meanwhile."""

import contextlib
import os
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path

from faults.commands import Commands
from faults.harness import Endpoint, until
from nights import Night
from versioned_sets import mixture

AT_ONCE = 3
FLAGS = ("--concurrency", str(AT_ONCE), "-q")


@dataclass
class Refreshing:
    """The command `ragforge refresh` over a small corpus that changed."""

    night: Night
    endpoint: Endpoint
    commands: Commands
    pid: int = 0

    def begin(self, full: str = "") -> None:
        """Start it."""
        self.pid = self.commands.begin(self.night.words(*FLAGS), self._told, full)

    def end(self) -> int:
        """Wait for it, and return its exit code; the endpoint has nothing to do then."""
        code = self.commands.number()
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
