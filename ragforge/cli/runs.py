"""List the runs of a dataset, take one out, or give one another name.

  list    what is there: queries, failures and retrieved chunks of each run, its retriever, and
          whether it was made on the chunks that the set has now. A run that was not is stale: no
          command measures it
  rm      remove runs, with the failures of their retrievers
  rename  give a run another name, with its failures

Answers of the same name stay, and so do evaluations in the history: they keep the name they had.

Examples:
  ragforge runs list --dataset set/
  ragforge runs rm --dataset set/ broken old
  ragforge runs rename --dataset set/ bm25 bm25-before --json
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import say
from ragforge.cli.flags import add_json
from ragforge.cli.output import dumps, show
from ragforge.evaluating.formatting import MISSING, cost_of_thousand, render_table

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.pipeline.run_list import ListedRun


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|rm|rename")
    _add(actions, "list", "show the runs that are there")
    remove = _add(actions, "rm", "remove runs, with their failures")
    remove.add_argument("names", nargs="+", metavar="RUN", help="a run")
    rename = _add(actions, "rename", "give a run another name")
    rename.add_argument("name", metavar="RUN", help="a run")
    rename.add_argument("to", metavar="NAME", help="its new name")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.set.opening import open_dataset

    dataset = open_dataset(arguments.dataset)
    if arguments.action == "list":
        _list(dataset, as_json=arguments.json)
    elif arguments.action == "rm":
        _remove(dataset, list(dict.fromkeys(arguments.names)), as_json=arguments.json)
    else:
        _rename(dataset, arguments.name, arguments.to, as_json=arguments.json)
    return 0


def _add(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, what: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=what, description=what)
    parser.add_argument("--dataset", required=True, type=Path, metavar="DIR", help="the set")
    add_json(parser)
    return parser


def _list(dataset: "Dataset", *, as_json: bool) -> None:
    from ragforge.pipeline.run_list import list_runs

    listed = list_runs(dataset)
    if as_json:
        print(dumps({"dataset": str(dataset.path), "runs": [asdict(item) for item in listed]}))
    elif listed:
        has_costs = any(item.usd_per_query is not None for item in listed)
        costs = ["USD/1,000 queries"] if has_costs else []
        headers = ("run", "queries", "failed", "hits", "chunks", *costs, "retriever")
        show(render_table(headers, [_row(item, has_costs=has_costs) for item in listed]))
    else:
        say(f"{dataset.path}: has no runs; make one with `ragforge retrieve`")


def _row(item: "ListedRun", *, has_costs: bool) -> tuple[str, ...]:
    n_queries = f"{item.n_queries:,}{f' ({item.queries})' if item.queries else ''}"
    counts = (f"{count:,}" for count in (item.n_failed, item.n_hits))
    costs = [cost_of_thousand(item.usd_per_query)] if has_costs else []
    return (item.run, n_queries, *counts, item.in_words, *costs, item.retriever or MISSING)


def _remove(dataset: "Dataset", names: list[str], *, as_json: bool) -> None:
    from ragforge.pipeline.run_list import remove_runs

    remove_runs(dataset, names)
    if as_json:
        print(dumps({"dataset": str(dataset.path), "removed": names}))
    else:
        say(f"removed: {', '.join(names)}")


def _rename(dataset: "Dataset", name: str, to: str, *, as_json: bool) -> None:
    dataset.rename_run(name, to)
    if as_json:
        print(dumps({"dataset": str(dataset.path), "run": to, "before": name}))
    else:
        print(dataset.files / "runs" / f"{to}.jsonl")
