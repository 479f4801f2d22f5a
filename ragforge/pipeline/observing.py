"""The observers that a user names for a run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

from ragforge.errors import UsageError
from ragforge.files.output_places import check_outputs
from ragforge.observe import Event, Observer, both
from ragforge.plugins import find

EVENTS = "events="
OPENTELEMETRY = "otel"


@contextmanager
def observing(
    names: Sequence[str], first: Observer, complain: Callable[[str], None]
) -> Iterator[Observer]:
    """Lend an observer that tells all that are named, until the run is over.

    Args:
        names: `otel`, `events=FILE`, an entry point of `ragforge.observers`, or `module:attribute`
            (an observer, or a class of which one is made).
        first: Told before all others.
        complain: Told when events cannot be written any more.

    Raises:
        UsageError: There is no such observer.
        ConfigError: The package it needs is missing.
        DataError: The file cannot be opened.
    """
    with ExitStack() as stack:
        observer = first
        for name in names:
            observer = both(observer, _open(name, stack, complain))
        # What is missing is missed here, not by the first call in the middle of the run.
        observer(Event("tick"))
        yield observer


def _open(name: str, stack: ExitStack, complain: Callable[[str], None]) -> Observer:
    if name.startswith(EVENTS):
        from ragforge.observe.log import EventFile

        if name == EVENTS:
            raise UsageError(f"observers: {name!r}: expected events=FILE")
        path = Path(name.removeprefix(EVENTS))
        check_outputs({"--observer": path})
        return stack.enter_context(EventFile(path, complain=complain))
    if name == OPENTELEMETRY:
        from ragforge.observe.otel import OpenTelemetryObserver

        return OpenTelemetryObserver()
    found = find("observers", name, built_in=(OPENTELEMETRY, "events=FILE"))
    made = found() if isinstance(found, type) else found
    if not callable(made):
        raise UsageError(f"observers: {name!r}: expected something that takes events, got {made!r}")
    return cast("Observer", made)  # what it takes cannot be asked
