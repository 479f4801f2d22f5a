"""Running the endpoint, in this event loop or in a thread beside a test, and its connections."""

import asyncio
import contextlib
import math
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from ragforge.deferred import dataclass
from ragforge.mock.app import App, Plan
from ragforge.mock.bodies import Embed, Problem
from ragforge.mock.http_messages import BadRequestError, Parser, response
from ragforge.mock.script import Script

T = TypeVar("T")
_BACKLOG = 4096
_ALL_WELL = Script()
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, for 0 seconds: closing sends RST."""
_DRIBBLE_S = 0.25
"""Longest pause of a slow body: shorter than any time-out between two reads."""
_FEWEST_PIECES = 8


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
        """Return the ledger, as /__ledger does."""
        return self._ask(lambda: self._app.ledger.to_dict(full=full))

    def stats(self, *, full: bool = False) -> dict[str, object]:
        """Return the statistics, as /__stats does."""
        return self._ask(lambda: self._app.counts(full=full))

    def reset(self) -> None:
        """Forget all that happened, as /__reset does."""
        self._ask(self._app.reset)

    def _ask(self, call: Callable[[], T]) -> T:
        found: Future[T] = Future()
        self._loop.call_soon_threadsafe(lambda: found.set_result(call()))
        return found.result()


@contextlib.contextmanager
def serving(
    script: Script = _ALL_WELL,
    embed: Embed | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Running]:
    """Run an endpoint in a thread, on a free port of 127.0.0.1, until the context ends.

    It ends at once, also with requests that hang.

    Args:
        script: What the endpoint does; all goes well by default.
        embed: The local model that the script names for embeddings.
        clock: Seconds from any start, by which limits refill and batches end.

    Raises:
        UsageError: The script names one, and there is none.
    """
    app = App(script, clock, embed=embed)
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
    connections: set[_ClientConnection] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _ClientConnection(app, connections), host, port, backlog=_BACKLOG
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(connections):
            connection.abort()
        while connections:
            await asyncio.sleep(0)


class _ClientConnection(asyncio.Protocol):
    """Answers requests one after the other; one that waits costs a timer and no task.

    Args:
        app: Decides; shared by all connections.
        connections: All that are open; this one enters and leaves.
    """

    def __init__(self, app: App, connections: "set[_ClientConnection]") -> None:
        self._app = app
        self._connections = connections
        self._parser = Parser()
        self._plan: Plan | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._keep = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a new connection, or reset it during an outage."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._connections.add(self)
        self._app.stats.connections += 1
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reset_if_down()

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop what would still have been sent."""
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._finish()

    def data_received(self, data: bytes) -> None:
        """Take bytes; during an outage they reset the connection."""
        if self._reset_if_down():
            return
        self._parser.feed(data)
        self._go_on()

    def abort(self) -> None:
        """Close at once, whatever is being sent."""
        self._transport.abort()

    def _go_on(self) -> None:
        """Answer the requests that are complete, until one has to wait."""
        while self._plan is None and not self._transport.is_closing():
            try:
                request = self._parser.next_request()
            except BadRequestError as error:
                body = Problem(error.status, str(error)).body()
                self._transport.write(response(error.status, body, {}, keep_alive=False))
                self._transport.close()
                return
            if request is None:
                if self._parser.awaits_continue:
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return
            self._keep = request.keep_alive
            self._start(self._app.answer(request))

    def _start(self, plan: Plan) -> None:
        self._plan = plan
        self._app.stats.open_requests += 1
        if plan.accepted:
            self._app.stats.accepted()
        if plan.end == "hang":
            return
        if plan.delay_s > 0:
            self._later(plan.delay_s, lambda: self._send(plan))
        else:
            self._send(plan)

    def _send(self, plan: Plan) -> None:
        if plan.end == "reset":
            self._reset()
        elif self._reset_if_down():
            return
        elif plan.end == "slow":
            self._dribble(plan.payload)
        else:
            self._transport.write(plan.payload)
            self._sent(keep=self._keep and plan.end == "keep")

    def _dribble(self, payload: bytes) -> None:
        """Send the head, then the body in pieces that are evenly spread."""
        start = payload.find(b"\r\n\r\n") + 4
        slow_s = self._app.script.slow_s
        pieces = max(_FEWEST_PIECES, math.ceil(slow_s / _DRIBBLE_S))
        size = max(1, math.ceil((len(payload) - start) / pieces))
        pause_s = slow_s * size / (len(payload) - start)
        self._transport.write(payload[:start])

        def send(at: int) -> None:
            self._transport.write(payload[at : at + size])
            if at + size < len(payload):
                self._later(pause_s, lambda: send(at + size))
            else:
                self._sent(keep=self._keep)

        self._later(pause_s, lambda: send(start))

    def _sent(self, *, keep: bool) -> None:
        self._finish()
        if not keep:
            self._transport.close()
        elif self._timer is not None:
            self._timer = None
            self._go_on()

    def _finish(self) -> None:
        if self._plan is not None:
            self._app.stats.open_requests -= 1
            self._app.stats.in_flight -= self._plan.accepted
            self._plan = None

    def _later(self, delay_s: float, call: Callable[[], None]) -> None:
        self._timer = self._loop.call_later(delay_s, call)

    def _reset_if_down(self) -> bool:
        if not self._app.is_down:
            return False
        self._app.stats.faults["down"] += 1
        self._reset()
        return True

    def _reset(self) -> None:
        connected = self._transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()
