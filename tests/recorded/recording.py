"""Plays acts and writes down what a user sees: `PYTHONPATH=tests python -m recorded.recording`.

What a model is asked for comes from recorded replies; with `buy` behind the command, they are made
anew, too. That is for questions that changed on purpose: whoever bought the old replies buys again.
"""

import contextlib
import hashlib
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from unittest.mock import patch

from recorded.acts import ACTS, MODEL, Act, write_files

from ragforge.cli import main

PLACE: Final = Path(__file__).parents[1] / "data" / "recorded"
_REPLIES: Final = PLACE / "replies.jsonl"
_STORES: Final = ("set/.ragforge/calls.sqlite", ".ragforge/calls.sqlite")
"""Of the dataset, and of what is judged without one."""
_PORT: Final = 18417
"""Where the model stands while replies are recorded: its address is part of what is asked."""
_MASKS: Final = (
    # The last bits of a sum are another processor's own.
    (re.compile(r"(\d\.\d{12})\d{2,}"), r"\1"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00|Z)?"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "<date>"),
    (re.compile(r'("[a-z0-9_]+_s": )[\d.e-]+'), r"\1<duration>"),
    (re.compile(r"\s+\d[\d.,]*(e-\d+)? ?(ms|s|min)\b"), " <duration>"),
    (
        re.compile(
            r'("(?:evaluation_id|git_commit|git_branch|before|now|since|until|bridge_to)": )'
            r'"[0-9a-f]{16}"'
        ),
        r'\1"<evaluation>"',
    ),
    (re.compile(r"\b[\d.,]+ (?:bytes|[kMG]B)\b"), "<size>"),
)
"""What differs from run to run: clocks, and ids and sizes made with them."""


def play(act: Act, folder: Path) -> str:
    """Return what the commands of an act print, how they end, and what files they leave.

    Replies of the model are the recorded ones: a call whose key changed ends its command.
    """
    with _inside(folder):
        if act.needs_replies:
            for store in _STORES:
                _scene(f"cache import {_REPLIES} --store {store}")
        return _played(act, folder, " --offline-replay")


def buy(act: Act, folder: Path) -> None:
    """Play an act with a model that is asked, and keep its replies."""
    with _mock(), _inside(folder):
        _played(act, folder)
        replies = set[str]()
        for store in _STORES:
            _scene(f"cache export replies.jsonl --store {store}")
            replies |= set((folder / "replies.jsonl").read_text().splitlines(keepends=True))
    _REPLIES.write_text("".join(sorted(replies)))


def _played(act: Act, folder: Path, replay: str = "") -> str:
    write_files(folder)
    scenes: list[str] = []
    for step in act.steps:
        if isinstance(step, str):
            asks = act.needs_replies and MODEL in step
            scenes.append(f"$ ragforge {step}\n{_scene(step + (replay if asks else ''))}")
        else:
            step(folder)
    return "\n".join((*scenes, *_files(folder, act), ""))


def _scene(line: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(line.split())
        except SystemExit as ended:
            code = int(ended.code or 0)
    return f"[{code}]\n{_masked(out.getvalue())}--\n{_masked(err.getvalue())}"


def _masked(text: str) -> str:
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    if "<duration>" in text:  # Columns are as wide as what was masked.
        text = re.sub("─+", "─", re.sub(" {2,}", "  ", text))
    return text


def _files(folder: Path, act: Act) -> Iterator[str]:
    for pattern in act.kept:
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                yield f"{path.relative_to(folder).as_posix()} {digest}"


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    settings = {"RAGFORGE_MODEL_BASE_URL": f"http://127.0.0.1:{_PORT}/v1", "COLUMNS": "100"}
    with contextlib.chdir(folder), patch.dict(os.environ, settings):
        yield


@contextlib.contextmanager
def _mock() -> Iterator[None]:
    words = [sys.executable, "-m", "ragforge", "mock", "--port", str(_PORT)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for_port()
            yield
        finally:
            process.terminate()


def _wait_for_port() -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", _PORT), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("the mock endpoint does not start")


if __name__ == "__main__":
    # As in the tests, what is recorded must not hang on which weights are installed.
    os.environ.update(RAGFORGE_POOL_POOL_MODEL="none", RAGFORGE_MODEL_OFFLINE_MODEL="none")
    PLACE.mkdir(parents=True, exist_ok=True)
    for recorded in ACTS:
        if recorded.needs_replies and "buy" in sys.argv:
            with tempfile.TemporaryDirectory() as place:
                buy(recorded, Path(place))
        with tempfile.TemporaryDirectory() as place:
            written = play(recorded, Path(place))
        (PLACE / f"{recorded.name}.txt").write_text(written, encoding="utf-8")
