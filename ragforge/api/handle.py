"""A set that is worked with: where it is, and what all of its calls are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.query_selection import Wanted, choose


@dataclass(frozen=True, slots=True)
class Handle:
    """Where a set is.

    Args:
        path: Its directory.
        keywords: Keywords that hold for all calls that take them.
        wanted: The part of the queries that is worked with; None for all.
    """

    path: Path
    keywords: Mapping[str, object] = field(default_factory=dict, repr=False)
    wanted: Wanted | None = None


def dataset_of(handle: Handle) -> Dataset:
    """Return the files of a set: those of the version that is published now.

    Raises:
        DataError: The directory is missing or holds no dataset.
    """
    return open_dataset(handle.path)


def part_of(handle: Handle) -> Dataset:
    """Return the files of a set with the part of its queries chosen that is worked with.

    Raises:
        DataError: As `dataset_of`; or there are no queries.
        UsageError: There is no such part.
    """
    dataset = dataset_of(handle)
    if handle.wanted is None:
        return dataset
    return dataset.choosing(choose(dataset.require_accepted_queries(), handle.wanted))
