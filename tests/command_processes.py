"""Commands as processes of their own, forked from one that imported everything once.

Each saves the second or so that importing takes. What follows is `python -m ragforge` as it is:
with its own working directory, environment, streams, signals and end of the interpreter.
"""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

FORKING = """
import importlib, json, os, pkgutil, resource, runpy, signal, socket, sys
import genai_prices, jsonlines, markdown_it, numpy.fft, numpy.random, openai, tqdm.auto
import ragforge

for each in pkgutil.walk_packages(ragforge.__path__, "ragforge."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)

def command(control, given, descriptors):
    control.close()
    *streams, status = descriptors
    child = os.fork()
    if child:
        for stream in (0, 1, 2, *streams):
            os.close(stream)
        os.write(status, b"%d\\n" % child)
        _, ended, used = os.wait4(child, 0)
        took = [os.waitstatus_to_exitcode(ended), used.ru_maxrss, used.ru_utime + used.ru_stime]
        os.write(status, json.dumps(took).encode())
        os._exit(0)
    for number, stream in enumerate(streams, start=1):
        os.dup2(stream, number)
    for descriptor in descriptors:
        os.close(descriptor)
    # A shell's background jobs ignore SIGINT, and so would their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if given["cpu_s"]:
        resource.setrlimit(resource.RLIMIT_CPU, (given["cpu_s"],) * 2)
    os.chdir(given["cwd"])
    os.environ.clear()
    os.environ.update(given["env"])
    sys.path.insert(0, os.getcwd())
    sys.argv = ["ragforge", *given["words"]]

with socket.socket(fileno=int(sys.argv[1])) as control:
    del sys.path[0]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 3)
        if not message:
            os._exit(0)
        # Who waits for the command is waited for at once: a child of a child is nobody's.
        if between := os.fork():
            os.waitpid(between, 0)
            for descriptor in descriptors:
                os.close(descriptor)
            continue
        if os.fork():
            os._exit(0)
        command(control, json.loads(message), descriptors)
        break
runpy.run_module("ragforge", run_name="__main__", alter_sys=True)
"""


@dataclass
class CommandProcess:
    """A command that runs; as `subprocess.Popen` as far as tests go. What it prints is in files."""

    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    most_cpu_s: int = 0
    """It is ended when it computed for so long; 0 for any length."""
    stdout: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    stderr: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    returncode: int | None = None
    mb: float = 0
    """The most memory that it had, once it ended."""
    cpu_s: float = 0
    """How long it computed, once it ended."""

    def __post_init__(self) -> None:
        """Start it."""
        given = {
            "words": list(self.words),
            "cwd": str(self.cwd),
            "env": dict(self.env),
            "cpu_s": self.most_cpu_s,
        }
        readable, writable = os.pipe()
        self.status = os.fdopen(readable, "rb", buffering=0)
        with os.fdopen(writable, "wb") as status:
            descriptors = [stream.fileno() for stream in (self.stdout, self.stderr, status)]
            socket.send_fds(_control(), [json.dumps(given).encode()], descriptors)
        line = b""
        while not line.endswith(b"\n"):
            line += self.status.read(1)
        self.pid = int(line)

    def poll(self, timeout_s: float | None = 0) -> int | None:
        """Return its exit code, less than 0 where a signal ended it; None while it runs."""
        if self.returncode is None and _readable(self.status, timeout_s):
            with self.status:
                self.returncode, kb, self.cpu_s = json.loads(self.status.read())
            self.mb = kb / 1024
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return what it printed, when it ended.

        Raises:
            subprocess.TimeoutExpired: It did not end.
        """
        if self.poll(timeout) is None:
            raise subprocess.TimeoutExpired(list(self.words), timeout or 0)
        texts = []
        for stream in (self.stdout, self.stderr):
            with stream:
                stream.seek(0)
                texts.append(stream.read().decode("utf-8", "backslashreplace"))
        return texts[0], texts[1]

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def _readable(stream: IO[bytes], timeout_s: float | None) -> bool:
    waiting = select.poll()
    waiting.register(stream, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else timeout_s * 1000))


@functools.cache
def _control() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        forking = subprocess.Popen(
            [sys.executable, "-c", FORKING, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            # Threads of a library would not outlive the fork.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def end() -> None:
        ours.close()
        forking.wait(timeout=30)

    atexit.register(end)
    return ours
