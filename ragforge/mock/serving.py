"""Running the endpoint: in this event loop, or in a thread beside a test."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from ragforge.mock.app import App
from ragforge.mock.connection import Connection
from ragforge.mock.script import Script

T = TypeVar("T")

_BACKLOG = 4096
_ALL_WELL = Script()


@contextlib.asynccontextmanager
async def listening(app: App, host: str, port: int) -> AsyncIterator[int]:
    """Serve until the context ends, then cut all connections off.

    Args:
        app: What to serve.
        host: Address to listen on.
        port: 0 takes a free one.

    Yields:
        The port.

    Raises:
        OSError: The address cannot be listened on.
    """
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(app, connections), host, port, backlog=_BACKLOG
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(connections):
            connection.abort()
        while connections:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Running:
    """An endpoint that runs in a thread; its methods may be called from any other.

    Args:
        url: Base URL, as an OpenAI client takes it.
    """

    url: str
    _app: App
    _loop: asyncio.AbstractEventLoop

    def ledger(self, *, full: bool = False) -> dict[str, object]:
        """Return what /__ledger tells."""
        return self._ask(lambda: self._app.ledger.to_dict(full=full))

    def stats(self, *, full: bool = False) -> dict[str, object]:
        """Return what /__stats tells."""
        return self._ask(lambda: self._app.stats.to_dict(full=full))

    def reset(self) -> None:
        """Forget all that happened, as /__reset does."""
        self._ask(self._app.reset)

    def _ask(self, call: Callable[[], T]) -> T:
        found: Future[T] = Future()
        self._loop.call_soon_threadsafe(lambda: found.set_result(call()))
        return found.result()


@contextlib.contextmanager
def serving(script: Script = _ALL_WELL) -> Iterator[Running]:
    """Run an endpoint in a thread, on a free port of 127.0.0.1, until the context ends.

    It ends at once, also with requests that hang.

    Args:
        script: What the endpoint does; all goes well by default.
    """
    app = App(script)
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with listening(app, "127.0.0.1", 0) as port:
            ready.set_result((asyncio.get_running_loop(), stop, port))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except OSError as error:
            ready.set_exception(error)

    thread = threading.Thread(target=run, name="ragforge-mock", daemon=True)
    thread.start()
    loop, stop, port = ready.result()
    try:
        yield Running(f"http://127.0.0.1:{port}/v1", app, loop)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
