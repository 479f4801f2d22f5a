"""What `ragforge answer` does with `--system`: ask it before its answers are graded."""

import argparse
import asyncio
import sys
from contextlib import redirect_stdout
from pathlib import Path

from ragforge.cli.flags import dumps
from ragforge.cli.talk import complain
from ragforge.config import Settings
from ragforge.errors import UsageError
from ragforge.files.dataset import Dataset
from ragforge.observe import Observer
from ragforge.pipeline.asking_systems import AskingResult, ask_queries
from ragforge.pipeline.backend import Mode


def add_system(parser: argparse.ArgumentParser) -> None:
    """Add `--answers`, `--system` and what goes with them."""
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--answers", type=Path, metavar="FILE")
    origin.add_argument(
        "--system",
        metavar="SPEC",
        help="ask a RAG system the queries that have no answer under --name yet: http:URL or "
        "pkg.mod:attr",
    )
    parser.add_argument(
        "--ask-again",
        action="store_true",
        help="with --system: ask also the queries that have an answer",
    )
    parser.add_argument(
        "--answers-only",
        action="store_true",
        help="with --system: write the answers and grade nothing",
    )


def name_of_system(arguments: argparse.Namespace) -> str:
    """Return the name under which answers are kept.

    Raises:
        UsageError: The flags do not go together.
    """
    if arguments.system is None:
        for flag in ("--ask-again", "--answers-only"):
            if getattr(arguments, flag[2:].replace("-", "_")):
                raise UsageError(f"{flag}: goes with --system; --answers takes a file as it is")
    if arguments.name is not None:
        return str(arguments.name)
    if arguments.system is not None:
        raise UsageError("--system: expected --name NAME with it, to keep its answers under")
    return str(arguments.answers.name.split(".")[0])


def asked(
    arguments: argparse.Namespace,
    dataset: Dataset,
    settings: Settings,
    observer: Observer,
    mode: Mode,
) -> AskingResult | None:
    """Ask the system, if one is named; return None where answers come from a file."""
    if arguments.system is None:
        return None
    name = name_of_system(arguments)
    # What the user's system prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        return asyncio.run(
            ask_queries(
                dataset,
                arguments.system,
                name,
                settings,
                observer,
                mode,
                again=arguments.ask_again,
            )
        )


def print_asked(made: AskingResult, arguments: argparse.Namespace) -> None:
    """Print what asking came to, where nothing is graded behind it."""
    if arguments.dry_run:
        if arguments.json:
            print(dumps(calls_of_system(made)))
            return
        print(f"queries to ask the system: {made.n_asked}")
        complain("calls of the judge cannot be counted before the answers are there")
        return
    if arguments.json:
        print(dumps({"system": arguments.name, "file": str(made.path), **counts(made)}))
        return
    n_failed = len(made.failures)
    complain(f"{arguments.name}: {made.n_asked - n_failed} queries answered, {n_failed} failed")
    print(made.path)


def calls_of_system(made: AskingResult | None) -> dict[str, int]:
    """Return what a dry run would ask the system, beside what it would ask the judge."""
    return {} if made is None else {"system_calls": made.n_asked}


def counts(result: AskingResult | None) -> dict[str, int]:
    """Return what asking came to, for `--json`."""
    if result is None:
        return {}
    return {"asked": result.n_asked, "kept": result.n_kept, "not_answered": len(result.failures)}
