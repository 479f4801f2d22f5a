"""A mirror of an origin: its files in a folder, and a listing that says which state they have.

    FOLDER/listing.jsonl   path, fingerprint, and why the file is no document
    FOLDER/files/          the files
    FOLDER/incoming/       what is being fetched; only when all is there it is moved to the files

The listing names no file while it is being replaced, so that a kill at any moment leaves nothing
that the next run takes for what it is not. What had been fetched is not fetched again.
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ragforge.corpus.origins.origin import Origin
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import write_whole

Passed = Callable[[str, str], None]
"""Called with the path of a file and why it is passed over."""

_Listing = dict[str, tuple[str, str]]


def mirrored(origin: Origin, folder: Path, passed: Passed) -> Path:
    """Make the mirror in a folder equal to an origin, and return the folder of the files.

    Args:
        origin: Its paths are fit for a file system, and none is the folder of another.
        folder: Of the mirror; made if need be.
        passed: Told of files that are no documents after all.

    Raises:
        DataError: A file cannot be fetched, and nothing was changed; or one cannot be written.
    """
    files, incoming = folder / "files", folder / "incoming"
    try:
        files.mkdir(parents=True, exist_ok=True)
        known, here = _read(folder), set(_walk(files))
        same = {path: known[path] for path in origin.files if _is_same(path, origin, known, here)}
        changed = [path for path in sorted(origin.files) if path not in same]
        notes = _fetch_all(origin, changed, incoming)
        now = same | {path: (origin.files[path], notes[path]) for path in changed}
        gone = sorted(here - {path for path, (_, note) in now.items() if not note})
        if changed or gone or now != known:
            _write(folder, same)
            _remove(files, gone)
            _move(incoming, files, [path for path in changed if not notes[path]], origin)
            _write(folder, now)
        shutil.rmtree(incoming, ignore_errors=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror or error}") from error
    for path, (_, note) in sorted(now.items()):
        if note:
            passed(path, note)
    return files


@contextlib.contextmanager
def held(folder: Path, shown: str) -> Iterator[None]:
    """Keep other processes from changing a mirror as long as it is read.

    Raises:
        UsageError: One is doing so.
        DataError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _drop_links(folder)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error.strerror or error}") from error
    try:
        with contextlib.suppress(ImportError):  # Without such locks, nothing is kept out.
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise UsageError(
            f"{shown}: another command is reading it into {folder}; wait for its end"
        ) from error
    finally:
        os.close(descriptor)


def _drop_links(folder: Path) -> None:
    """Remove what no mirror has: links and pipes came with the folder, and may lead anywhere."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            kind = os.lstat(os.path.join(place, name)).st_mode  # noqa: PTH118  # many files
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                Path(place, name).unlink()


def _is_same(path: str, origin: Origin, known: _Listing, here: set[str]) -> bool:
    fingerprint, note = known.get(path, ("", ""))
    return fingerprint != "" and fingerprint == origin.files[path] and (path in here or note != "")


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, relative and posix."""
    for place, _, names in os.walk(folder):
        relative = Path(place).relative_to(folder).as_posix()
        yield from (name if relative == "." else f"{relative}/{name}" for name in names)


def _fetch_all(origin: Origin, paths: Iterable[str], incoming: Path) -> dict[str, str]:
    """Fetch files, some at once, and return why each is no document, "" where it is one."""
    incoming.mkdir(exist_ok=True)

    def fetch(path: str) -> str:
        target = incoming / _name(path, origin)
        if target.is_file() and origin.files[path]:
            return ""
        part = target.with_suffix(".part")
        note = origin.fetch(path, part)
        if note:
            part.unlink(missing_ok=True)
            return note
        with part.open("rb") as stream:
            os.fsync(stream.fileno())
        part.replace(target)
        return ""

    paths = list(paths)
    if origin.at_once == 1:
        return {path: fetch(path) for path in paths}
    pool = ThreadPoolExecutor(origin.at_once, "fetch")
    try:
        return dict(zip(paths, pool.map(fetch, paths), strict=True))
    finally:
        # After a fault, what has not begun is not begun.
        pool.shutdown(cancel_futures=True)


def _name(path: str, origin: Origin) -> str:
    return hashlib.sha256(f"{path}\0{origin.files[path]}".encode()).hexdigest()


def _remove(files: Path, gone: Iterable[str]) -> None:
    for path in gone:
        file = files / path
        file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # The first folder that still holds something.
            for folder in file.relative_to(files).parents:
                if folder.name:
                    (files / folder).rmdir()


def _move(incoming: Path, files: Path, paths: Iterable[str], origin: Origin) -> None:
    for path in paths:
        target = files / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():  # Its files are removed; a kill kept the folders from it.
            shutil.rmtree(target)
        (incoming / _name(path, origin)).replace(target)


def _read(folder: Path) -> _Listing:
    """Return the listing; a damaged one is none, and everything is fetched again."""
    try:
        lines = (folder / "listing.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return {str(path): (str(fingerprint), str(note)) for path, fingerprint, note in rows}
    except (OSError, ValueError, TypeError):
        return {}


def _write(folder: Path, listing: Mapping[str, tuple[str, str]]) -> None:
    rows = ((path, *listing[path]) for path in sorted(listing))
    lines = (json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
    write_whole(folder / "listing.jsonl", lines)
