"""Holes of runs: retrieved chunks that nobody graded, which measures take for not relevant."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from ragforge.evaluating.evaluation_data import is_complete
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.document_level import DocumentLevel, document_level
from ragforge.files.set.stale_runs import usable_runs
from ragforge.records import Judgment, Ranking

TOP: Final = 10
"""Ranks that are looked at."""


@dataclass(frozen=True, slots=True)
class RunHoles:
    """What of the top ranks of a run has no grade."""

    run: str
    n_retrieved: int
    n_holes: int


def holes_of(dataset: Dataset, runs: Iterable[str] = ()) -> list[RunHoles]:
    """Return the holes of runs, of all but stale ones where none is named.

    There are none without any grade, nor where the labels of a set are complete.

    Only accepted queries count.

    Raises:
        DataError: There is no such run.
    """
    accepted = {query.query_id for query in dataset.queries()}
    level = DocumentLevel()
    graded = {_pair(one) for one in dataset.each_judgment() if _counts(one, accepted)}
    if dataset.manifest.level is not None:
        level = document_level(dataset, dataset.each_judgment())
        judgments = level.judgments(dataset.judgments())
        graded = {_pair(one) for one in judgments if _counts(one, accepted)}
    if not graded or is_complete(dataset, dataset.each_judgment()):
        return []
    names = list(runs) or usable_runs(dataset).names
    rankings = {run: level.rankings(dataset.each_ranking(run)) for run in names}
    return [_holes(run, rankings[run], accepted, graded) for run in names]


def describe_holes(holes: RunHoles, dataset: Dataset) -> str:
    """Return what a user should know of a run's holes, "" where there are none."""
    if not holes.n_holes:
        return ""
    return (
        f"run {holes.run}: {holes.n_holes:,} of {holes.n_retrieved:,} chunks in the top {TOP} are "
        f"holes; `ragforge judge --dataset {dataset.path} --run {holes.run}` judges them"
    )


def _counts(judgment: Judgment, accepted: Container[str]) -> bool:
    return not judgment.is_failed and judgment.query_id in accepted


def _pair(judgment: Judgment) -> tuple[str, str]:
    return judgment.query_id, judgment.chunk_id


def _holes(
    run: str, rankings: Iterable[Ranking], accepted: set[str], graded: set[tuple[str, str]]
) -> RunHoles:
    n_retrieved = n_holes = 0
    for ranking in rankings:
        if ranking.query_id in accepted:
            top = [(ranking.query_id, hit.chunk_id) for hit in ranking.ranking[:TOP]]
            n_retrieved += len(top)
            n_holes += sum(pair not in graded for pair in top)
    return RunHoles(run, n_retrieved, n_holes)
