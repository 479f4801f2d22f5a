"""Connections that must come to something: half a request is not waited for without end."""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S: Final = 10.0
"""From the first byte, or none, to the last of a request. Its maker is a browser nearby."""

UNREAD_S: Final = 60.0
"""For which a reply that is made may lie there and none of it be taken."""

MOST_CONNECTIONS: Final = 200
"""A browser opens six; the process may open some thousand files."""


class ImpatientConnection(H11Protocol):
    """A connection that is closed when its request does not become whole, or its reply lies.

    uvicorn itself waits for ever for either. A reply that is being made is waited for: a report of
    a large dataset takes its time.
    """

    request_s = REQUEST_S
    unread_s = UNREAD_S
    most = MOST_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as there
        """Take a connection; beyond the most, the one that has waited longest makes room."""
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._unsent = 0
        self._unsent_since = self.loop.time()
        self._tick: asyncio.TimerHandle | None = None
        self._look_again()
        open_ones = [
            each
            for each in self.connections
            if isinstance(each, ImpatientConnection) and not each.transport.is_closing()
        ]
        waiting = [each for each in open_ones if each is not self and each.waits]
        if len(open_ones) > self.most and waiting:
            min(waiting, key=lambda each: each._waiting_since).transport.abort()

    @property
    def waits(self) -> bool:
        """Whether no whole request is there that is not answered."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete  # type: ignore[redundant-expr]  # None at first

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._waiting_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        super().connection_lost(exc)

    def _look_again(self) -> None:
        if not self.transport.is_closing():
            self._tick = self.loop.call_later(self.request_s / 10, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent or not unsent:
            self._unsent, self._unsent_since = unsent, now
        idle = self.waits and not unsent and now - self._waiting_since >= self.request_s
        if idle or now - self._unsent_since >= self.unread_s:
            self.transport.abort()
            return
        self._look_again()
