"""Opening the dataset of a directory, or making one there; nothing else is written over."""

from collections.abc import Mapping
from pathlib import Path

from ragforge import __version__
from ragforge.errors import DataError, UsageError
from ragforge.files.dataset import Dataset
from ragforge.files.manifest import Manifest


def open_dataset(path: Path) -> Dataset:
    """Return the dataset in a directory.

    Raises:
        DataError: The directory is missing or holds no dataset.
    """
    if not path.is_dir():
        raise DataError(f"{path}: no such directory; `ragforge generate --out DIR` makes a dataset")
    if not (path / "manifest.json").is_file():
        raise DataError(f"{path}: holds no dataset (no manifest.json)")
    return Dataset(path)


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
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be made: {error.strerror or error}") from error
    dataset = Dataset(path)
    if not (path / "manifest.json").exists():
        name = path.resolve().name
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
            "name another --out"
        )
    return dataset


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
