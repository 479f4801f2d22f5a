"""Observers that write events down: to the standard `logging`, or to a file of JSON lines."""

import json
import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.observe import Event

LOGGER: Final = "ragforge"
"""Name of the logger, for `logging.getLogger`."""

_LEVELS: Final = {
    "stage.start": logging.INFO,
    "stage.end": logging.INFO,
    "retry": logging.INFO,
    "flow": logging.INFO,
    "note": logging.INFO,
    "evaluation.start": logging.INFO,
    "evaluation.measure": logging.INFO,
    "evaluation.end": logging.INFO,
}
"""What is not listed is DEBUG; what failed is WARNING, whatever it is."""


@dataclass(frozen=True, slots=True)
class LogObserver:
    """Passes events to the logger `ragforge`; installs no handler and changes no level.

    Each record carries `ragforge_event`, `ragforge_stage` and `ragforge_outcome`, and every number,
    label and measure of the event under its name with the same prefix. Texts of prompts and replies
    never get there; the reason of a failure does, and may quote what the model said.

    Args:
        logger: The logger to use instead.
    """

    logger: logging.Logger = field(default_factory=lambda: logging.getLogger(LOGGER))

    def __call__(self, event: Event) -> None:
        """Take one event."""
        failed = event.outcome == "failed"
        level = logging.WARNING if failed else _LEVELS.get(event.name, logging.DEBUG)
        if not self.logger.isEnabledFor(level):
            return
        name = "" if event.name == "note" else f"{event.name} {event.outcome}".rstrip()
        parts = [escaped(part) for part in (event.stage, name, event.message) if part]
        template = ": ".join(["%s"] * len(parts))
        if details := _details(event):
            template, parts = f"{template} (%s)", [*parts, details]
        self.logger.log(level, template, *parts, extra=_fields(event))


@dataclass(slots=True)
class EventFile:
    """Appends events to a file, one JSON object a line, each written at once; a context manager.

    Each line has time (UTC, ISO 8601), name, stage, outcome, message, numbers and labels, and
    measures where there are any, all of it ASCII. When a line cannot be written, as on a full disk,
    that is said and no more is written.

    Args:
        path: Made where it does not exist.
        complain: Told once, in a sentence, that writing stopped; by default logged as a warning.
        texts: Write the turns and replies of calls too, as `content`.

    Raises:
        DataError: The file cannot be opened.
    """

    path: Path
    complain: Callable[[str], None] = field(default=lambda text: _warn(text), kw_only=True)
    texts: bool = field(default=False, kw_only=True)
    _file: TextIO | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            severed = _ends_within_a_line(self.path)
            self._file = self.path.open("a", buffering=1, encoding="ascii")
        except OSError as error:
            raise DataError(f"{self.path}: cannot be opened: {error.strerror}") from error
        if severed:
            self._write("\n")

    def __enter__(self) -> Self:
        """Return itself; the file is open already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if self._file is not None:
            self._write(json.dumps(_row(event, texts=self.texts)) + "\n")

    def close(self) -> None:
        """Close the file; events told from now on are lost."""
        if self._file is not None:
            # What a full disk did not take is tried again by close(), and was complained of.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        try:
            self._file.write(line)
        except OSError as error:
            self.close()
            self.complain(
                f"{self.path}: {error.strerror}; events are no longer written, the run goes on"
            )


def escaped(text: str) -> str:
    r"""Return the text on one line, with what is not printable as escapes: `\n`, `\x1b`, `\u202e`.

    A line feed in a message could forge a log line, and a terminal obeys control characters.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def _details(event: Event) -> str:
    labels = [f"{key}={escaped(value)}" for key, value in event.labels.items()]
    numbers = {**event.numbers, **event.measures}
    return ", ".join([*labels, *(f"{key}={value:.12g}" for key, value in numbers.items())])


def _fields(event: Event) -> dict[str, object]:
    fields: dict[str, object] = {**event.numbers, **event.measures}
    fields |= {key: escaped(value) for key, value in event.labels.items()}
    fields |= {"event": event.name, "stage": escaped(event.stage), "outcome": event.outcome}
    return {f"ragforge_{key}": value for key, value in fields.items()}


def _row(event: Event, *, texts: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "name": event.name,
        "stage": event.stage,
        "outcome": event.outcome,
        "message": event.message,
        "numbers": _finite(event.numbers),
        "labels": dict(event.labels),
    }
    if event.measures:
        row["measures"] = _finite(event.measures)
    if texts and event.content:
        row["content"] = [{"role": role, "text": text} for role, text in event.content]
    return row


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Return the numbers; null for those that JSON has no word for."""
    return {key: value if math.isfinite(value) else None for key, value in numbers.items()}


def _ends_within_a_line(path: Path) -> bool:
    """Whether the last line lacks its end, because the disk was full or the run was killed."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) != b"\n"


def _warn(text: str) -> None:
    logging.getLogger(LOGGER).warning("%s", escaped(text))
