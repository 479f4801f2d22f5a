"""Paths that commands may write to beside a dataset: never over what is kept in one."""

from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import Manifest
from ragforge.files.record_files import read_object
from ragforge.files.set.paths import CURRENT, FOLDERS, REJECTED, VERSIONS
from ragforge.records.model import Model, pydantic

R = TypeVar("R", bound=Model)

_MOST_BYTES = 16 * 1024 * 1024
"""What is read of a file that is one object, to see what it holds."""

BASELINE: Final = "--write-baseline"
"""The one flag whose file may be a baseline, in a dataset or elsewhere."""
_BASELINE_INPUTS: Final = ("--baseline", "--baseline-file")
_LINES: Final = (
    "canaries",
    "chunks",
    "documents",
    "events",
    "failures",
    "former_grades",
    "history",
    "judgments",
    "label_checks",
    "plan",
    "pool",
    "queries",
    "real_queries",
    "retrieved",
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
_OWN_FOLDERS: Final = frozenset({*FOLDERS, "calibration", "history", CURRENT, VERSIONS, REJECTED})
_DEEPEST: Final = 3
"""Folders below that of a dataset in which it keeps files."""
_HEADER_BYTES: Final = 4096


def refuse_to_replace(
    out: Path,
    record: type[R],
    *,
    whole: bool = False,
    ours: Callable[[R], bool] = lambda record: True,
) -> None:
    """Check that a file is new, empty, or holds what will be written to it.

    Args:
        out: Where results are to go.
        record: What they consist of.
        whole: Whether the file is one record; else each line is.
        ours: Whether a record is one that ragforge wrote and can make again.

    Raises:
        UsageError: The file holds something else, belongs to a dataset, or is no file.
    """
    if not out.exists():
        return
    if not out.is_file():
        raise UsageError(f"--out {out}: is no file; name another")
    if _is_of_dataset(out.resolve()):
        raise UsageError(f"--out {out}: is a file of a dataset; name another")
    with out.open("rb") as stream:
        for number, found in enumerate([stream.read(_MOST_BYTES)] if whole else stream, start=1):
            is_torn = number > 1 and not found.endswith(b"\n")  # Ours up to there; made whole now.
            if found.strip() and not is_torn and not _is_ours(found, record, ours):
                raise UsageError(
                    f"--out {out}: line {number} is no {record.__name__.lower()} that ragforge "
                    "wrote; name another file"
                )


def _is_ours(found: bytes, record: type[R], ours: Callable[[R], bool]) -> bool:
    try:
        return ours(record.model_validate_json(found))
    except pydantic.ValidationError:
        return False


def _is_of_dataset(path: Path) -> bool:
    """Whether a dataset's manifest, beside the file or one folder up, lists it."""
    for folder in (path.parent, path.parent.parent):
        manifest = folder / "manifest.json"
        if manifest.is_file() and path.relative_to(folder).as_posix() in _listed(manifest):
            return True
    return False


def _listed(manifest: Path) -> Container[str]:
    try:
        return read_object(manifest, Manifest).files
    except DataError:
        return ()  # Somebody else's manifest.


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
    from ragforge.files.set.baseline import FORMAT

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
