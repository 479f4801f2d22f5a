"""The values per item of evaluations, kept beside the history: what later ones are held against."""

import contextlib
import gzip
import zlib
from collections.abc import Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ragforge.errors import DataError
from ragforge.files.atomic import remove_strays, write_whole_bytes
from ragforge.files.history import ID_DIGITS, History, read_history, state_of, written_ids
from ragforge.files.jsonl import explain
from ragforge.records import Baseline, Evaluation, ItemValues

FOLDER: Final = "history"
"""A file for each evaluation."""
KEPT: Final = 30
"""States of a run whose values are kept."""
_SUFFIX: Final = ".jsonl.gz"


def write_values(dataset_path: Path, baseline: Baseline) -> None:
    """Keep the values per item of an evaluation.

    Raises:
        DataError: They cannot be written.
    """
    lines = "".join(f"{item.model_dump_json()}\n" for item in baseline.items)
    path = values_path(dataset_path, baseline.evaluation.evaluation_id)
    write_whole_bytes(path, [gzip.compress(lines.encode(), compresslevel=6, mtime=0)])


def values_of(dataset_path: Path, evaluation_id: str) -> Baseline | None:
    """Return an evaluation with its values per item; None where it or they are not kept any more.

    Raises:
        DataError: The values are damaged, or are not those of the evaluation.
    """
    history = read_history(dataset_path)
    evaluation = history.find(evaluation_id)
    return None if evaluation is None else values_in(dataset_path, history, evaluation)


def values_in(dataset_path: Path, history: History, evaluation: Evaluation) -> Baseline | None:
    """As `values_of`, for a history that was read already."""
    path = values_path(dataset_path, evaluation.evaluation_id)
    if not path.exists():
        state = state_of(evaluation)
        alike = (
            item for item in reversed(history.of_run(evaluation.run)) if state_of(item) == state
        )
        paths = (values_path(dataset_path, item.evaluation_id) for item in alike)
        found = next((path for path in paths if path.exists()), None)
        if found is None:
            return None
        path = found
    items = _read_values(path)
    _check(path, items, evaluation)
    return Baseline(evaluation=evaluation, items=items)


def drop_old_values(dataset_path: Path, history: History) -> None:
    """Remove values that nothing will be compared with; the lines stay.

    Kept are those of the newest states of each run; of evaluations that found one and the same,
    the newest stands for all.
    """
    for run in history.runs:
        states: set[object] = set()
        for item in reversed(history.of_run(run)):
            state = state_of(item)
            if state in states or len(states) == KEPT:
                with contextlib.suppress(OSError):
                    values_path(dataset_path, item.evaluation_id).unlink(missing_ok=True)
            else:
                states.add(state)


def drop_stray_values(dataset_path: Path) -> None:
    """Remove what evaluations left that were killed before their line was written.

    The caller has the history open for adding, so that no other evaluation is on its way.

    Raises:
        DataError: The history cannot be read.
    """
    folder = dataset_path / FOLDER
    remove_strays(folder)
    named = written_ids(dataset_path)
    for path in folder.glob(f"{'[0-9a-f]' * ID_DIGITS}{_SUFFIX}"):
        if path.name.removesuffix(_SUFFIX) not in named:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def values_path(dataset_path: Path, evaluation_id: str) -> Path:
    """Return where the values per item of an evaluation are, if they are kept."""
    return dataset_path / FOLDER / f"{evaluation_id}{_SUFFIX}"


def _read_values(path: Path) -> tuple[ItemValues, ...]:
    try:
        with gzip.open(path) as stream:
            return tuple(ItemValues.model_validate_json(line) for line in stream)
    except ValidationError as error:
        raise DataError(
            f"{path}: {explain(error)}: it is of another version of ragforge, and nothing can be "
            "compared with it"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: is damaged: {error}") from error


def _check(path: Path, items: Sequence[ItemValues], evaluation: Evaluation) -> None:
    """Check that the values have the means that the evaluation has.

    The means of a sample are of the whole set, by weights that are not kept with the values: they
    only have to lie among these.
    """
    is_sample = evaluation.selection is not None and evaluation.selection.sample is not None
    for name, measured in evaluation.measures.items():
        values = [_value(item.values, name, path) for item in items]
        mean = fsum(values) / len(values) if values else None
        if is_sample and values and measured.mean is not None:
            is_held = min(values) <= measured.mean <= max(values)
        else:
            is_held = mean == measured.mean
        if not is_held:
            raise DataError(
                f"{path}: {name}: expected values with a mean of {measured.mean}, got {mean}"
            )


def _value(values: Mapping[str, float], measure: str, path: Path) -> float:
    if measure not in values:
        raise DataError(f"{path}: an item has no value of {measure}")
    return values[measure]
