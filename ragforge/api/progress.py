"""Progress of long work on stderr: a bar on terminals and in notebooks, else plain lines."""

import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Never

from ragforge.api.colour import coloured_message
from ragforge.deferred import dataclass
from ragforge.evaluating.formatting import inert, one_line
from ragforge.observe import Event

if TYPE_CHECKING:
    from tqdm import tqdm

_PLAIN_EVERY_S = 30.0
_NOTES_SHOWN = 3
_LONGEST = 300
"""Characters of the words of a provider or a system."""


def say(text: str) -> None:
    """Write a message to stderr; what a terminal or a CI service would obey is shown instead."""
    if sys.stderr is None:
        return
    # A full disk behind stderr is no reason for a run to fail.
    with suppress(OSError):
        _say(coloured_message(inert(text), sys.stderr))


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None else None
    return running is not None and hasattr(running, "kernel")


def hush_notebook_bars() -> None:
    """Keep tqdm, which libraries import in a notebook, from warning of widgets that are missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tqdm.auto  # noqa: F401


def _say(text: str) -> None:
    if "tqdm" in sys.modules:
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)  # Keeps a bar that is being drawn whole.
    else:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@dataclass(slots=True)
class _Counts:
    """What a stage came to so far."""

    total: int = 0
    done: int = 0
    failed: int = 0
    notes: list[str] = field(default_factory=list)
    """Failures that were told, each once."""
    bought: int = 0
    cached: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    wrapped: int = 0
    in_flight: int = 0
    retries: int = 0
    since: float = field(default_factory=time.monotonic)

    def call(self, event: Event) -> None:
        """Count a call."""
        numbers = event.numbers
        self.wrapped += bool(event.labels.get("wrapping"))
        self.in_flight = int(numbers.get("in_flight", 0))
        if event.outcome == "cached":
            self.cached += 1
        elif event.outcome == "done":
            self.buy(1, numbers)

    def buy(self, calls: int, numbers: Mapping[str, float]) -> None:
        """Count calls that were bought, with their tokens and money."""
        self.bought += calls
        tokens = numbers.get("prompt_tokens", 0) + numbers.get("completion_tokens", 0)
        self.tokens += int(tokens)
        self.cost_usd += numbers.get("cost_usd", 0.0)
        self.unpriced += "cost_usd" not in numbers

    def line(self) -> str:
        """Return the counts as they are shown behind a bar or in a plain line."""
        parts = [f"{self.failed} failed", f"{self.bought} calls", f"{self.cached} from the store"]
        if self.bought:
            seconds = max(1e-3, time.monotonic() - self.since)
            parts += [
                f"{self.in_flight} in flight",
                f"{self.bought / seconds:.1f} calls/s",
                f"{self.tokens / seconds:.0f} tokens/s",
                "price unknown" if self.unpriced else f"{self.cost_usd:.4f} USD",
            ]
        if self.wrapped:
            parts.append(f"{self.wrapped} replies in fences or behind thoughts")
        return ", ".join(parts)

    @property
    def came_to_something(self) -> bool:
        """Whether there is anything to count; a stage that was stopped at once has nothing."""
        return bool(self.done or self.failed or self.bought or self.cached)

    def left(self) -> str:
        """Return how long the rest will take, "" where that cannot be said."""
        if not self.total or not self.done:
            return ""
        seconds = (time.monotonic() - self.since) * (self.total - self.done) / self.done
        return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"


@dataclass(slots=True)
class Progress:
    """An observer that shows one line of progress on a terminal, else a plain line now and then.

    Args:
        quiet: Show nothing but notes.
        notebook: Draw the bar as a notebook does, where there is no terminal.
    """

    quiet: bool = False
    notebook: bool = False
    _bar: "tqdm[Never] | None" = field(default=None, init=False)
    _told_s: float = field(default=0.0, init=False)
    _counts: _Counts = field(default_factory=_Counts, init=False)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        taken_by = {
            "note": self._note,
            "flow": self._flow,
            "retry": self._retry,
            "call": self._counts.call,
            "stage.start": self._start,
            "unit": self._unit,
            "tick": self._tick,
            "stage.end": self._end,
        }
        if take := taken_by.get(event.name):
            take(event)

    def _note(self, event: Event) -> None:
        say(event.message)

    def _flow(self, event: Event) -> None:
        if not self.quiet:
            say(event.message)

    def _start(self, event: Event) -> None:
        self._counts = _Counts(total=int(event.numbers.get("total", 0)))
        self._told_s = time.monotonic()
        if self.quiet or sys.stderr is None or not (self.notebook or sys.stderr.isatty()):
            return
        total = self._counts.total or None
        if self.notebook:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Without ipywidgets it draws a bar of text.
                from tqdm.auto import tqdm as bar

            self._bar = bar(total=total, desc=event.stage, leave=False)
            return
        from tqdm import tqdm  # Most commands draw no bar, and need not wait for the import.

        self._bar = tqdm(
            total=total, desc=event.stage, file=sys.stderr, leave=False, dynamic_ncols=True
        )

    def _unit(self, event: Event) -> None:
        counts = self._counts
        count = int(event.numbers.get("count", 1))
        counts.done += count
        counts.failed += int(event.numbers.get("failed", 0))
        if "calls" in event.numbers:  # Of a shard, whose worker tells of no single one.
            counts.buy(int(event.numbers["calls"]), event.numbers)
        if event.outcome == "failed":
            told = one_line(event.message, _LONGEST)
            if told not in counts.notes and len(counts.notes) < _NOTES_SHOWN and not self.quiet:
                counts.notes.append(told)
                say(f"{event.stage}: failed: {told}")
        if self._bar is not None:
            if time.monotonic() - self._told_s >= self._bar.mininterval:
                self._told_s = time.monotonic()
                self._bar.set_postfix_str(counts.line(), refresh=False)
            self._bar.update(count)

    def _tick(self, event: Event) -> None:
        counts = self._counts
        if self._bar is not None:
            self._bar.set_postfix_str(counts.line())
        elif event.stage and not self.quiet and time.monotonic() - self._told_s >= _PLAIN_EVERY_S:
            self._told_s = time.monotonic()
            of_total = f" of {counts.total}" if counts.total else ""
            say(f"{event.stage}: {counts.done}{of_total} done, {counts.line()}{counts.left()}")

    def _end(self, event: Event) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if not self.quiet and self._counts.came_to_something:
            self._counts.in_flight = 0
            say(f"{event.stage}: {self._counts.done} done, {self._counts.line()}")

    def _retry(self, event: Event) -> None:
        self._counts.retries += 1
        if self._counts.retries <= _NOTES_SHOWN and not self.quiet:
            wait_s = event.numbers["wait_s"]
            say(f"again in {wait_s:.1f} s: {one_line(event.message, _LONGEST)}")
