"""Opening the dataset of a directory, or making one there; nothing else is written over."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ragforge import __version__
from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import Manifest
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import (
    CURRENT,
    MANIFEST,
    VERSIONS,
    files_of,
    home_of,
    published,
    require_current,
    versions_of,
)
from ragforge.files.text import as_unicode

_OTHER_CHUNKS: Final = (
    ", or put these chunks under it with `ragforge generate --rederive`, which takes its queries, "
    "grades and runs along"
)


def open_dataset(path: Path) -> Dataset:
    """Return the dataset in a directory: the version that is published, or one that is named.

    Raises:
        DataError: The directory is missing or holds no dataset, or leads to another one.
    """
    require_current(path.parent if path.name == CURRENT else path)
    dataset = Dataset(path)
    if path.is_dir() and (dataset.files / MANIFEST).is_file():
        return dataset
    home = path.parent if path.name == CURRENT else home_of(path)
    if there := ", ".join(map(str, versions_of(home))):
        if home_of(path) != path and path.parent.name == VERSIONS:
            raise DataError(f"{home}: has no version {path.name}; there are: {there}")
        raise DataError(
            f"{home / CURRENT}: expected a link to a version, found none that leads to one; there "
            f"are: {there}; `ragforge refresh --dataset {home} --rollback N` publishes one of them"
        )
    if not path.is_dir():
        raise DataError(
            f"{path}: no such directory; `ragforge generate --out DIR` makes a dataset, "
            "`ragforge import FILE --out DIR` one of your questions"
        )
    raise DataError(f"{path}: holds no dataset (no manifest.json)")


@contextmanager
def alone_with(path: Path) -> Iterator[Dataset]:
    """Open the published version of a dataset, and keep others from writing into it until the end.

    Who reads, changes and writes within this loses nothing to a refresh: where a version was
    published while one waited, it is the one that is opened; and publishing waits for the end.

    Raises:
        DataError: As for `open_dataset`; or the directory is one version of a dataset, which stays
            as it is.
    """
    if home_of(path) != path:
        raise DataError(f"{path}: is a version, which stays as it is; name {home_of(path)} instead")
    while True:
        dataset = open_dataset(path)
        with dataset.alone():
            if dataset.files == files_of(path):
                yield dataset
                return


def create_dataset(path: Path, made_from: Mapping[str, str]) -> Dataset:
    """Make a dataset, or open the one that the same inputs and settings made before.

    Args:
        path: The directory: absent, empty, or a dataset.
        made_from: What decides which queries come out; goes into the manifest.

    Raises:
        UsageError: The directory holds other files, or a dataset made from something else.
        DataError: The directory cannot be made or read.
    """
    refuse_other_files(path)
    require_current(path)
    if _is_refreshed(path):
        return _refreshed(path, made_from)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be made: {error.strerror or error}") from error
    dataset = Dataset(path)
    if not (path / "manifest.json").exists():
        name = as_unicode(path.resolve().name)
        dataset.write_manifest(
            Manifest(name=name, made_from=dict(made_from), tool_version=__version__)
        )
        return dataset
    old = dataset.manifest.made_from
    if set(made_from) == {"chunks"} and old.get("chunks") == made_from["chunks"]:
        return dataset
    if set(old) == {"chunks"} and old["chunks"] == made_from.get("chunks"):
        # It was imported; what is generated now stands beside that.
        new = dataset.manifest.model_copy(update={"made_from": dict(made_from)})
        dataset.write_manifest(new)
        return dataset
    differs = sorted(key for key in {*old, *made_from} if old.get(key) != made_from.get(key))
    if differs:
        raise UsageError(
            f"{path}: holds another dataset (made from other {', '.join(differs)}); "
            f"name another --out{_OTHER_CHUNKS if 'chunks' in differs else ''}"
        )
    return dataset


def _is_refreshed(path: Path) -> bool:
    """Whether a directory holds a dataset with versions, or is one of them."""
    return published(path) is not None or home_of(path) != path


def refuse_refreshed(path: Path) -> None:
    """Check that queries can be generated into a directory.

    Raises:
        UsageError: It holds a dataset that was refreshed, which grows otherwise.
    """
    if _is_refreshed(path):
        raise UsageError(
            f"{path}: holds a set that was refreshed; `ragforge refresh --dataset {home_of(path)} "
            "--at-least N` adds queries to it, and another --out makes a new set"
        )


def refuse_other_files(path: Path) -> None:
    """Check that a directory is absent, empty, or a dataset.

    Raises:
        UsageError: It holds something else.
        DataError: It is no directory, or cannot be read.
    """
    try:
        holds = {entry.name for entry in path.iterdir()} if path.exists() else set()
    except OSError as error:
        raise DataError(f"{path}: cannot be used: {error.strerror or error}") from error
    if holds - {".ragforge"} and "manifest.json" not in holds:
        raise UsageError(
            f"{path}: is not empty and holds no dataset; name an empty or a new directory"
        )


def _refreshed(path: Path, made_from: Mapping[str, str]) -> Dataset:
    """Return a dataset that was refreshed, for adding what was made with its chunks of now."""
    dataset = open_dataset(path)
    entry = dataset.manifest.files.get("chunks.jsonl")
    if set(made_from) != {"chunks"}:
        refuse_refreshed(path)
    if entry is None or made_from.get("chunks") != entry.sha256:
        raise UsageError(
            f"{path}: holds a set that was refreshed, with other chunks than these; add to it with "
            f"--dataset {path}, or name another --out"
        )
    return dataset
