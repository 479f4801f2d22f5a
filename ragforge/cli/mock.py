"""Serve a scriptable OpenAI-compatible endpoint on loopback, for rehearsals and CI.

It answers the prompts of every command well, for nothing, and as fast or as badly as told: with
latencies, rate limits, errors, hangs, torn connections and malformed replies. Replies, latencies
and faults depend only on the request, the seed and the number of the attempt, so that a rerun
meets the same ones.

The base URL is the first line of stdout. /__ledger tells what was billed and how often twice,
/__stats what happened, and a POST to /__reset forgets both. It runs until Ctrl-C or SIGTERM.

Examples:
  ragforge mock
  ragforge judge --base-url http://127.0.0.1:8089/v1 --model mock --dataset set/
  ragforge mock --latency lognorm:800,0.4 --rpm 1200 --retry-after ms
  ragforge mock --p-hang 0.05 --p-badjson 0.3 --p500 0.1
  curl http://127.0.0.1:8089/__ledger
"""

import argparse
import contextlib
import ipaddress
import signal
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ragforge.api.progress import say
from ragforge.cli.flags import run_async
from ragforge.errors import UsageError
from ragforge.mock.script import Script, descriptions, fault_of, flag

if TYPE_CHECKING:
    from ragforge.mock.app import App

COMMON = (
    "--host",
    "--port",
    "--latency",
    "--rpm",
    "--tpm",
    "--p-hang",
    "--p-badjson",
    "--p500",
    "--retry-after",
    "--embeddings",
    "--seed",
)
"""Options of the short help, in its order."""
_PORT = 8089
_HIGHEST_PORT = 65535
_METAVARS = {"auth": "KEY", "redirect_to": "URL", "refuse": "PARAMETER", "falls_for": "WEAKNESS"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--port", type=int, default=_PORT, metavar="N", help=f"0 takes a free one; default {_PORT}"
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that other machines reach; anyone there can use it",
    )
    faults = parser.add_argument_group("faults, as probabilities; an attempt meets at most one")
    others = parser.add_argument_group("behaviour")
    kinds = get_type_hints(Script)
    help_of = descriptions()
    for item in fields(Script):
        group = faults if fault_of(item.name) else others
        default = f" Default: {item.default}." if item.default not in (None, "", (), 0.0) else ""
        group.add_argument(
            flag(item.name),
            dest=item.name,
            action="append" if isinstance(item.default, tuple) else "store",
            metavar=_metavar(item.name, kinds[item.name]),
            help=(help_of[item.name] + default).replace("%", "%%"),
        )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.api.serving import embed_of
    from ragforge.mock.app import App

    # The name may stand for two addresses, which would take two different free ports.
    host = "127.0.0.1" if arguments.host == "localhost" else arguments.host
    port = arguments.port
    _check_address(host, port, remote=arguments.allow_remote)
    script = script_of(arguments)
    app = App(script, embed=embed_of(script))
    try:
        run_async(_serve(app, host, port))
    except OSError as error:
        raise UsageError(
            f"--host {host} --port {port}: cannot be listened on: {error.strerror or error}; "
            "--port 0 takes a free port"
        ) from error
    say(_summary(app))
    return 0


def script_of(arguments: argparse.Namespace) -> Script:
    """Return the script that the flags make.

    Raises:
        UsageError: A value cannot be taken.
    """
    kinds = get_type_hints(Script)
    # The types were read from the fields, which no checker can follow.
    given: dict[str, Any] = {
        item.name: _value(item.name, kinds[item.name], text)
        for item in fields(Script)
        if (text := getattr(arguments, item.name)) is not None
    }
    return Script(**given)


async def _serve(app: "App", host: str, port: int) -> None:
    import asyncio  # No help waits for it, nor for the server.

    from ragforge.mock.running import listening

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # On Windows Ctrl-C raises instead.
            loop.add_signal_handler(number, stop.set)
    async with listening(app, host, port) as taken:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{taken}/v1"
        print(url, flush=True)
        say(f"mock endpoint at {url}; Ctrl-C ends it")
        await stop.wait()


def _summary(app: "App") -> str:
    stats, ledger = app.stats.to_dict(), app.ledger.to_dict()
    return (
        f"mock: {stats['requests']} requests, {stats['rejected']} rejected with 429, "
        f"{ledger['billed']} billed, {ledger['dup']} of them for a request billed before"
    )


def _check_address(host: str, port: int, *, remote: bool) -> None:
    if not 0 <= port <= _HIGHEST_PORT:
        raise UsageError(f"--port: expected 0 to {_HIGHEST_PORT}, got {port}")
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise UsageError(f"--host: expected an IP address, got {host!r}") from error
    if not local and not remote:
        raise UsageError(
            f"--host: {host} can be reached from other machines; "
            "127.0.0.1 cannot, and --allow-remote takes any"
        )


def _value(name: str, kind: object, text: str | list[str]) -> object:
    if isinstance(text, list):
        return tuple(text)
    if _is(kind, int):
        return _number(name, "a whole number", int, text)
    return _number(name, "a number", float, text) if _is(kind, float) else text


def _number(name: str, what: str, read: Callable[[str], float], text: str) -> float:
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{flag(name)}: expected {what}, got {text!r}") from error


def _is(kind: object, wanted: type) -> bool:
    return kind is wanted or wanted in get_args(kind)


def _metavar(name: str, kind: object) -> str:
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if fault_of(name):
        return "P"
    if name in _METAVARS:
        return _METAVARS[name]
    if _is(kind, int):
        return "N"
    return "X" if _is(kind, float) else name.rsplit("_", 1)[-1].upper()
