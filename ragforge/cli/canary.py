"""`ragforge judge canary`: whether a judge still grades as it did."""

import argparse
from pathlib import Path
from typing import Final

from ragforge.cli.flags import (
    PAID,
    add_common,
    add_json,
    add_mode,
    job_of,
    observed,
    run_async,
    settings_of,
)
from ragforge.cli.output import print_result

CANARY_COMMON: Final = (
    "--dataset",
    "-n",
    "--anew",
    "--model",
    "--base-url",
    "--panel",
    "--dry-run",
    "--max-cost-usd",
    "--json",
)
"""Options of the short help."""
CANARY_HELP: Final = """\
Find out whether a judge still grades as it did: exit code 1 where it does not.

The first canary of a judge draws a fixed set of pairs, those that people graded first, and asks
about each twice. Each later one asks again, live and not from the call store, and holds the grades
against the first ones: the mean shift over queries, how many are one or more off, kappa with people
then and now, and who answered, as far as the endpoint tells. A judge with a temperature differs
from itself: it has drifted where it differs more than it did at first. A judge that did not change
alarms in no more than one canary of twenty.

All is kept in canaries.jsonl of the set, which is only ever added to. Calibrations made before a
drift are told to be stale.

Examples:
  ragforge judge canary --dataset set/ --model gpt-5-mini --dry-run
  ragforge judge canary --dataset set/ --model gpt-5-mini
  ragforge judge canary --dataset set/ --model gpt-5-mini --anew -n 80
"""


def configure_canary(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `judge canary`."""
    parser.add_argument("--dataset", type=Path, required=True, metavar="DIR", help="the set")
    parser.add_argument(
        "-n",
        "--n",
        type=int,
        default=40,
        metavar="N",
        help="pairs that a first canary draws (default 40)",
    )
    parser.add_argument(
        "--anew", action="store_true", help="begin again: this canary is the first of later ones"
    )
    add_mode(parser)
    add_json(parser)
    add_common(parser, "judge", *PAID)


def run_canary(arguments: argparse.Namespace) -> int:
    """Run `judge canary`."""
    from ragforge.api.canaries import CanaryOutcome
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.judge import canaries

    settings = settings_of(arguments)
    dataset = open_dataset(arguments.dataset)
    with observed(arguments) as observer:
        job = job_of(arguments, settings, observer)
        found = run_async(canaries.run_canary(dataset, job, arguments.n, anew=arguments.anew))
    print_result(CanaryOutcome(found), as_json=arguments.json)
    return int(found.has_drifted)
