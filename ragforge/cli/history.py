"""Show how the runs of a dataset did over time: what changed, where measures go, each evaluation.

`ragforge evaluate --dataset DIR` adds a line for each run to DIR/history.jsonl. Read it so:
  verdict     IMPROVING or DEGRADING where the 95 % interval of the difference leaves 0 out and the
              test of `compare` finds one, else STABLE. A rise within the interval is no rise.
              UNKNOWN: too few items to tell, or the set changed and no item is known to be the
              same: easier queries or other grades are no better retriever; or no one judge graded
              both rankings, and the command that buys the missing grades follows. It is since the
              last state that has the measure.
  same items  the items that are equal in both evaluations (question, answer, evidence). Where
              their grades changed, the earlier ranking is scored again on the later ones, both on
              those of one judge where several graded (people's count for any). If only
              the mean over all items moved, the set changed; if that of the same items moved, the
              system did.
  first to last of N
              the same for the newest N evaluations: the last of them against the first. It is no
              slope; what came in between is not in it.
  items that would show a difference
              where the verdict is STABLE: how many it takes to show the difference seen, and one of
              --difference, in 4 of 5 samples, by the spread of the differences per item.
  changed     what is not as it was in the last evaluation that differs: scale, corpus, items,
              judge, prompts, judgments, retriever, failures, tool. What follows from another change
              is left out.
--by batch shows instead how each run does, by its newest evaluation, on each batch of queries that
`import --logs --sample` drew: a series of weeks. The mean as asked weighs each query by how often
it was asked. Batches are different questions, so a difference is no trend of the set, and its
interval is one of two samples.
Lines that are torn, were changed by hand or hold numbers that cannot be are left out, and told on
stderr.

Examples:
  ragforge history --dataset set/
  ragforge history --dataset set/ --run bm25 -m nDCG@10 -n 50
  ragforge history --dataset set-a/ --dataset set-b/ --json
  ragforge history --dataset set/ --by batch --run bm25
"""

import argparse
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.next_step import after_history
from ragforge.cli.output import dumps, show
from ragforge.deferred import shutil
from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.evaluating.history.batches import BatchSeries
    from ragforge.evaluating.history.run_history import RunHistory

ROWS = 20
_LEAST_DIFFERENCE = 0.05


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--dataset",
        action="append",
        required=True,
        type=Path,
        metavar="DIR",
        help="a dataset; several may be given",
    )
    parser.add_argument(
        "--run", action="append", default=[], metavar="NAME", help="a run (default: all)"
    )
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        default=[],
        metavar="MEASURE",
        help="a measure (default: those of the newest evaluation); the first is listed and drawn",
    )
    parser.add_argument(
        "-n", type=int, default=ROWS, metavar="N", help=f"evaluations to list (default: {ROWS})"
    )
    parser.add_argument(
        "--difference",
        type=float,
        default=_LEAST_DIFFERENCE,
        metavar="X",
        help="least difference that matters; how many queries it takes is told where no verdict is "
        f"(default: {_LEAST_DIFFERENCE})",
    )
    parser.add_argument(
        "--by",
        choices=("batch",),
        help="show how runs do on each batch that `import --logs --sample` drew, such as weeks",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.n < 1:
        raise UsageError(f"-n {arguments.n}: expected at least 1")
    if not 0 < arguments.difference < inf:
        raise UsageError(f"--difference {arguments.difference:g}: expected a number above 0")
    from ragforge.measures.measure_names import canonical
    from ragforge.report.history import NOTE

    measures = canonical(arguments.measure)
    tell = _show_batches if arguments.by else _print_runs
    told = [tell(path, measures, arguments) for path in arguments.dataset]
    if arguments.json:
        print(dumps({"datasets": told}))
    elif not arguments.by:
        print(NOTE)
        after_history(arguments)
    return 0


def _print_runs(
    path: Path, measures: list[str], arguments: argparse.Namespace
) -> dict[str, object]:
    """Print the history of each run of a set; return it for JSON, where nothing is printed."""
    from ragforge.files.set.history import read_history
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.history import run_histories, stale_notes, uneven_notes

    dataset = open_dataset(path)
    history = read_history(dataset.home)
    runs = run_histories(dataset, history, arguments.run, measures)
    names = [item.run for item in runs]
    notes = [*history.notes, *stale_notes(dataset, names), *uneven_notes(dataset, history, names)]
    for note in notes:
        say(f"warning: {note}")
    if not arguments.json:
        _print(path, runs, arguments)
        return {}
    from ragforge.api.reports import RunHistories

    found = RunHistories(path, tuple(runs), tuple(notes))
    return found.to_dict(arguments.n, arguments.difference)


def _show_batches(
    path: Path, measures: list[str], arguments: argparse.Namespace
) -> dict[str, object]:
    """Print how the runs of a set do on each batch; return it for JSON, as `_print_runs`."""
    from ragforge.files.set.history import read_history
    from ragforge.files.set.opening import open_dataset
    from ragforge.pipeline.history import batch_histories, stale_notes

    dataset = open_dataset(path)
    history = read_history(dataset.home)
    batches = batch_histories(dataset, history, arguments.run, measures, newest=arguments.n)
    notes = [*history.notes, *stale_notes(dataset, history.runs)]
    for note in notes:
        say(f"warning: {note}")
    if not arguments.json:
        _print_batches(path, batches)
        return {}
    from ragforge.api.reports import BatchHistory

    return BatchHistory(path, tuple(batches), tuple(notes)).to_dict()


def _print_batches(path: Path, batches: "list[BatchSeries]") -> None:
    from ragforge.report.history import batches_text

    if not batches:
        print(f"{path}: no evaluation yet; `ragforge evaluate --dataset {path}` makes one")
    for series in batches:
        show(f"{batches_text(series)}\n")


def _print(path: Path, runs: "list[RunHistory]", arguments: argparse.Namespace) -> None:
    from ragforge.report.history import history_text

    if not runs:
        print(f"{path}: no evaluation yet; `ragforge evaluate --dataset {path}` makes one")
    width = shutil.get_terminal_size().columns
    for found in runs:
        where = f"{path}, " if len(arguments.dataset) > 1 else ""
        show(f"{where}{history_text(found, arguments.n, width, arguments.difference)}\n")
