"""The files of a version: which they are, and bringing them into another folder."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ragforge.files.dataset import Dataset
from ragforge.files.manifest import FileEntry, Manifest, digest_file
from ragforge.files.objects import read_object
from ragforge.files.version_places import FOLDERS, MANIFEST

KNOWN: Final = (
    "chunks.jsonl",
    "failures.jsonl",
    "generation.json",
    "judge_audit.json",
    "judgments.jsonl",
    "label_checks.jsonl",
    "plan.jsonl",
    "pool.jsonl",
    "queries.jsonl",
    "real_queries.jsonl",
    "rejected.jsonl",
)
"""Files that may be a dataset's without being in its manifest; others that are not in it are
somebody's own."""


def version_files(folder: Path) -> list[str]:
    """Return the names of the files that make up a dataset, the manifest not among them, sorted.

    Raises:
        DataError: The manifest cannot be read, or names files that lie elsewhere.
    """
    listed = read_object(folder / MANIFEST, Manifest).files
    inside = {name for top in FOLDERS for name in _in_folder(folder, top)}
    return sorted(name for name in {*listed, *KNOWN, *inside} if (folder / name).is_file())


def bring(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where that cannot be.

    Raises:
        OSError: Neither can be done.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    source = source.resolve()
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def list_files(staged: Dataset, **changed: object) -> None:
    """Make the manifest list the files that are there, and no others.

    Args:
        staged: Its strays of writing are removed.
        changed: Other fields of the manifest to set.
    """
    manifest, files = staged.manifest, {}
    for name in _all_files(staged.files):
        path = staged.files / name
        files[name] = manifest.files.get(name) or FileEntry(
            sha256=digest_file(path), records=count_records(path)
        )
    new = manifest.model_copy(update={**changed, "files": files})
    if new != manifest:
        staged.write_manifest(new)


def _all_files(folder: Path) -> list[str]:
    for stray in folder.rglob(".*.tmp"):
        stray.unlink()
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in paths if name != MANIFEST)


def _in_folder(folder: Path, top: str) -> Iterator[str]:
    for path in (folder / top).rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            yield path.relative_to(folder).as_posix()


def count_records(path: Path) -> int:
    """Return how many records a file has; one that is not of lines is one."""
    if path.suffix != ".jsonl":
        return 1
    with path.open("rb") as stream:
        return sum(bool(line.strip()) for line in stream)
