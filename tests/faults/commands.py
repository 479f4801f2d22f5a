"""Commands in children of one process, killed at moments of their work and run again."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.harness import until

COMMANDS = """
import errno, itertools, json, os, signal, sys
import openai
import ragforge.cli.cache, ragforge.cli.evaluate, ragforge.cli.refresh, ragforge.corpus.markdown
import ragforge.llm.openai_endpoint, ragforge.llm.store.transfer, ragforge.pipeline.history
import ragforge.refresh.refreshing, ragforge.report.versions
import ragforge.retrieval.bm25
from ragforge.cli import main
from ragforge.files import atomic

STEPS = "open write link rename replace symlink unlink mkdir fsync ftruncate pwrite".split()

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

def die(last):
    steps = itertools.count(1)

    def on(function):
        def step(*given, **named):
            if next(steps) >= last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given, **named)

        return step

    for name in STEPS:
        setattr(os, name, on(getattr(os, name)))
    atomic.exchange = on(atomic.exchange)

for line in sys.stdin:
    words, told, full, dies_at = json.loads(line)
    child = os.fork()
    if child == 0:
        # A shell's background jobs ignore SIGINT, and so would their children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        out = os.open(told, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if full:
            fill(full)
        if dies_at:
            die(dies_at)
        sys.argv = ["ragforge", *words]
        os._exit(main(words))
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Each line on its input is done by a child of its own, whose id and exit code it prints: the
command's words, a file for what it tells, the file for which the disk has no room, and the step
of its work with files before which it is killed."""

MOST_TRIES = 90


@dataclass
class Commands:
    """A process whose children run commands; importing everything once saves a second a run."""

    process: "subprocess.Popen[str]" = field(
        default_factory=lambda: subprocess.Popen(
            [sys.executable, "-c", COMMANDS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )

    def number(self) -> int:
        """Return the next id or exit code."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def begin(self, words: list[str], told: Path, full: str = "", dies_at: int = 0) -> int:
        """Start a child, and return its id."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps([words, str(told), full, dies_at])}\n")
        self.process.stdin.flush()
        return self.number()

    def run(self, words: list[str], told: Path, *, dies_at: int = 0) -> int:
        """Run a command, and return its exit code."""
        self.begin(words, told, dies_at=dies_at)
        return self.number()

    def kill(self, words: list[str], told: Path, after_s: float) -> int:
        """Run a command, kill it after a time, and return its exit code."""
        child = self.begin(words, told)
        end_s = time.monotonic() + after_s
        until(lambda: time.monotonic() >= end_s)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        return self.number()

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


@dataclass
class Kills:
    """What came of a command that was killed over and over, each time on a set like the first."""

    calm: Any
    """What was there after a run that nothing disturbed."""
    after: list[Any] = field(default_factory=list)
    """What was there after each kill."""
    ended: list[Any] = field(default_factory=list)
    """What was there after the run behind each kill."""
    last: list[int] = field(default_factory=list)
    """The exit codes of those runs."""


def kill_often(
    commands: Commands,
    told: Path,
    prepare: Callable[[], list[str]],
    look: Callable[[], Any],
    kills: int = 21,
) -> Kills:
    """Kill a command at moments spread over the time that a calm run takes.

    Args:
        commands: Runs it.
        told: A file for what it tells.
        prepare: Puts things as they are at first, and returns the command's words.
        look: Says what is there now.
        kills: How many; a run that ended before its kill does not count.
    """
    draws = random.Random(16)
    words = prepare()
    began_s = time.monotonic()
    assert commands.run(words, told) == 0, told.read_text()
    took_s = time.monotonic() - began_s
    made = Kills(look())
    for number in range(MOST_TRIES):
        if len(made.after) == kills:
            return made
        words = prepare()
        moment = (number % kills + draws.random()) / kills
        if commands.kill(words, told, moment * took_s) == -signal.SIGKILL:
            made.after.append(look())
            made.last.append(commands.run(words, told))
            made.ended.append(look())
        else:
            took_s *= 0.9
    raise AssertionError(f"{len(made.after)} kills in {MOST_TRIES} tries")


def kill_at_each_step(
    commands: Commands, told: Path, prepare: Callable[[], list[str]], look: Callable[[], Any]
) -> Kills:
    """Kill a command before each of its steps on files, likewise."""
    words = prepare()
    assert commands.run(words, told) == 0, told.read_text()
    made = Kills(look())
    for step in range(1, 1000):
        words = prepare()
        code = commands.run(words, told, dies_at=step)
        if code == 0:
            return made
        assert code == -signal.SIGKILL, told.read_text()
        made.after.append(look())
        made.last.append(commands.run(words, told))
        made.ended.append(look())
    raise AssertionError
