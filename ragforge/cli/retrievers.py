"""What commands do with `--retriever`: make the runs on the spot that they then measure."""

import argparse
import sys
from collections.abc import Iterable, Set
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import run_async
from ragforge.config import Settings
from ragforge.errors import EndpointError, UsageError
from ragforge.observe import Observer

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.llm.budget import BudgetAccount
    from ragforge.pipeline.retrieving import RunResult

SECTIONS = ("retrieve", "model")
"""Sections of settings that retrievers take."""


def add_retrievers(parser: argparse.ArgumentParser) -> None:
    """Add `--retriever` and `--name`."""
    parser.add_argument(
        "--retriever",
        action="append",
        default=[],
        metavar="SPEC",
        help="with --dataset: make this run now, as `ragforge retrieve` does; several may be "
        "given and work at the same time: bm25, chargram, dense, a service of the "
        "settings, http:URL or pkg.mod:attr",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="name of the run of each --retriever, in the same order (default: made of its SPEC)",
    )


def run_retrievers(
    arguments: argparse.Namespace,
    dataset: "Dataset",
    settings: Settings,
    observer: Observer,
    named: Set[str] = frozenset(),
    account: "BudgetAccount | None" = None,
) -> "list[RunResult]":
    """Make the runs of the retrievers that are named, [] where there are none.

    Of a result that `n_earlier`, the earlier run must not be measured in its place: see `left_out`.

    Args:
        arguments: Have what `add_retrievers` added.
        dataset: Gets the runs.
        settings: As for `make_runs`.
        observer: Told of progress.
        named: Runs that are asked for as they are.
        account: What the command spent of its budget; of nothing else where None.

    Raises:
        UsageError: Names do not fit the retrievers, a run of `named` would be replaced, or there
            is no such measure.
        DataError: There is no run of `named`, or it was made on other chunks.
        RagforgeError: One was stopped by other than its endpoint, such as the budget.
    """
    if not arguments.retriever:
        if arguments.name:
            raise UsageError("--name: goes with --retriever; a run that is there has its name")
        return []
    from ragforge.pipeline.job import Job
    from ragforge.pipeline.retrieving import make_runs
    from ragforge.pipeline.run_list import named_specs

    specs = named_specs(arguments.retriever, arguments.name)
    replaced = specs.keys() & named
    if replaced:
        raise UsageError(
            f"run {min(replaced)!r}: is asked for as it is, and a retriever would replace it; "
            "give the retriever a --name of its own"
        )
    _check_before(dataset, settings, named)
    # What a user's retriever prints must not end up in the data on stdout.
    with redirect_stdout(sys.stderr):
        job = Job(settings, observer)
        job = job if account is None else replace(job, account=account)
        made = run_async(make_runs(dataset, specs, job))
    for result in made:
        _tell(result)
    return made


def _tell(result: "RunResult") -> None:
    """Warn of a run that was stopped or failed on queries.

    Raises:
        RagforgeError: It was stopped by other than its endpoint.
    """
    if result.stopped_by is not None and not isinstance(result.stopped_by, EndpointError):
        raise result.stopped_by
    if result.explanation:
        rest = (
            "; left out, as the run of before does not show it as it is now"
            if result.n_earlier
            else ""
        )
        say(f"warning: {result.name}: {result.explanation}{rest}")
    elif result.failures:
        n_queries = len(result.failures) + len(result.rankings)
        say(
            f"warning: {result.name}: the retriever failed on {len(result.failures)} of "
            f"{n_queries} queries; they have no value and widen the bounds"
        )


def left_out(made: "Iterable[RunResult]") -> set[str]:
    """Return the names of runs that are there, but are not what was to be made just now."""
    return {result.name for result in made if result.n_earlier}


def code_of(made: "Iterable[RunResult]") -> int:
    """Return the exit code where measuring went well: 4 if a retriever worked on no query."""
    return EndpointError.exit_code if any(result.explanation for result in made) else 0


def _check_before(dataset: "Dataset", settings: Settings, named: Set[str]) -> None:
    """Refuse what the measuring behind it would refuse, before any retriever has worked."""
    from ragforge.files.set.stale_runs import usable_runs
    from ragforge.measures import parse_measure

    for measure in settings.evaluate.measures:
        parse_measure(measure)
    for name in sorted(named):
        dataset.each_ranking(name)
    if named:
        usable_runs(dataset, sorted(named))
