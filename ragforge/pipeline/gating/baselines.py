"""Where the baseline of a gate comes from: a file, the history, or the main branch."""

from pathlib import Path
from typing import Final

from ragforge.errors import DataError, UsageError
from ragforge.files.baseline import parse_baseline, read_baseline
from ragforge.files.branches import read_from_branch
from ragforge.files.dataset import Dataset
from ragforge.pipeline.evaluated import EvaluatedRun
from ragforge.pipeline.history import last_alike, last_other
from ragforge.records import Baseline

FILE_NAME: Final = "baseline.json"


def find_baseline(
    dataset: Dataset, run: EvaluatedRun | None, named: str, file: Path | None = None
) -> Baseline:
    """Return the baseline of a name.

    Args:
        dataset: Has the history.
        run: What is held against it; None for answers, which the history does not hold.
        named: `last` for the newest other evaluation of the history (where all are like now, the
            newest), `main` for the file as it is on the main branch, or the path of a file.
        file: The file that `main` means; that of the dataset's directory where None.

    Raises:
        DataError: There is none, or it cannot be read.
        UsageError: It is the last one of answers.
    """
    if named == "main":
        found = read_from_branch(file or dataset.home / FILE_NAME)
        return parse_baseline(found.text, found.where)
    if named != "last":
        return read_baseline(Path(named))
    if run is None:
        raise UsageError("--baseline last: the history holds runs only; name a file, or main")
    last = last_other(dataset, run) or last_alike(dataset, run)
    if last is None:
        raise DataError(
            f"{dataset.path}: the history has no earlier evaluation of {run.evaluation.run!r} to "
            "be the baseline; evaluate it once with `ragforge evaluate`, or name a file"
        )
    return last
