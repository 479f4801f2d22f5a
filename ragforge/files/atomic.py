"""Whole files, folders and links: a reader finds the old one or the new one, never a part.

Who reads a file, changes it and writes it is `alone_in` its folder meanwhile.
"""

import contextlib
import errno
import glob
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from ragforge.deferred import hashlib, shutil, socket, tempfile
from ragforge.errors import DataError

_BLOCK = 1024 * 1024
_MOST_NAME_BYTES = 150
"""Of a file name that its temporary name repeats; file systems take 255 bytes, and the name of the
machine stands beside it."""

OWN_FOLDER: Final = ".ragforge"
MIRRORS: Final = "sources"
"""The folder in it of copies of documents from elsewhere, a folder for each origin."""
_GITIGNORE: Final = (
    "# Made by ragforge: what is bought and what can be made again is not for git.\n*\n"
)
MAKING: Final = ".making"
"""What ends the names of folders and links that are not ready yet."""
_AT_FDCWD: Final = -100
_EXCHANGE: Final = 2
_MINE: Final = threading.local()
"""In which folders this thread is alone already."""


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write the parts to a temporary name beside `path`, sync it to disk, and rename it.

    Links are written through; into pipes and devices the parts go directly.

    Args:
        path: The file; missing folders above it are made.
        parts: Pieces of text, written as UTF-8 and without changing line ends.

    Raises:
        DataError: The file cannot be written (no space, no permission); the old one is untouched.
    """
    write_whole_bytes(path, (part.encode() for part in parts))


def write_whole_bytes(path: Path, parts: Iterable[bytes]) -> None:
    """Write bytes as `write_whole` writes text.

    Raises:
        DataError: As for `write_whole`.
    """
    temporary = ""
    try:
        if path.exists() and not path.is_file():
            _write_directly(path, parts)
            return
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        name = _short(path.name)
        remove_strays(path.parent, glob.escape(name))
        descriptor, temporary = tempfile.mkstemp(
            prefix=f".{name}.{writer_id()}-", suffix=".tmp", dir=path.parent
        )
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines(parts)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~umask())
        Path(temporary).replace(path)
    except OSError as error:
        _unlink(temporary)
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        _unlink(temporary)
        raise


def move_whole(source: Path, path: Path) -> None:
    """Give a file another name, in one step; from another disk it is copied first.

    Raises:
        DataError: As for `write_whole`.
    """
    try:
        source.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
        with source.open("rb") as stream:
            write_whole_bytes(path, iter(lambda: stream.read(_BLOCK), b""))
        source.unlink()


def _write_directly(path: Path, parts: Iterable[bytes]) -> None:
    with path.open("wb") as stream:
        stream.writelines(parts)


def writer_id() -> str:
    """Return the host and id of this process, which no other writer has: `HOST-PID`."""
    return f"{re.sub('[^A-Za-z0-9]', '_', socket.gethostname())}-{os.getpid()}"


def _short(name: str) -> str:
    """Return a name that leaves room for what a temporary name has beside it."""
    packed = os.fsencode(name)
    if len(packed) <= _MOST_NAME_BYTES:
        return name
    return hashlib.sha256(packed).hexdigest()[:32]


def remove_strays(folder: Path, name: str = "*") -> None:
    """Remove what processes of this machine left in a folder when they were killed while writing.

    Args:
        folder: Need not be there.
        name: Of the files that they wrote, as a pattern.
    """
    host = writer_id().rpartition("-")[0]
    for stray in folder.glob(f".{name}.{host}-*.tmp"):
        pid = stray.name.rpartition(f".{host}-")[2].partition("-")[0]
        if pid.isdigit() and not _is_running(int(pid)):
            _unlink(str(stray))


def _is_running(pid: int) -> bool:
    """Whether a process of this machine is running."""
    if os.name == "nt":
        return True  # There, asking with signal 0 would end the process.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _unlink(temporary: str) -> None:
    if temporary:
        with contextlib.suppress(OSError):
            Path(temporary).unlink(missing_ok=True)


def umask() -> int:
    """Return which permissions new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def make_own_place(folder: Path) -> None:
    """Make a folder and those above it; one called `.ragforge` is ignored by git from then on.

    One that is there stays as it is, so that whoever wants it in git takes its `.gitignore` away.

    Raises:
        OSError: It cannot be made.
    """
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == OWN_FOLDER:
        (folder / ".gitignore").write_text(_GITIGNORE, encoding="utf-8")


def make_folder(path: Path) -> None:
    """Make a folder and those above it, where they are missing.

    Raises:
        DataError: It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be made: {error.strerror or error}") from error


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder under a temporary name; at the end its files are synced and it is renamed.

    Where another process was faster, its folder stays and this one is dropped. What processes of
    this machine left when they were killed is removed.

    Args:
        path: The name at the end; missing folders above it are made.

    Raises:
        DataError: It cannot be written.
    """
    with folder_in_making(path.parent, path) as temporary:
        yield temporary
        keep_folder(temporary, path)


@contextlib.contextmanager
def folder_in_making(place: Path, path: Path) -> Iterator[Path]:
    """Give a folder under a temporary name; at the end it is removed, unless it was kept.

    What processes of this machine left when they were killed is removed.

    Args:
        place: The folder that it is in; it and those above it are made where they are missing.
        path: What messages call it.

    Raises:
        DataError: It cannot be written.
    """
    temporary = Path()
    try:
        make_own_place(place)
        _remove_stray_folders(place)
        temporary = Path(tempfile.mkdtemp(MAKING, f".{writer_id()}-", place))
        yield temporary
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        if temporary.name:
            shutil.rmtree(temporary, ignore_errors=True)


def keep_folder(temporary: Path, path: Path) -> None:
    """Sync the files of a folder, and give it its name; one that is there stays as it is.

    Raises:
        DataError: It cannot be written.
    """
    try:
        for file in temporary.rglob("*"):
            if file.is_file():
                # Windows syncs only what is open for writing.
                with file.open("rb+") as stream:
                    os.fsync(stream.fileno())
        temporary.chmod(0o777 & ~umask())
        _rename(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error


def remove_whole(path: Path) -> None:
    """Remove a folder, or leave it as it was: a kill half-way leaves no part under its name."""
    removed = path.with_name(f".{writer_id()}-{path.name}{MAKING}")
    with contextlib.suppress(OSError):
        path.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)


def _rename(temporary: Path, path: Path) -> None:
    try:
        temporary.rename(path)
    except OSError:
        if not path.is_dir():
            raise


def _remove_stray_folders(place: Path) -> None:
    host = writer_id().rpartition("-")[0]
    for stray in place.glob(f".{host}-*{MAKING}"):
        pid = stray.name.removeprefix(f".{host}-").partition("-")[0]
        if pid.isdigit() and not _is_running(int(pid)):
            shutil.rmtree(stray, ignore_errors=True)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread is alone in a folder, and be so until the end.

    A thread that is alone in it already stays so. The lock is one on the folder itself, and ends
    with the process that has it. Where the folder is missing, or the system has no such locks, two
    may be in it at the same moment.
    """
    place = os.path.realpath(folder)
    mine: set[str] = _MINE.__dict__.setdefault("folders", set())
    if place in mine:
        yield
        return
    descriptor = None
    with contextlib.suppress(OSError):
        descriptor = os.open(place, os.O_RDONLY)
    try:
        if descriptor is not None:
            wait_for_lock(descriptor)
        mine.add(place)
        yield
    finally:
        mine.discard(place)
        if descriptor is not None:
            os.close(descriptor)


def wait_for_lock(descriptor: int) -> None:
    """Wait for the lock of a file or folder; where the system has none, two may have it at once."""
    try:
        import fcntl
    except ImportError:
        return
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def put_link(link: Path, target: str) -> None:
    """Make a link, in one step; what has its name until then is dropped.

    Args:
        link: May be there: as a link, a file, or a folder. In the place of a folder it comes in
            one step where the system can exchange two names, else the name is free for a moment.
        target: What it points to, seen from the folder it is in.

    Raises:
        OSError: It cannot be made; what was there still is.
    """
    temporary = link.with_name(f".{writer_id()}-{os.urandom(4).hex()}-{link.name}{MAKING}")
    try:
        temporary.symlink_to(target)
        if link.is_dir() and not link.is_symlink():
            exchange(temporary, link)
        else:
            temporary.replace(link)
    finally:
        drop(temporary)


def exchange(path: Path, other: Path) -> None:
    """Give each of two paths the name of the other.

    Raises:
        OSError: They cannot be renamed.
    """
    swap = _system_call()
    if swap is not None and swap(os.fsencode(path), os.fsencode(other)) == 0:
        return
    aside = path.with_name(f".{writer_id()}-{os.urandom(4).hex()}-aside{MAKING}")
    other.rename(aside)
    path.rename(other)
    aside.rename(path)


def drop(path: Path) -> None:
    """Remove a file, a link or a folder, as far as that can be done."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk.

    Raises:
        OSError: They cannot be written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _system_call() -> Callable[[bytes, bytes], int] | None:
    """Return what exchanges two names; None where the system has no such call."""
    if sys.platform not in ("linux", "darwin"):
        return None
    import ctypes  # Not for every command that writes a file.

    library = ctypes.CDLL(None)
    if sys.platform == "darwin":
        rename = getattr(library, "renamex_np", None)
        return rename and (lambda one, other: int(rename(one, other, _EXCHANGE)))
    rename = getattr(library, "renameat2", None)
    return rename and (lambda one, other: int(rename(_AT_FDCWD, one, _AT_FDCWD, other, _EXCHANGE)))
