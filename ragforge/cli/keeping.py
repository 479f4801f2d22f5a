"""Keeping evaluations in the history of their dataset."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from ragforge.cli.talk import complain
from ragforge.errors import DataError
from ragforge.files.dataset import Dataset
from ragforge.observe import Observer
from ragforge.pipeline.evaluated import EvaluatedRun


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Add `--no-history`."""
    parser.add_argument(
        "--no-history",
        action="store_true",
        help="leave history.jsonl of the dataset as it is, rather than add a line for each run",
    )


def keep(
    arguments: argparse.Namespace,
    dataset: Dataset,
    runs: Sequence[EvaluatedRun],
    observer: Observer,
) -> list[EvaluatedRun]:
    """Add evaluations to the history unless told not to; return them as they were kept.

    A dataset that cannot be written is no reason to hold back what was measured on it: that it was
    not kept is said on stderr.
    """
    if arguments.no_history:
        return [*runs]
    from ragforge.pipeline.history import keep_evaluations  # Its numpy is not for --help.

    try:
        kept = keep_evaluations(dataset, runs, observer)
    except DataError as error:
        complain(f"warning: not kept in the history: {error}")
        return [*runs]
    return [
        replace(run, baseline=run.baseline.model_copy(update={"evaluation": evaluation}))
        for run, evaluation in zip(runs, kept, strict=True)
    ]
