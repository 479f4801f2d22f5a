"""Nothing is sent to anybody who was not named."""

import subprocess
import sys

import pytest

BARRED = """
import socket, sys
from ragforge.cli import main

def barred(*told, **more):
    print("barred", told[-1:], file=sys.stderr)
    raise OSError("no connection is allowed here")

for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, barred)
socket.getaddrinfo = barred
sys.exit(main(sys.argv[1:]))
"""


def _ran(folder, *words):
    return subprocess.run(
        [sys.executable, "-c", BARRED, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_pipeline_asks_nobody(tmp_path):
    """The demo goes from documents to a page, through every job, without one connection."""
    done = _ran(tmp_path, "demo")

    assert done.returncode == 0, done.stderr
    assert "barred" not in done.stderr


@pytest.mark.slow
def test_a_connection_would_have_been_seen(tmp_path):
    """A bar that lets everything pass would prove nothing."""
    done = _ran(tmp_path, "probe", "http://127.0.0.1:9/search", "Why?", "--max-attempts", "1")

    assert done.returncode != 0
    assert "barred" in done.stderr
