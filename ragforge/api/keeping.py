"""Evaluations in the history of their dataset: keeping them, and which runs outlived them."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from ragforge.errors import DataError
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.stale_runs import chunks_of_runs
from ragforge.observe import Observer
from ragforge.pipeline.evaluated import EvaluatedRun
from ragforge.pipeline.history import keep_evaluations


class Kept(NamedTuple):
    """Evaluations as they were kept."""

    runs: list[EvaluatedRun]
    warning: str
    """Why they were not; "" where they were."""


def kept_in_history(dataset: Dataset, runs: Sequence[EvaluatedRun], observer: Observer) -> Kept:
    """Add evaluations to the history of their dataset.

    A dataset that cannot be written is no reason to hold back what was measured on it.
    """
    try:
        kept = keep_evaluations(dataset, runs, observer)
    except DataError as error:
        return Kept([*runs], f"not kept in the history: {error}")
    return Kept(
        [
            replace(run, baseline=run.baseline.model_copy(update={"evaluation": evaluation}))
            for run, evaluation in zip(runs, kept, strict=True)
        ],
        "",
    )


def stale_notes(dataset: Dataset, names: Collection[str]) -> Iterator[str]:
    """Yield which of some runs cannot be evaluated again as they are."""
    with suppress(DataError):  # A run that cannot be read does not spoil its past.
        for run in chunks_of_runs(dataset, names).values():
            if run.is_stale:
                yield (
                    f"run {run.run} is stale: {run.reason()}; its evaluations stand, and "
                    f"`{run.way_out(dataset)}` makes it again"
                )
