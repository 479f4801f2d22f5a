"""Comparing runs that are files, on judgments that are one."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Unpack

from ragforge.api.call import EVALUATE, begin
from ragforge.api.compared import RunComparison
from ragforge.api.jobs import names_of
from ragforge.api.keywords import EvaluateKeywords
from ragforge.pipeline.comparing.deciding import ComparisonOptions
from ragforge.pipeline.comparing.runs import compare_files as compare_files_of


def compare_files(
    qrels: str | PathLike[str],
    runs: Sequence[str | PathLike[str]],
    measures: str | Sequence[str] = (),
    *,
    base: str | None = None,
    alpha: float = 0.05,
    only_retrieved: bool = False,
    **settings: Unpack[EvaluateKeywords],
) -> RunComparison:
    """Tell which of several run files is better; `EvaluationSet.compare` does so in a set.

    Args:
        qrels: File of judgments: TREC, JSON Lines, JSON, CSV or a BEIR folder.
        runs: Two or more files.
        measures: By which; the first decides.
        base: Name of the run (its file's, without endings) that the others are held against.
        alpha: Chance of any false finding among all comparisons.
        only_retrieved: Leave queries out that a run lacks, rather than count them as 0.
        settings: rel_threshold and others; see `ragforge.api.keywords`.

    Raises:
        DataError: A file does not hold to its format, or runs share no query.
        UsageError: A measure or another argument cannot be taken.
    """
    own = {"evaluate.measures": tuple(names_of(measures))} if measures else {}
    options = ComparisonOptions(alpha=alpha, baseline=base, only_retrieved=only_retrieved)
    with begin(EVALUATE, settings, {}, own=own) as call:
        paths = [Path(path) for path in runs]
        report = compare_files_of(Path(qrels), paths, call.settings.evaluate, options)
        return RunComparison(report, tuple(call.notes))
