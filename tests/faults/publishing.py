"""Processes that publish versions of a set and are stopped, and some that read it meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from faults.harness import until

TESTS = Path(__file__).parents[1]

PUBLISHING = """
import errno, itertools, json, os, sys
from pathlib import Path
sys.path.append(sys.argv[1])
from versioned_sets import refreshed
from ragforge.errors import DataError
from ragforge.files import atomic

STEPS = "link rename replace symlink unlink mkdir rmdir fsync ftruncate pwrite".split()
TAKE_ROOM = [name for name in STEPS if name not in ("unlink", "rmdir", "ftruncate")]

def on_each(names, before, after):
    os.fsync = lambda descriptor: None  # Waiting for the disk changes nothing for a killed process.
    for holder, name in [*((os, name) for name in names), (atomic, "exchange")]:
        def step(*given, _function=getattr(holder, name), **named):
            before()
            found = _function(*given, **named)
            after()
            return found
        setattr(holder, name, step)

def ends(path, tag, last):
    steps = itertools.count(1)
    on_each(STEPS, lambda: None, lambda: next(steps) >= last and os._exit(9))
    refreshed(path, tag)

def fills(path, tag, last):
    steps = itertools.count(1)
    def take_room():
        if next(steps) >= last:
            raise OSError(errno.ENOSPC, "No space left on device")
    on_each(TAKE_ROOM, take_room, lambda: None)
    try:
        refreshed(path, tag)
    except DataError as error:
        os._exit(3 if "No space left" in str(error) else 4)

def loop(path):
    for number in itertools.count():
        refreshed(path, f"p{os.getpid()}n{number}")

for line in sys.stdin:
    what, path, *more = json.loads(line)
    child = os.fork()
    if child == 0:
        {"loop": loop, "ends": ends, "fills": fills}[what](Path(path), *more)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Each line on its input is done by a child of its own, whose id and exit code it prints."""

READING = """
import itertools, json, sys, threading
from pathlib import Path
sys.path.append(sys.argv[1])
from versioned_sets import N, mixture

paths, ended = map(Path, itertools.cycle(sys.argv[2:])), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
looks, mixtures, errors = 0, [], []
print("ready", flush=True)
while not ended.is_set():
    looks += 1
    path = next(paths)
    try:
        mixtures += mixture(path)
        for name in ("chunks.jsonl", "queries.jsonl", "judgments.jsonl"):
            if len((path / name).read_bytes().splitlines()) != N:
                mixtures.append(f"{name}: not whole")
        if not (path / "manifest.json").is_file():
            errors.append("manifest.json: not there")
    except Exception as error:
        errors.append(repr(error))
print(json.dumps([looks, mixtures, errors]))
"""


def start(code: str, *more: object) -> "subprocess.Popen[str]":
    """Start a program."""
    words = [sys.executable, "-c", code, str(TESTS), *map(str, more)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@dataclass
class Publisher:
    """A process whose children refresh sets."""

    process: "subprocess.Popen[str]" = field(default_factory=lambda: start(PUBLISHING))

    def begin(self, *words: object) -> int:
        """Have a child do something, and return its id."""
        assert self.process.stdin is not None
        self.process.stdin.write(
            f"{json.dumps([str(w) if isinstance(w, Path) else w for w in words])}\n"
        )
        self.process.stdin.flush()
        return self._number()

    def run(self, *words: object) -> int:
        """Have a child do something, and return its exit code."""
        self.begin(*words)
        return self._number()

    def kill(self, path: Path, after_s: float) -> int:
        """Kill a child that publishes all the time, and return its exit code."""
        child = self.begin("loop", path)
        end_s = time.monotonic() + after_s
        until(lambda: time.monotonic() >= end_s)
        os.kill(child, signal.SIGKILL)
        return self._number()

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()

    def _number(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())


@dataclass
class Reader:
    """A process that reads a set over and over."""

    process: "subprocess.Popen[str]"
    looks: int = 0
    mixtures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def end(self) -> None:
        """End it, and take what it saw."""
        out, _ = self.process.communicate()
        self.looks, self.mixtures, self.errors = json.loads(out)


def reader_of(*paths: Path) -> Reader:
    """Start one that reads sets in turn, and wait until it does."""
    process = start(READING, *paths)
    assert process.stdout is not None
    process.stdout.readline()
    return Reader(process)
