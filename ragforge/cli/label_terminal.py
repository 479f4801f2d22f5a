"""Labelling in a terminal: one pair at a time, each label kept before the next pair is shown."""

import shutil
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TextIO

from ragforge.calibration.label_tasks import ShownPair, TakenLabels
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import inert, plural
from ragforge.files.formats.label_rows import LabelRow
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.pipeline.labelling import (
    Labelling,
    label_of,
    put_labels,
    remove_label,
)
from ragforge.records import SampledPair
from ragforge.report.page.labelling import GUIDELINES, RULES

_KEYS: Final = "0 1 2 3 grade, s skip, u undo, a expected answer, ? grades, q end"
_WIDEST: Final = 90
_END: Final = "\x04"
"""What stands for the end of the input, as Ctrl-D does."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where it is asked."""

    read_key: Callable[[], str]
    """Returns the next key; `\\x04` at the end."""
    write: Callable[[str], None]
    now: Callable[[], float] = time.monotonic


@contextmanager
def opened_terminal(keys: TextIO, screen: TextIO) -> Iterator[Terminal]:
    """Read single keys of a terminal, meanwhile; of anything else, each sign is a key.

    Raises:
        UsageError: Single keys cannot be read on this system.
    """
    pending: list[str] = []

    def write(text: str) -> None:
        screen.write(text)
        screen.flush()

    def read_key() -> str:
        while not pending:
            found = keys.read(1) if keys.isatty() else keys.readline()
            if not found:
                return _END
            pending.extend(found if keys.isatty() else found.strip())
        return pending.pop(0)

    with _single_keys(keys) if keys.isatty() else nullcontext():
        yield Terminal(read_key, write)


def ask(found: Labelling, files: CalibrationFiles, terminal: Terminal) -> int:
    """Ask for the labels of all pairs, and return how many were given.

    Args:
        found: What is to be labelled.
        files: Where each label goes at once.
        terminal: Where it is asked.
    """
    session = _Session(found, files, terminal)
    session.run()
    return session.at


@dataclass(slots=True)
class _Session:
    found: Labelling
    files: CalibrationFiles
    terminal: Terminal
    at: int = 0

    def run(self) -> None:
        pairs = self.found.pairs
        total = len(pairs) + self.found.n_done
        self.terminal.write(f"{plural(len(pairs), 'pair')} for {self.found.labeller}. {_KEYS}\n")
        sampled = {(pair.query_id, pair.chunk_id): pair for pair in self.files.sample().pairs}
        while self.at < len(pairs):
            pair = pairs[self.at]
            self._show(pair, f"{self.at + self.found.n_done + 1} of {total}")
            begun = self.terminal.now()
            key = self._key(pair)
            if key in ("q", _END):
                return
            if key == "u":
                self._undo()
                continue
            seconds = self.terminal.now() - begun
            self._keep(pair, key, seconds, sampled[pair.task.pair])
            self.at += 1

    def _key(self, pair: ShownPair) -> str:
        """Return the next key that labels, takes back or ends."""
        while True:
            key = self.terminal.read_key().lower()
            if key == "\x03":
                raise KeyboardInterrupt
            if key == "a" and pair.answer:
                self._write(f"\nExpected answer:\n{pair.answer}\n")
                self.terminal.write("grade> ")
            elif key == "?":
                self._write(_guidelines())
                self.terminal.write("grade> ")
            elif key in ("q", _END, "u", "s", "0", "1", "2", "3"):
                self.terminal.write(f"{'' if key == _END else key}\n")
                return key
            elif not key.isspace():
                self.terminal.write(f"\n{_KEYS}\ngrade> ")

    def _keep(self, pair: ShownPair, key: str, seconds: float, drawn: SampledPair) -> None:
        row = LabelRow(
            pair.task.query_id,
            pair.task.chunk_id,
            None if key == "s" else int(key),
            look=pair.task.look,
            skipped=key == "s",
            seconds=seconds,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            decides=pair.task.decides,
        )
        label = label_of(row, drawn, self.found.labeller)
        put_labels(self.files, [label], TakenLabels(), overrule=True)

    def _undo(self) -> None:
        if not self.at:
            self.terminal.write("nothing to take back\n")
            return
        self.at -= 1
        remove_label(self.files, self.found.pairs[self.at].task, self.found.labeller)

    def _show(self, pair: ShownPair, place: str) -> None:
        parts = ["", f"--- {place} ---", *pair.before, f"Question: {pair.question}", "", pair.text]
        if pair.task.decides:
            given = " and ".join(map(str, pair.task.given))
            parts += ["", f"Given so far: {given}."]
        self._write("\n".join(parts) + "\n")
        self.terminal.write("\ngrade> ")

    def _write(self, text: str) -> None:
        """Write text of the set, which no terminal obeys, in lines that can be read."""
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        for line in inert(text).split("\n"):
            self.terminal.write(f"{textwrap.fill(line, width) if line.strip() else ''}\n")


def _guidelines() -> str:
    grades = [f"{grade}: {name}. {meaning}" for grade, name, meaning in GUIDELINES]
    return "\n".join(["", *grades, *RULES, ""])


@contextmanager
def _single_keys(keys: TextIO) -> Iterator[None]:
    """Let a terminal give each key at once, and not only whole lines."""
    try:
        import termios
        import tty
    except ImportError as error:
        raise UsageError("--terminal: needs a terminal of Unix; use --page") from error
    before = termios.tcgetattr(keys)
    try:
        # What is typed ahead stays: by default it is thrown away.
        tty.setcbreak(keys, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)
