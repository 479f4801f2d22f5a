"""What is said on stderr: messages, and the progress of long work."""

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Never

from ragforge.observe import Event
from ragforge.report.shown import visible

if TYPE_CHECKING:
    from tqdm import tqdm

_PLAIN_EVERY_S = 30.0
_NOTES_SHOWN = 3


def complain(text: str) -> None:
    """Print a message to stderr; what a terminal would obey is shown instead."""
    if sys.stderr is None:
        return
    if "tqdm" in sys.modules:
        from tqdm import tqdm

        tqdm.write(visible(text), file=sys.stderr)  # Keeps a bar that is being drawn whole.
    else:
        print(visible(text), file=sys.stderr, flush=True)


@dataclass(slots=True)
class Progress:
    """An observer that shows one line of progress on a terminal, else a plain line now and then.

    Args:
        quiet: Show nothing but notes.
    """

    quiet: bool = False
    _bar: "tqdm[Never] | None" = field(default=None, init=False)
    _told_s: float = field(default=0.0, init=False)
    _done: int = field(default=0, init=False)
    _failed: int = field(default=0, init=False)
    _bought: int = field(default=0, init=False)
    _cached: int = field(default=0, init=False)
    _total: int = field(default=0, init=False)
    _retries: int = field(default=0, init=False)

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if event.name == "note":
            complain(event.message)
        elif event.name == "retry":
            self._retry(event)
        elif event.name == "call":
            self._bought += event.outcome == "done"
            self._cached += event.outcome == "cached"
        elif event.name == "stage.start":
            self._start(event)
        elif event.name == "unit":
            self._unit(event)
        elif event.name == "tick":
            self._tick(event)
        else:
            self._end(event)

    def _start(self, event: Event) -> None:
        self._done = self._failed = self._bought = self._cached = self._retries = 0
        self._total = int(event.numbers.get("total", 0))
        self._told_s = time.monotonic()
        if not self.quiet and sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm  # Most commands draw no bar, and need not wait for the import.

            self._bar = tqdm(
                total=self._total or None, desc=event.stage, file=sys.stderr, leave=False
            )

    def _unit(self, event: Event) -> None:
        self._done += 1
        if event.outcome == "failed":
            self._failed += 1
            if self._failed <= _NOTES_SHOWN and not self.quiet:
                complain(f"{event.stage}: failed: {event.message[:300]}")
        if self._bar is not None:
            self._bar.set_postfix_str(self._counts(), refresh=False)
            self._bar.update(1)

    def _tick(self, event: Event) -> None:
        if self._bar is not None:
            self._bar.refresh()
        elif not self.quiet and time.monotonic() - self._told_s >= _PLAIN_EVERY_S:
            self._told_s = time.monotonic()
            of_total = f" of {self._total}" if self._total else ""
            complain(f"{event.stage}: {self._done}{of_total} done, {self._counts()}")

    def _end(self, event: Event) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if not self.quiet:
            complain(f"{event.stage}: {self._done} done, {self._counts()}")

    def _retry(self, event: Event) -> None:
        self._retries += 1
        if self._retries <= _NOTES_SHOWN and not self.quiet:
            wait_s = event.numbers["wait_s"]
            complain(f"again in {wait_s:.1f} s: {event.message[:300]}")

    def _counts(self) -> str:
        return f"{self._failed} failed, {self._bought} calls, {self._cached} from the store"
