"""An event loop whose clock moves only when everybody waits, so that no test sleeps."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

TURN_S = 1e-7
"""What one turn of the loop takes; with none, a wait too short for a float would never end."""

LONGEST_S = 1e5
"""By then a test waits for something that never comes; timers that renew themselves go on."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Skips to the next timer instead of waiting for it.

    What happens outside of it (sockets, threads) is not waited for: waiting for nothing but that
    is an error here, where elsewhere it would hang.
    """

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        """Return the seconds since the loop was made."""
        return self.now


class _Skipping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits and nothing is due")
        if self._loop.now > LONGEST_S:
            raise RuntimeError("what is waited for never comes")
        self._loop.now += max(timeout, TURN_S)
        return super().select(0)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns; it begins at 0 s."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    """Return the time of the running loop."""
    return asyncio.get_running_loop().time()


def at(when_s: float, happens: Callable[..., object], *args: object) -> None:
    """Let something happen at a time of the running loop."""
    asyncio.get_running_loop().call_at(when_s, happens, *args)


def suspend(seconds: float) -> None:
    """Let time pass in which nothing runs, as while the process is stopped."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.now += seconds
