"""People's labels of answers: `calibration/NAME/answer_labels.jsonl`."""

from pathlib import Path

from ragforge.files.record_files import read_records, write_records
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.records import AnswerLabel


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
