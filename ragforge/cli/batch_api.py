"""Options by which a command's calls go through a batch API, or through files."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ragforge.api.progress import say
from ragforge.cli.flags import run_async
from ragforge.cli.output import dumps
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.pipeline.batch_job import Advance, BatchJob

R = TypeVar("R")
_GO: Final = "go"
_ACTIONS: Final = ("submit", "poll", "collect", "cancel")


def add_batch_api(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("batch API, at half the price and within a day")
    group.add_argument(
        "--batch-api",
        nargs="?",
        const=_GO,
        choices=(_GO, *_ACTIONS),
        metavar="|".join(_ACTIONS),
        help="bring in what is there, send what is open, write the result when all is there; or "
        "only one of them",
    )
    group.add_argument("--wait", action="store_true", help="stay until the result is written")
    group.add_argument(
        "--poll-every",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="seconds between two looks with --wait (default 60)",
    )
    group.add_argument(
        "--batch-out",
        type=Path,
        metavar="FILE",
        help="write the open requests for an offline server (vllm run-batch), and ask nothing",
    )
    group.add_argument(
        "--batch-in", type=Path, metavar="FILE", help="bring in the replies of such a server"
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise argparse.ArgumentTypeError(f"expected seconds, 0 or more, got {text}")
    return seconds


def is_batch_api(arguments: argparse.Namespace) -> bool:
    """Whether any of the options is given."""
    return any((arguments.batch_api, arguments.batch_out, arguments.batch_in))


def check_batch_api(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        UsageError: Some are given.
    """
    given = [
        name
        for name, is_given in {
            "--batch-api": arguments.batch_api,
            "--batch-out": arguments.batch_out,
            "--batch-in": arguments.batch_in,
        }.items()
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} do not go together")
    if arguments.wait and arguments.batch_api != _GO:
        raise UsageError("--wait goes with --batch-api alone")
    if not given:
        return
    for name in ("dry_run", "retry_failed", "offline_replay"):
        if getattr(arguments, name):
            raise UsageError(f"{given[0]}: --{name.replace('_', '-')} goes with live calls")


def done(arguments: argparse.Namespace, job: "BatchJob[R]") -> R | None:
    """Do a job live, or what is asked for of batches; return its result where it is there."""
    if not is_batch_api(arguments):
        return run_async(job.live())
    if arguments.batch_out is not None:
        count = run_async(job.write_requests(arguments.batch_out))
        say(f"{count:,} requests; run them and bring the replies in with --batch-in FILE")
        print(arguments.batch_out)
        return None
    if arguments.batch_in is not None:
        count = run_async(job.read_replies(arguments.batch_in))
        say(f"{count:,} replies brought in; --batch-out writes what is still open")
        return None
    if arguments.batch_api == "poll":
        _tell(arguments, run_async(job.look()), 0)
        return None
    if arguments.batch_api == "cancel":
        say(f"{run_async(job.cancel()):,} batches ended; --batch-api collect brings in their part")
        return None
    if arguments.wait:
        return run_async(job.wait(arguments.poll_every))
    goes = arguments.batch_api == _GO
    submits = goes or arguments.batch_api == "submit"
    now: Advance[R] = run_async(job.advance(submits=submits, ends=goes))
    if now.result is None:
        _tell(arguments, now.open_batches, now.noted)
    return now.result


def _tell(arguments: argparse.Namespace, batches: tuple[str, ...], noted: int) -> None:
    if arguments.json:
        print(dumps({"batches": list(batches), "open_requests": noted}))
        return
    for batch in batches:
        say(f"batch {batch}")
    if batches:
        say("the same command goes on when they are over; --wait stays")
    elif noted:
        say(f"{noted:,} requests are open; --batch-api sends them")
    else:
        say("no batch is open; --batch-api without a word writes the result")
