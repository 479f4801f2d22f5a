"""The files of a version: which they are, and whether they are those that its manifest lists."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

from ragforge.deferred import shutil
from ragforge.errors import DataError
from ragforge.files.manifest import FileEntry, Manifest, digest_file
from ragforge.files.record_files import read_object
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import (
    FOLDERS,
    MANIFEST,
    VERSIONS,
    is_flat,
    version_name,
    versions_of,
)

_KNOWN: Final = (
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
    "retrieved.jsonl",
    "rejected.jsonl",
)
"""Files that may be a dataset's without being in its manifest; others that are not in it are
somebody's own."""

_READ: Final = (
    "documents.jsonl",
    "dormant_grades.jsonl",
    "events.jsonl",
    "judgments.jsonl",
    "moved_chunks.jsonl",
    "pool.jsonl",
    "queries.jsonl",
    "revisions.jsonl",
)
"""What the next version starts from. The chunks are not among them: those that somebody changed are
compared with the documents one by one."""
_CHUNKS: Final = "chunks.jsonl"
_NEEDED: Final = (_CHUNKS, "queries.jsonl")
"""No set can be refreshed without them."""


def version_files(folder: Path) -> list[str]:
    """Return the names of the files that make up a dataset, the manifest not among them, sorted.

    Raises:
        DataError: The manifest cannot be read, or names files that lie elsewhere.
    """
    listed = read_object(folder / MANIFEST, Manifest).files
    inside = {name for top in FOLDERS for name in _in_folder(folder, top)}
    return sorted(name for name in {*listed, *_KNOWN, *inside} if (folder / name).is_file())


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
            sha256=digest_file(path), records=_count_records(path)
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


def _count_records(path: Path) -> int:
    """Return how many records a file has; one that is not of lines is one."""
    if path.suffix != ".jsonl":
        return 1
    with path.open("rb") as stream:
        return sum(bool(line.strip()) for line in stream)


def require_whole(dataset: Dataset) -> None:
    """Check that the next version starts from what ragforge wrote, and from all of it.

    Runs and answers may be missing: they stay with the version that they were made on.

    Raises:
        DataError: A file that the manifest lists is missing, or was changed.
    """
    listed = dataset.manifest.files
    for name, entry in listed.items():
        path = dataset.files / name
        if not path.is_file():
            if _is_of_this_version(name):
                raise DataError(
                    f"{path}: is missing, though {MANIFEST} lists it with {entry.records} records; "
                    f"put it back{_ways_out(dataset, name, can_accept=name not in _NEEDED)}"
                )
        elif name in _READ and digest_file(path) != entry.sha256:
            raise DataError(
                f"{path}: was changed since ragforge wrote it: it has {_count_records(path)} "
                f"records, {MANIFEST} lists {entry.records}; put back what was there"
                f"{_ways_out(dataset, name, can_accept=True)}"
            )


def require_own_chunks(dataset: Dataset) -> None:
    """Check that the chunks are those that ragforge last wrote, before they are measured or judged.

    A set without chunks, or whose manifest does not list them, passes.

    Raises:
        DataError: Somebody changed them: what was graded and retrieved may be other texts.
    """
    entry, digest = dataset.manifest.files.get(_CHUNKS), chunks_digest(dataset)
    if entry is not None and digest and digest != entry.sha256:
        raise DataError(
            f"{dataset.chunks_path}: was changed since ragforge wrote it, so that grades and runs "
            f"may be of other texts; put back what was there"
            f"{_ways_out(dataset, _CHUNKS, can_accept=True)}"
        )


def chunks_digest(dataset: Dataset) -> str:
    """Return the sha256 of the file of chunks; "" where there are none.

    A file that stays as it is gets read once in a process: 125 MB take 0.1 s.
    """
    path = dataset.chunks_path
    if not path.is_file():
        return ""
    stat = path.stat()
    if not stat.st_size:
        return ""
    return _digest(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))


def corpus_digest(dataset: Dataset) -> str:
    """Return what the chunks are; "" where there are none."""
    path = dataset.chunks_path
    return (chunks_digest(dataset) or digest_file(path)) if path.exists() else ""


@lru_cache(maxsize=16)
def _digest(path: Path, stamp: tuple[int, ...]) -> str:
    """Return the digest of a file in a state that its stamp tells from others."""
    return digest_file(path)


def missing_files(dataset: Dataset) -> list[str]:
    """Return the names of the files that the manifest lists and that are not there."""
    return [name for name in dataset.manifest.files if not (dataset.files / name).is_file()]


def accept_changes(dataset: Dataset) -> list[str]:
    """Take what somebody changed for the set's own, and forget files that are gone.

    Returns:
        The names of these files; what no set can do without stays missing.
    """
    old, files, accepted = dataset.manifest, {}, []
    for name, entry in old.files.items():
        path = dataset.files / name
        if path.is_file():
            digest = digest_file(path)
            if digest != entry.sha256:
                accepted.append(name)
                entry = _entry(old, path, digest)
        elif name not in _NEEDED:
            accepted.append(name)
            continue
        files[name] = entry
    files |= _renamed_runs(dataset, old)
    made_from = dict(old.made_from)
    if "queries.jsonl" in accepted and "model" in made_from and is_flat(dataset.home):
        # Else `generate` would take the file for its own and write over the edit.
        made_from["edited queries"] = files["queries.jsonl"].sha256
    if accepted:
        dataset.write_manifest(old.model_copy(update={"files": files, "made_from": made_from}))
    return accepted


def _entry(manifest: Manifest, path: Path, digest: str) -> FileEntry:
    """Return the manifest's entry for a file; a copy of a run has the origin of that run."""
    origins = manifest.origins_of(digest)
    run = origins[0] if origins else None
    selection = manifest.selection_of(digest)
    return FileEntry(sha256=digest, records=_count_records(path), run=run, selection=selection)


def _renamed_runs(dataset: Dataset, manifest: Manifest) -> dict[str, FileEntry]:
    """Return runs that are listed by another name only, which may be about to be forgotten."""
    paths = {f"runs/{name}.jsonl": dataset.run_path(name) for name in dataset.run_names()}
    entries = {
        name: _entry(manifest, path, digest_file(path))
        for name, path in paths.items()
        if name not in manifest.files
    }
    return {name: entry for name, entry in entries.items() if entry.run is not None}


def _is_of_this_version(name: str) -> bool:
    return PurePosixPath(name).parts[0] not in FOLDERS


def _ways_out(dataset: Dataset, name: str, *, can_accept: bool) -> str:
    home = dataset.home
    whole = ", ".join(str(number) for number in versions_of(home) if _has(home, number, name))
    ways = []
    if whole:
        ways.append(
            f"`ragforge refresh --dataset {home} --rollback N` publishes one of these "
            f"versions, where it is whole: {whole}"
        )
    if can_accept:
        ways.append(f"`ragforge validate --dataset {dataset.path} --accept` takes it as it is")
    return "".join(f", or {way}" for way in ways)


def _has(home: Path, number: int, name: str) -> bool:
    """Whether a version has a file as ragforge wrote it."""
    folder = home / VERSIONS / version_name(number)
    try:
        entry = Dataset(folder).manifest.files.get(name)
        return entry is not None and digest_file(folder / name) == entry.sha256
    except (DataError, OSError):
        return False
