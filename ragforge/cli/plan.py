"""Say what it takes to tell two retrievers apart, before anything is bought.

How many queries show a difference follows from how much two retrievers differ from query to query:
two judged runs of the set tell it, else what is typical counts. With --model it says what judging
the pairs costs, live and by a batch endpoint, which asks half. Nothing is asked and nothing is
written.

Examples:
  ragforge plan
  ragforge plan --queries 80
  ragforge plan --dataset set/
  ragforge plan --dataset set/ old new -m P@5 --difference 0.03 --model gpt-5-mini
"""

import argparse
from math import inf
from pathlib import Path

from ragforge.api.progress import Progress
from ragforge.cli.flags import add_common, add_json, run_async, settings_of
from ragforge.cli.next_step import after_planning
from ragforge.cli.output import dumps, show
from ragforge.errors import UsageError
from ragforge.files.row import parse_number

COMMON = ("--dataset", "-m", "--difference", "--queries", "--model", "--json")
"""Options of the short help, in its order."""
_DEFAULT_MEASURE = "nDCG@10"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="RUN",
        help="with --dataset: two judged runs, as different as those to come (default: the median "
        "of all couples)",
    )
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="plan with this dataset")
    parser.add_argument(
        "--difference",
        type=_difference,
        action="append",
        default=[],
        metavar="X",
        help="one that would matter, several may be given (default: 0.02, 0.05 and 0.10)",
    )
    parser.add_argument(
        "--queries",
        type=int,
        default=0,
        metavar="N",
        help="without --dataset: what so many queries can show",
    )
    add_json(parser)
    add_common(parser, "evaluate", "judge", "model", "prompts")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    measures = arguments.setting_evaluate_measures or ()
    if len(measures) > 1:
        raise UsageError("-m: expected one measure, by which it is to be decided")
    if arguments.dataset is not None and arguments.queries:
        raise UsageError("--queries: a dataset has its own; give one of the two")
    if arguments.queries < 0:
        raise UsageError(f"--queries: expected a whole number from 0, got {arguments.queries}")
    settings = settings_of(arguments)
    from ragforge.api.planned import PlannedDecision
    from ragforge.config.sections import is_offline
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.job import Job, Mode
    from ragforge.pipeline.planning import PlanOptions, plan_decision

    measure = measures[0] if measures else _DEFAULT_MEASURE
    options = PlanOptions(measure, tuple(arguments.difference), arguments.queries)
    dataset = None if arguments.dataset is None else open_dataset(arguments.dataset)
    model = "" if is_offline(settings.model.name) else settings.model.name
    price = None
    if model and dataset is not None:
        from ragforge.pipeline.comparing.price import price_of_pairs

        job = Job(settings, Progress(arguments.quiet), Mode(dry_run=True))
        price = run_async(price_of_pairs(dataset, job))
    found = PlannedDecision(
        plan_decision(dataset, arguments.names, settings.evaluate, options, model, price)
    )
    if arguments.json:
        print(dumps(found.to_dict()))
    else:
        show(found.table())
        after_planning(arguments)
    return 0


def _difference(text: str) -> float:
    value = parse_number(text)
    if value is None or not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value
