"""Options by which a command's calls go through a batch API, through files, or in shards."""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ragforge.api.progress import say
from ragforge.cli.flags import run_async
from ragforge.cli.output import dumps
from ragforge.cli.parser import count
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.pipeline.batch_job import Advance, BatchJob

R = TypeVar("R")
_REQUESTS: Final = 2000
_REQUESTS_PER_BATCH: Final = 50_000
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
        "--requests-per-batch",
        type=count,
        default=_REQUESTS_PER_BATCH,
        metavar="N",
        help=f"most in one batch, where a provider takes less (default {_REQUESTS_PER_BATCH:,})",
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
    group = parser.add_argument_group("shards, on any number of machines")
    group.add_argument(
        "--shards",
        type=Path,
        metavar="DIR",
        help="cut the calls into shards there, for `ragforge shard run`; when all are done, the "
        "same command takes the replies over and writes the result. Before, with a higher limit or "
        "another rate, it takes these into the plan",
    )
    group.add_argument(
        "--requests-per-shard",
        type=count,
        default=_REQUESTS,
        metavar="N",
        help=f"calls of a shard (default {_REQUESTS})",
    )
    group.add_argument(
        "--workers",
        type=count,
        metavar="W",
        help="workers that share --concurrency and the limits a minute (default: as planned "
        "before, else 1)",
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise argparse.ArgumentTypeError(f"expected seconds, 0 or more, got {text}")
    return seconds


def is_batch_api(arguments: argparse.Namespace) -> bool:
    """Whether any of the options is given."""
    return any((arguments.batch_api, arguments.batch_out, arguments.batch_in, arguments.shards))


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
            "--shards": arguments.shards,
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
    if arguments.shards is not None:
        in_shards = _in_shards(arguments, job)
        return run_async(in_shards)
    if arguments.batch_api is None:
        _by_files(arguments, job)
        return None
    size = replace(job.size, requests=arguments.requests_per_batch)
    return _by_batches(arguments, replace(job, size=size))


def _by_files(arguments: argparse.Namespace, job: "BatchJob[R]") -> None:
    if arguments.batch_out is not None:
        count = run_async(job.write_requests(arguments.batch_out))
        say(f"{count:,} requests; run them and bring the replies in with --batch-in FILE")
        print(arguments.batch_out)
        return
    count = run_async(job.read_replies(arguments.batch_in))
    say(f"{count:,} replies brought in; --batch-out writes what is still open")


def _by_batches(arguments: argparse.Namespace, job: "BatchJob[R]") -> R | None:
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


async def _in_shards(arguments: argparse.Namespace, job: "BatchJob[R]") -> R | None:
    """Plan shards, or end the job where they are done."""
    from ragforge.pipeline.shards.plan import ShardFolder
    from ragforge.pipeline.shards.requests import ShardedJob

    folder = ShardFolder(arguments.shards)
    sharded = ShardedJob(job, folder)
    if folder.plan_path.is_file():
        changes = await sharded.plan_again(arguments.workers)
        if changes:
            say(f"{folder.plan_path}: has now {', '.join(changes)}")
        return await sharded.end()
    plan = await sharded.plan(arguments.requests_per_shard, arguments.workers or 1)
    say(f"{plan.size:,} requests in {len(plan.shards):,} shards")
    say(f"next: ragforge shard run {folder.path}  # on any machines; then this command again")
    print(folder.plan_path)
    return None


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
