"""Which labels are of the questions as they are worded now."""

from ragforge.deferred import dataclass
from ragforge.files.set.calibrations import CalibrationFiles
from ragforge.files.set.dataset import Dataset
from ragforge.records import Label
from ragforge.records.judgments import wording_digest


@dataclass(frozen=True, slots=True)
class WordedLabels:
    """The labels of a calibration, by whether they are of the questions of now."""

    now: list[Label]
    """Those that count; of labels that do not say it, nothing else is known."""
    former: list[Label]
    """Those of other words. They are kept, and count when their question is worded so again."""


def worded_labels(dataset: Dataset, files: CalibrationFiles) -> WordedLabels:
    """Return the labels of a calibration, sorted.

    Raises:
        DataError: A file does not hold to its format.
    """
    labels = files.labels()
    if not any(label.wording_sha256 for label in labels):
        return WordedLabels(labels, [])
    wordings = {query.query_id: wording_digest(query.asked) for query in dataset.all_queries()}
    found = WordedLabels([], [])
    for label in labels:
        wording = wordings.get(label.query_id, label.wording_sha256)
        of = found.now if label.wording_sha256 in ("", wording) else found.former
        of.append(label)
    return found
