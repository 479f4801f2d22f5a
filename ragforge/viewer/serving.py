"""Serving the site until it is told to end."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from ragforge.errors import UsageError
from ragforge.viewer.app import view_app
from ragforge.viewer.connections import ImpatientConnection
from ragforge.viewer.guarding import Door
from ragforge.viewer.reports import Render

_BACKLOG = 128
_GRACE_S = 1
"""How long replies that are being made may take when the server ends."""


def serve(
    roots: Sequence[Path],
    door: Door,
    render: Render,
    announce: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        roots: Datasets, or folders of some.
        door: Who is let in; port 0 takes a free one.
        render: See `view_app`.
        announce: Told the address as soon as it answers.

    Raises:
        UsageError: The address cannot be listened on.
    """
    with _listening(door.host, door.port) as sock:
        taken = Door(door.host, sock.getsockname()[1], door.token)
        with contextlib.suppress(KeyboardInterrupt):
            announce(taken.address)
            _server(roots, taken, render).run(sockets=[sock])


@contextlib.contextmanager
def serving(roots: Sequence[Path], render: Render, token: str = "") -> Iterator[Door]:
    """Serve from a thread, on a free port of 127.0.0.1, until the context ends."""
    with _listening("127.0.0.1", 0) as sock:
        door = Door("127.0.0.1", sock.getsockname()[1], token)
        server = _server(roots, door, render)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield door
        finally:
            server.should_exit = True
            thread.join()


def _server(roots: Sequence[Path], door: Door, render: Render) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            view_app(roots, door, render),
            http=ImpatientConnection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # Python says the address again in the error's own text.
        reason = os.strerror(error.errno) if error.errno else error
        raise UsageError(
            f"--host {host} --port {port}: cannot be listened on: {reason}; "
            "--port 0 takes a free port"
        ) from error
    with sock:
        yield sock
