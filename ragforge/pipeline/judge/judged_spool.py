"""What a judging run leaves, kept on disk until it is written where it belongs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ragforge.files.external_sort import ExternalSorter
from ragforge.files.set.dataset import Dataset
from ragforge.pipeline.job import failures_beside
from ragforge.records import Failure, Judgment


class JudgedSpool(AbstractContextManager["JudgedSpool"]):
    """A sink for judgments and failures, of any number.

    Args:
        folder: Where the sorted parts are put.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open()

    def _open(self) -> None:
        self._judgments: ExternalSorter[Judgment] = ExternalSorter(
            lambda item: (item.query_id, item.chunk_id), self._folder
        )
        self._failures: ExternalSorter[Failure] = ExternalSorter(
            lambda item: (item.key,), self._folder
        )

    def __exit__(self, *_: object) -> None:
        self._judgments.__exit__()
        self._failures.__exit__()

    def begin_anew(self) -> None:
        """Drop what was taken."""
        self.__exit__()
        self._open()

    @property
    def has_any(self) -> bool:
        """Whether anything was judged, or failed."""
        return self._judgments.count > 0

    def result(self, result: Judgment) -> None:
        """Take a judgment."""
        self._judgments.add(result)

    def failure(self, failure: Failure) -> None:
        """Take a failure."""
        self._failures.add(failure)

    def judgments(self) -> Iterator[Judgment]:
        """Yield the judgments, sorted."""
        return (Judgment.model_validate_json(line) for line in self._judgments.lines())

    def write(self, out: Path) -> None:
        """Write a file of judgments, and one of failures beside it where there are or were any.

        Raises:
            DataError: One cannot be written.
        """
        self._judgments.write(out)
        beside = failures_beside(out)
        if self._failures.count or beside.exists():
            self._failures.write(beside)

    def add_to(self, dataset: Dataset, *, grades: bool = True) -> None:
        """Write judgments and failures into a dataset; new ones replace old ones of their pairs.

        Args:
            dataset: Where they go.
            grades: Whether judgments are written; else failures only.

        Raises:
            DataError: A file cannot be written.
        """
        if grades:
            dataset.add_judgments(self.judgments())
        self.add_failures_to(dataset)

    def add_failures_to(self, dataset: Dataset) -> None:
        """Write failures into a dataset, in the place of those of all pairs that were tried.

        Raises:
            DataError: The file cannot be written.
        """
        earlier = {old.key for old in dataset.failures() if old.what == "judge"}
        tried = earlier & {f"{one.query_id}/{one.chunk_id}" for one in self.judgments()}
        failed = (Failure.model_validate_json(line) for line in self._failures.lines())
        dataset.replace_failures("judge", failed, tried.__contains__)
