"""Show where a run does badly, and the likely cause: what to repair first.

Causes come first, counted, each with a remedy; then the worst queries with what was retrieved
and what was missed. A query does badly if it is below the best value that its judgments allow. The
likely cause is the first rule that applies; all that apply are in --json.

[3] stands for a grade, [?] for a chunk that nobody judged, [!] for a judgment that failed.

Examples:
  ragforge worst --dataset set/
  ragforge worst --dataset set/ --run bm25 -m R@5 -n 50
  ragforge worst --dataset set/ --below 0.3
  ragforge worst --dataset set/ --cause duplicates_crowd --json
"""

import argparse
from math import inf

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import add_common, add_json, settings_of
from ragforge.cli.measured_files import add_measured, measured
from ragforge.cli.next_step import after_worst
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError
from ragforge.files.row import parse_number

_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    from ragforge.evaluating.causes.catalogue import CAUSES

    add_measured(parser)
    parser.add_argument(
        "--run",
        action="append",
        default=[],
        metavar="NAME",
        help="which run (default: all); with --qrels its file",
    )
    parser.add_argument(
        "-n",
        type=_count,
        metavar="N",
        help=f"queries listed (default: {_SHOWN}; all with --below)",
    )
    parser.add_argument(
        "--below",
        type=_value,
        metavar="VALUE",
        help="list only queries with a value less than this",
    )
    parser.add_argument(
        "--cause",
        choices=list(CAUSES),
        metavar="CODE",
        help=f"list only queries with this likely cause: {', '.join(CAUSES)}",
    )
    add_json(parser)
    add_common(parser, "evaluate")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.pipeline.worst import find_worst
    from ragforge.report.worst import render_worst, worst_json

    if len(arguments.setting_evaluate_measures or ()) > 1:
        raise UsageError("-m: expected one measure, as queries are sorted by it")
    settings = settings_of(arguments).evaluate
    with measured(arguments, Progress(arguments.quiet)) as (dataset, names):
        report = find_worst(
            dataset,
            names,
            settings,
            n=_SHOWN if arguments.n is None and arguments.below is None else arguments.n,
            below=arguments.below,
            cause=arguments.cause,
        )
    for warning in report.warnings:
        say(f"warning: {warning}")
    if arguments.json:
        print(dumps(worst_json(report)))
    else:
        show(render_worst(report))
        after_worst(arguments)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, got {text!r}")
    return int(text)


def _value(text: str) -> float:
    value = parse_number(text)
    if value is None or not 0 < value < inf:
        raise argparse.ArgumentTypeError(
            f"expected a number above 0, as no value is less than 0, got {text!r}"
        )
    return value
