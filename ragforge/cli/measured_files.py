"""What commands do with `--qrels FILE --run FILE`: measure files as if they were a dataset."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragforge.errors import UsageError

if TYPE_CHECKING:
    from ragforge.files.set.dataset import Dataset
    from ragforge.observe import Observer


class Measured(NamedTuple):
    """What is to be measured."""

    dataset: "Dataset"
    run_names: list[str]
    """Those that are named; all are meant where it is empty."""


def add_measured(parser: argparse.ArgumentParser) -> None:
    """Add `--dataset`, `--qrels` and `--queries`; `--run` is the command's own."""
    parser.add_argument("--dataset", type=Path, metavar="DIR", help="measure runs of a dataset")
    parser.add_argument(
        "--qrels",
        type=Path,
        metavar="FILE",
        help="instead: judgments, for --run FILE",
    )
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help="with --qrels: what the queries ask"
    )


@contextmanager
def measured(arguments: argparse.Namespace, observer: "Observer") -> "Iterator[Measured]":
    """Lend the dataset that is named, or one made of the files that are.

    Raises:
        UsageError: Neither is named, or both.
        DataError: It cannot be read.
    """
    runs = _runs(arguments)
    if (arguments.dataset is None) == (arguments.qrels is None):
        raise UsageError("give either --dataset DIR, or --qrels FILE with --run FILE")
    if arguments.dataset is not None:
        if arguments.queries is not None:
            raise UsageError("--queries goes with --qrels; a dataset has its own")
        from ragforge.files.set.opening import open_dataset

        yield Measured(open_dataset(arguments.dataset), runs)
        return
    if not runs:
        raise UsageError("--qrels needs --run FILE")
    from ragforge.measures.measure_names import require_judgments_only

    require_judgments_only(arguments.setting_evaluate_measures or ())
    from ragforge.pipeline.intake.runs_and_qrels import run_name_of
    from ragforge.pipeline.intake.set_of_files import MeasuredFiles, set_of_files

    paths = list(map(Path, runs))
    with set_of_files(MeasuredFiles(arguments.qrels, paths, arguments.queries), observer) as made:
        yield Measured(made, list(map(run_name_of, paths)))


def _runs(arguments: argparse.Namespace) -> list[str]:
    named = arguments.run
    if isinstance(named, str):
        return [named]
    return list(named or [])
