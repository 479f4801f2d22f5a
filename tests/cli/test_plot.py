"""Pictures drawn in a terminal, in a pipe and into files."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest
from evaluated_sets import many_queries, new_dataset

__all__ = ["many_queries", "new_dataset"]

BOLD = "\x1b[1m"


@pytest.fixture
def words(many_queries):
    """The command for a set of twelve queries with two runs."""
    return ["plot", "compare", "--dataset", str(many_queries(12).path)]


def on_terminal(words, columns, **environment):
    """Return the lines that a command prints on a terminal of a width."""
    inner, outer = pty.openpty()
    fcntl.ioctl(outer, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    dropped = ("LINES", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING")
    given = {name: text for name, text in os.environ.items() if name not in dropped}
    command = [sys.executable, "-m", "ragforge", *words]
    env = {**given, "TERM": "xterm", "PYTHONUTF8": "1", **environment}
    subprocess.run(command, stdout=outer, check=True, env=env)
    os.close(outer)
    text = os.read(inner, 65_536).decode()
    os.close(inner)
    return text.splitlines()


@pytest.mark.parametrize("out", [[], ["--out", "-"]])
def test_without_a_file_a_picture_is_printed(run, words, out, monkeypatch):
    """A look takes no file and no window."""
    monkeypatch.setenv("COLUMNS", "60")

    code, printed, _ = run(*words, *out)

    assert code == 0
    assert printed.startswith("nDCG@10 of new (B) less base (A)\n")
    assert "█ 12\n" in printed
    assert "\x1b" not in printed
    assert max(map(len, printed.splitlines())) == 60


@pytest.mark.slow
@pytest.mark.parametrize("columns", [50, 120])
def test_on_a_terminal_a_picture_is_as_wide_as_that(words, columns):
    """What is broken into lines is no picture."""
    title, *lines = on_terminal(words, columns)

    assert title.startswith(BOLD)
    assert max(map(len, lines)) == columns


@pytest.mark.slow
def test_a_terminal_gets_no_colours_and_no_blocks_that_it_cannot_show(words):
    """NO_COLOR is somebody's wish, and an encoding is what a console has."""
    lines = on_terminal(words, 60, NO_COLOR="1", PYTHONIOENCODING="ascii")

    assert "\x1b" not in "".join(lines)
    assert any("####" in line for line in lines)
    assert not any("\\u" in line for line in lines)
