"""Labelling in a terminal: one item at a time, each label kept before the next is shown."""

import shutil
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Final, Protocol, TextIO

from ragforge.calibration.label_tasks import TakenLabels
from ragforge.deferred import dataclass
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import inert, plural
from ragforge.files.formats.label_rows import LabelRow
from ragforge.files.row import make_row
from ragforge.files.set.answer_labels import answer_sample
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.answer_labelling import (
    AnswerLabelling,
    labels_of_answers,
    put_answer_labels,
    remove_answer_label,
)
from ragforge.pipeline.labelling import (
    Labelling,
    label_of,
    put_labels,
    remove_label,
)
from ragforge.report.page.answer_labelling import STATUSES, VERDICTS, ShownAnswer
from ragforge.report.page.labelling import GUIDELINES, RULES

_PAIR_KEYS: Final = "0 1 2 3 grade, s skip, u undo, a expected answer, ? grades, q end"
_ANSWER_KEYS: Final = "1 to 4 as told, s skip, u undo, q end"
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


class _Skipped(Exception):
    """The person skips the item."""


class _TakenBack(Exception):
    """The person takes the last label back."""


class _Ended(Exception):
    """The person ends labelling."""


class _Items(Protocol):
    """What is labelled."""

    def __len__(self) -> int: ...

    def show(self, at: int) -> None:
        """Show an item."""

    def label(self, at: int) -> object:
        """Return what the person says of it; may be left by a skip, an undo, an end."""

    def keep(self, at: int, said: object, seconds: float) -> None:
        """Keep it; None is a skip."""

    def take_back(self, at: int) -> None:
        """Take the label of an item back."""


def ask(found: Labelling, files: CalibrationFiles, terminal: Terminal) -> int:
    """Ask for the labels of all pairs, and return how many were given.

    Args:
        found: What is to be labelled.
        files: Where each label goes at once.
        terminal: Where it is asked.
    """
    count = plural(len(found.pairs), "pair")
    terminal.write(f"{count} for {found.labeller}. {_PAIR_KEYS}\n")
    return _ask_each(_Pairs(found, files, terminal), found.n_done, terminal)


def ask_about_answers(
    dataset: Dataset, found: AnswerLabelling, files: CalibrationFiles, terminal: Terminal
) -> int:
    """Ask which facts each answer states, and return how many were labelled.

    Args:
        dataset: Has the answers.
        found: What is to be labelled.
        files: Where each label goes at once.
        terminal: Where it is asked.
    """
    count = plural(len(found.answers), "answer")
    terminal.write(f"{count} for {found.labeller}. {_ANSWER_KEYS}\n")
    return _ask_each(_Answers(dataset, found, files, terminal), found.n_done, terminal)


def _ask_each(items: _Items, n_done: int, terminal: Terminal) -> int:
    at, total = 0, len(items) + n_done
    while at < len(items):
        terminal.write(f"\n--- {at + n_done + 1} of {total} ---\n")
        items.show(at)
        begun = terminal.now()
        said: object = None
        try:
            said = items.label(at)
        except _Skipped:
            pass
        except _Ended:
            break
        except _TakenBack:
            if at:
                at -= 1
                items.take_back(at)
            else:
                terminal.write("nothing to take back\n")
            continue
        items.keep(at, said, terminal.now() - begun)
        at += 1
    return at


def _choice(
    terminal: Terminal, prompt: str, keys: str, told: str, more: Callable[[str], bool]
) -> str:
    """Return the next key that is one of some.

    Args:
        terminal: Where it is asked.
        prompt: Stands before the key.
        keys: Those that answer.
        told: Which keys there are, in words.
        more: Does what another key is for; returns whether it is one.

    Raises:
        _Skipped, _TakenBack, _Ended: Such a key was pressed.
    """
    terminal.write(f"{prompt}> ")
    others = {"s": _Skipped, "u": _TakenBack, "q": _Ended, _END: _Ended}
    while True:
        key = terminal.read_key().lower()
        if key == "\x03":
            raise KeyboardInterrupt
        if key in others or key in keys:
            terminal.write(f"{'' if key == _END else key}\n")
            if key in others:
                raise others[key]
            return key
        if not key.isspace():
            if not more(key):
                terminal.write(f"\n{told}\n")
            terminal.write(f"{prompt}> ")


@dataclass(frozen=True, slots=True)
class _Pairs:
    found: Labelling
    files: CalibrationFiles
    terminal: Terminal

    def __len__(self) -> int:
        return len(self.found.pairs)

    def show(self, at: int) -> None:
        pair = self.found.pairs[at]
        parts = [*pair.before, f"Question: {pair.question}", "", pair.text]
        if pair.task.decides:
            given = " and ".join(map(str, pair.task.given))
            parts += ["", f"Given so far: {given}."]
        _write(self.terminal, "\n".join(parts) + "\n")
        self.terminal.write("\n")

    def label(self, at: int) -> object:
        pair = self.found.pairs[at]

        def more(key: str) -> bool:
            if key == "a" and pair.answer:
                _write(self.terminal, f"\nExpected answer:\n{pair.answer}\n")
            elif key == "?":
                _write(self.terminal, _guidelines())
            else:
                return False
            return True

        return int(_choice(self.terminal, "grade", "0123", _PAIR_KEYS, more))

    def keep(self, at: int, said: object, seconds: float) -> None:
        pair = self.found.pairs[at]
        row = LabelRow(
            pair.task.query_id,
            pair.task.chunk_id,
            said,
            look=pair.task.look,
            skipped=said is None,
            seconds=seconds,
            at=_now(),
            decides=pair.task.decides,
        )
        drawn = next(
            drawn
            for drawn in self.files.sample().pairs
            if (drawn.query_id, drawn.text_sha256) == pair.task.pair_text
        )
        label = label_of(row, drawn, self.found.labeller, pair.task.wording_sha256)
        put_labels(self.files, [label], TakenLabels(), overrule=True)

    def take_back(self, at: int) -> None:
        remove_label(self.files, self.found.pairs[at].task, self.found.labeller)


@dataclass(frozen=True, slots=True)
class _Answers:
    dataset: Dataset
    found: AnswerLabelling
    files: CalibrationFiles
    terminal: Terminal

    def __len__(self) -> int:
        return len(self.found.answers)

    def show(self, at: int) -> None:
        shown = self.found.answers[at]
        parts = [*shown.before, f"Question: {shown.query.asked}"]
        parts += [f"Expected: {shown.expected}", "", "Answer to label:", shown.answer or "(empty)"]
        _write(self.terminal, "\n".join(parts) + "\n")
        self.terminal.write("\n")

    def label(self, at: int) -> object:
        shown = self.found.answers[at]
        if not shown.query.facts:
            return {"verdict": self._choose("The answer is", VERDICTS), "facts": []}
        facts = [
            {"fact_id": fact.fact_id, "status": self._choose(f"{number}. {fact.text}", STATUSES)}
            for number, fact in enumerate(shown.query.facts, start=1)
        ]
        prompt = "It also states something else: 1 no, 2 yes"
        more = _choice(self.terminal, prompt, "12", _ANSWER_KEYS, _nothing_more)
        return {"facts": facts, "says_more": more == "2"}

    def _choose(self, title: str, choices: Sequence[tuple[str, str]]) -> str:
        """Return the value of what is chosen."""
        _write(self.terminal, title)
        named = ", ".join(f"{n} {text.lower()}" for n, (_, text) in enumerate(choices, start=1))
        keys = "".join(str(n + 1) for n in range(len(choices)))
        return choices[int(_choice(self.terminal, named, keys, _ANSWER_KEYS, _nothing_more)) - 1][0]

    def keep(self, at: int, said: object, seconds: float) -> None:
        shown = self.found.answers[at]
        given = dict(said) if isinstance(said, Mapping) else {"skipped": True}
        told = {
            **given,
            "query_id": shown.query_id,
            "system": shown.system,
            "answer_sha256": shown.answer_sha256,
            "expected_sha256": shown.expected_sha256,
            "facts_sha256": shown.facts_sha256,
            "seconds": seconds,
            "at": _now(),
        }
        rows, taken = [make_row("the terminal", told)], TakenLabels()
        sample = answer_sample(self.files)
        labels = labels_of_answers(rows, self.dataset, sample, self.found.labeller, taken)
        put_answer_labels(self.files, labels, taken, overrule=True)

    def take_back(self, at: int) -> None:
        shown: ShownAnswer = self.found.answers[at]
        remove_answer_label(self.files, shown.query_id, shown.system, self.found.labeller)


def _nothing_more(_: str) -> bool:
    """Know no other key."""
    return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(terminal: Terminal, text: str) -> None:
    """Write text of the set, which no terminal obeys, in lines that can be read."""
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    for line in inert(text).split("\n"):
        terminal.write(f"{textwrap.fill(line, width) if line.strip() else ''}\n")


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
