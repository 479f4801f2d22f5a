"""People's labels of answers in `calibration/NAME/`, and which answers were drawn for them."""

from pathlib import Path
from typing import Final

from ragforge.errors import DataError
from ragforge.files.record_files import read_object, read_records, write_object, write_records
from ragforge.files.set.calibrations import CalibrationFiles, calibration_files, the_name
from ragforge.files.set.dataset import Dataset
from ragforge.records import AnswerLabel, AnswerSample

_SAMPLE: Final = "answer_sample.json"


def answer_calibration_names(dataset: Dataset) -> list[str]:
    """Return the names of the calibrations of a dataset that have a sample of answers, sorted."""
    folders = calibration_files(dataset).folder.parent
    return sorted(path.parent.name for path in folders.glob(f"*/{_SAMPLE}"))


def the_answer_calibration(dataset: Dataset, name: str | None = None) -> CalibrationFiles:
    """Return the calibration of a name that has a sample of answers, or the only one.

    Raises:
        DataError: There is none, or no name is given and there are several.
    """
    kind = "sample of answers", "draw one with `ragforge calibrate sample --answers SYSTEM`"
    names = answer_calibration_names(dataset)
    return calibration_files(dataset, the_name(dataset, names, name, kind))


def answer_sample_path(files: CalibrationFiles) -> Path:
    """Return the file of the sample, whether it is there or not."""
    return files.folder / _SAMPLE


def answer_sample(files: CalibrationFiles) -> AnswerSample:
    """Return which answers were drawn.

    Raises:
        DataError: None were, or the file does not hold to the format.
    """
    path = answer_sample_path(files)
    if not path.is_file():
        raise DataError(
            f"{files.folder}: has no sample of answers; draw one with "
            "`ragforge calibrate sample --answers SYSTEM`"
        )
    return read_object(path, AnswerSample)


def write_answer_sample(files: CalibrationFiles, sample: AnswerSample) -> None:
    """Write which answers were drawn."""
    files.folder.mkdir(parents=True, exist_ok=True)
    write_object(answer_sample_path(files), sample)


def answer_labels_path(files: CalibrationFiles) -> Path:
    """Return the file, whether it is there or not."""
    return files.folder / "answer_labels.jsonl"


def answer_labels(files: CalibrationFiles) -> list[AnswerLabel]:
    """Return the labels, sorted; [] where there are none yet.

    Raises:
        DataError: The file does not hold to the format, or a label comes twice.
    """
    path = answer_labels_path(files)
    return list(read_records(path, AnswerLabel, key=answer_label_key)) if path.is_file() else []


def write_answer_labels(files: CalibrationFiles, labels: list[AnswerLabel]) -> None:
    """Write all labels; whoever adds some reads and writes `alone`."""
    write_records(answer_labels_path(files), labels, answer_label_key)


def answer_label_key(label: AnswerLabel) -> tuple[str, ...]:
    """Return what labels are sorted by, and what no two have alike."""
    return label.query_id, label.system, label.labeller
