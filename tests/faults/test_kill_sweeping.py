"""A sweep that is killed goes on where it was, and leaves no process behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from ragforge.cli import main

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")

SIZES = ",".join(str(size) for size in range(100, 1700, 80))
CUT = ("--splitter", "recursive", "--overlap", "0")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Make the set of the demonstration."""
    made = tmp_path_factory.mktemp("demo") / "set"
    main(["demo", "--out", str(made), "-q"])
    return made


@pytest.fixture
def words(demo, tmp_path, capsys):
    """Return a sweep of many sizes on a copy of it."""
    shutil.copytree(demo, tmp_path / "set")
    capsys.readouterr()
    sweep = ["sweep", "--dataset", str(tmp_path / "set"), "--size", SIZES, "-q", "--json"]
    return [*sweep, *CUT, "--retriever", "bm25"]


def started(words):
    """Start a sweep in two processes of a session of its own."""
    command = [sys.executable, "-m", "ragforge", *words, "--processes", "2"]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # A shell's background jobs ignore SIGINT, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_until(true, seconds):
    """Wait until something holds; return whether it does."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def is_empty(group):
    """Whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("blow", ["SIGKILL", "SIGINT"])
def test_what_was_ranked_before_a_kill_is_kept(words, tmp_path, capsys, blow):
    """A night of ranking must not begin anew."""
    folder = tmp_path / "set" / ".ragforge" / "sweep"
    sweep = started(words)
    wait_until(lambda: len(list(folder.glob("*.json"))) > 4, 60)
    sweep.send_signal(signal.Signals[blow])
    sweep.communicate(timeout=60)

    ended = wait_until(lambda: is_empty(sweep.pid), 10)
    n_kept = len(list(folder.glob("*.json")))
    code = main([*words, "--processes", "1"])

    found = json.loads(capsys.readouterr().out)["configurations"]
    assert ended
    assert 4 < n_kept < len(found)
    assert (code, sum(item["kept"] for item in found)) == (0, n_kept)


READER = """
import pathlib, time

def read(query, contexts):
    with pathlib.Path("asked.txt").open("a") as file:
        file.write(query + chr(10))
    time.sleep(0.05)
    return contexts[0] if contexts else "I do not know."
"""


@pytest.mark.parametrize("blow", ["SIGKILL", "SIGINT"])
def test_what_a_system_answered_before_a_kill_is_not_asked_again(
    demo, tmp_path, capsys, monkeypatch, blow
):
    """Answers may be dear; only those in flight are lost."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demo, "set")
    (tmp_path / "kill_reader.py").write_text(READER, encoding="utf-8")
    capsys.readouterr()
    words = ["sweep", "--dataset", "set", "--size", "200,300,400,600", "-q", "--json"]
    words += [*CUT, "--retriever", "bm25"]
    words += ["--system", "kill_reader:read", "--answer-top", "6", "--concurrency", "2"]
    asked = tmp_path / "asked.txt"
    sweep = started(words)
    wait_until(lambda: asked.exists() and len(asked.read_text().splitlines()) > 6, 60)
    sweep.send_signal(signal.Signals[blow])
    sweep.communicate(timeout=60)

    n_before = len(asked.read_text().splitlines())
    code = main([*words, "--processes", "1"])

    answers = json.loads(capsys.readouterr().out)["answers"]
    n_all = len(asked.read_text().splitlines())
    assert code == 0
    assert answers["asked"] == n_all - n_before > 0
    assert n_all <= answers["asked"] + answers["kept"] + 2
