"""Calibrations of a dataset: `calibration/NAME/`, with the sample and the labels of people.

They belong to no version of the set: labels outlive the chunks that they are on, which is counted.
Nothing of them is in the manifest.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from ragforge.deferred import dataclass
from ragforge.errors import DataError, did_you_mean
from ragforge.files.atomic import alone_in
from ragforge.files.record_files import read_object, read_records, write_object, write_records
from ragforge.files.set.dataset import Dataset
from ragforge.files.text import checked_name
from ragforge.records.calibrations import Calibration, Label, LabelSample

USUAL_NAME: Final = "people"
"""Of a calibration that nobody named."""
_FOLDER: Final = "calibration"
_SAMPLE: Final = "sample.json"
_LABELS: Final = "labels.jsonl"
_FOUND: Final = "calibration.json"


@dataclass(frozen=True, slots=True)
class CalibrationFiles:
    """The files of one calibration."""

    name: str
    folder: Path

    def alone(self) -> AbstractContextManager[None]:
        """Wait for others that write labels or samples, and keep them out until the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return alone_in(self.folder)

    @property
    def exists(self) -> bool:
        """Whether a sample was drawn."""
        return (self.folder / _SAMPLE).is_file()

    def sample(self) -> LabelSample:
        """Return which pairs are to be labelled.

        Raises:
            DataError: None was drawn, or the file does not hold to the format.
        """
        if not self.exists:
            raise DataError(
                f"{self.folder}: has no sample; draw one with `ragforge calibrate sample`"
            )
        return read_object(self.folder / _SAMPLE, LabelSample)

    def write_sample(self, sample: LabelSample) -> None:
        """Write which pairs are to be labelled."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_object(self.folder / _SAMPLE, sample)

    def calibration(self) -> Calibration | None:
        """Return what was found when the labels were last applied; None where they never were.

        Raises:
            DataError: The file does not hold to the format.
        """
        path = self.folder / _FOUND
        return read_object(path, Calibration) if path.is_file() else None

    def write_calibration(self, found: Calibration) -> None:
        """Write what the labels say."""
        write_object(self.folder / _FOUND, found)

    def labels(self) -> list[Label]:
        """Return the labels, sorted; [] where there are none yet.

        Raises:
            DataError: The file does not hold to the format, or a label comes twice.
        """
        path = self.folder / _LABELS
        return list(read_records(path, Label, key=label_key)) if path.is_file() else []

    def write_labels(self, labels: Iterable[Label]) -> None:
        """Write all labels; whoever adds some reads and writes `alone`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_records(self.folder / _LABELS, labels, label_key)

    def add_labels(self, new: Iterable[Label]) -> None:
        """Write labels beside those that are there; the same look of the same labeller is replaced.

        Raises:
            DataError: The file does not hold to the format.
        """
        with self.alone():
            kept = {label_key(label): label for label in self.labels()}
            self.write_labels({**kept, **{label_key(label): label for label in new}}.values())


def label_key(label: Label) -> tuple[str, ...]:
    """Return what labels are sorted by, and what no two have alike."""
    of = label.query_id, label.chunk_id, label.labeller, f"{label.look:04}"
    return *of, label.text_sha256, label.wording_sha256


def calibration_files(dataset: Dataset, name: str = USUAL_NAME) -> CalibrationFiles:
    """Return the files of a calibration of a dataset, whether they are there or not.

    Raises:
        UsageError: The name is not fit for a file.
    """
    return CalibrationFiles(name, dataset.home / _FOLDER / checked_name(name))


def calibration_names(dataset: Dataset) -> list[str]:
    """Return the names of the calibrations of a dataset that have a sample, sorted."""
    return sorted(path.parent.name for path in (dataset.home / _FOLDER).glob(f"*/{_SAMPLE}"))


def the_calibration(dataset: Dataset, name: str | None = None) -> CalibrationFiles:
    """Return the files of the calibration of a name, or of the only one.

    Raises:
        DataError: There is none, or no name is given and there are several.
    """
    kind = "calibration", "draw one with `ragforge calibrate sample`"
    return calibration_files(dataset, the_name(dataset, calibration_names(dataset), name, kind))


def the_name(
    dataset: Dataset, names: Sequence[str], name: str | None, kind: tuple[str, str]
) -> str:
    """Return the name that is asked for, or the only one.

    Args:
        dataset: For messages.
        names: Those that there are.
        name: Asked for; None for the only one.
        kind: What is named, and how one is made.

    Raises:
        DataError: There is none, or no name is given and there are several.
    """
    what, how = kind
    there = ", ".join(names)
    if not names:
        raise DataError(f"{dataset.path}: has no {what}; {how}")
    if name is not None and name not in names:
        near = did_you_mean(name, names)
        raise DataError(f"{dataset.path}: no {what} {name!r}{near}; there are: {there}")
    if name is None and len(names) > 1:
        raise DataError(f"{dataset.path}: has more than one {what}: {there}; name one")
    return name or names[0]
