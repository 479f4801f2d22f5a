"""What a query waited for its turn: time that is ours, and no part of a system's latency."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ragforge.deferred import dataclass


@dataclass(slots=True)
class Waits:
    """The seconds that were waited, all in all."""

    waited_s: float = 0.0


_CURRENT: ContextVar[Waits | None] = ContextVar("waits of a query", default=None)


@contextmanager
def counting_waits() -> Iterator[Waits]:
    """Lend what counts the waits of a query, until it is answered."""
    waits = Waits()
    token = _CURRENT.set(waits)
    try:
        yield waits
    finally:
        _CURRENT.reset(token)


def count_wait(waited_s: float) -> None:
    """Count a wait of the query that is being asked, if anybody counts."""
    waits = _CURRENT.get()
    if waits is not None:
        waits.waited_s += waited_s


@contextmanager
def counted_as_wait() -> Iterator[None]:
    """Count the time within as a wait of the query that is being asked."""
    started = time.perf_counter()
    try:
        yield
    finally:
        count_wait(time.perf_counter() - started)
