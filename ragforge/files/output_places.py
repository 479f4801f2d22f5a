"""Where commands may write what people ask for beside a dataset: never over what is kept in one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ragforge.errors import DataError, UsageError
from ragforge.files.baseline import FORMAT
from ragforge.files.manifest import Manifest
from ragforge.files.objects import read_object
from ragforge.files.version_links import FOLDERS
from ragforge.files.version_places import CURRENT, REJECTED, VERSIONS

BASELINE: Final = "--write-baseline"
"""The one flag whose file may be a baseline, in a dataset or elsewhere."""
_BASELINE_INPUTS: Final = ("--baseline", "--baseline-file")
_LINES: Final = (
    "chunks",
    "documents",
    "events",
    "failures",
    "history",
    "judgments",
    "label_checks",
    "plan",
    "pool",
    "queries",
    "real_queries",
    "rejected",
    "revisions",
)
_OWN_FILES: Final = frozenset(
    {
        "manifest.json",
        "diff.json",
        "generation.json",
        "judge_audit.json",
        ".ragforge/calls.sqlite",
        *(f"{name}.jsonl" for name in _LINES),
    }
)
"""Those of any dataset, whether its manifest lists them or not."""
_OWN_FOLDERS: Final = frozenset({*FOLDERS, "history", CURRENT, VERSIONS, REJECTED})
_DEEPEST: Final = 3
"""Folders below that of a dataset in which it keeps files."""
_HEADER_BYTES: Final = 4096


def check_outputs(
    outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None] | None = None
) -> None:
    """Check that outputs cost no file that is kept, is read, or is another output.

    Args:
        outputs: What is to be written, by flag; None where the flag was not given.
        inputs: What is read, by flag, likewise. A baseline may be read and then replaced.

    Raises:
        UsageError: One is a folder, belongs to a dataset, is a baseline but not to be one, is
            read, or comes twice.
    """
    read = list(_given(inputs or {}))
    written: list[tuple[str, Path]] = []
    for flag, path in _given(outputs):
        where = f"{flag} {path}"
        if path.is_dir():
            raise UsageError(f"{where}: is a folder; name a file")
        _check_kept(path, where, may_be_baseline=flag == BASELINE)
        for other, place in [*written, *read]:
            replaces = flag == BASELINE and other in _BASELINE_INPUTS
            if _is_same(path, place) and not replaces:
                raise UsageError(f"{where}: is the file of {other} too; name another")
        written.append((flag, path))


def _given(named: Mapping[str, Path | None]) -> Iterator[tuple[str, Path]]:
    return ((flag, path) for flag, path in named.items() if path is not None)


def _check_kept(path: Path, where: str, *, may_be_baseline: bool) -> None:
    folder = _dataset_that_keeps(path.resolve())
    if folder is not None:
        raise UsageError(f"{where}: is a file of the dataset {folder}; name another")
    if not may_be_baseline and _is_baseline(path):
        raise UsageError(f"{where}: is a baseline, which {BASELINE} alone replaces; name another")


def _dataset_that_keeps(path: Path) -> Path | None:
    for folder in path.parents[:_DEEPEST]:
        manifest = folder / "manifest.json"
        if manifest.is_file() and _keeps(manifest, path.relative_to(folder)):
            return folder
    return None


def _keeps(manifest: Path, name: Path) -> bool:
    try:
        files = read_object(manifest, Manifest).files
    except DataError:
        return False  # Somebody else's manifest.
    path = name.as_posix()
    return path in files or path in _OWN_FILES or name.parts[0] in _OWN_FOLDERS


def _is_baseline(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            return f'"format": "{FORMAT}"'.encode() in stream.read(_HEADER_BYTES)
    except OSError:
        return False  # Writing tells why.


def _is_same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()
