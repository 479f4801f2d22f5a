"""The datasets that are served, and their reports.

Datasets are found again at every request, and read again when they changed. A report is rendered on
demand, and kept as long as the files it rests on are the same.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

from ragforge.errors import DataError, RagforgeError
from ragforge.files.manifest import Manifest, digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import FILE, History, read_history
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import REJECTED, VERSIONS, files_of, home_of, require_inside

_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARS: Final = 60
_MANIFEST: Final = "manifest.json"

_Stamp = tuple[int, ...] | None
"""What tells that a file is another: size, time and inode; None where there is none."""

KEPT: Final = 8
"""Pages held in memory."""
Render = Callable[[Dataset], str]


@dataclass(frozen=True, slots=True)
class Night:
    """What became of the last refresh."""

    at: float
    """Seconds since 1970."""
    is_published: bool
    """Whether there is a version of it; else it was refused, and lies beside the versions."""


@dataclass(frozen=True, slots=True)
class ServedDataset:
    """A dataset as it is right now."""

    name: str
    """By which it is addressed: letters, digits, dots, dashes and underscores."""
    path: Path
    manifest: Manifest | None
    """None where it cannot be read."""
    history: History
    problem: str
    """Why it cannot be shown, "" where it can."""
    night: Night | None = None
    """None where it has one version, and none was refused."""

    @property
    def title(self) -> str:
        """Its own name, or that of its directory."""
        return self.manifest.name if self.manifest is not None else self.path.name or self.name


def _stamp(path: Path) -> _Stamp:
    """Return what changes when a file is written; None where it cannot be seen."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


@dataclass(slots=True)
class ServedDatasets:
    """Datasets, and folders whose children are datasets; may be asked by several threads.

    Args:
        roots: As given; one may vanish and come back.
    """

    roots: Sequence[Path]
    _known: dict[Path, tuple[tuple[Path | _Stamp, ...], ServedDataset]] = field(
        default_factory=dict
    )
    _lock: Lock = field(default_factory=Lock)

    def datasets(self) -> list[ServedDataset]:
        """Return all datasets, sorted by name."""
        with self._lock:
            named = self._named()
            self._known = {path: self._known[path] for path in named if path in self._known}
            datasets = [self._current(path, name) for path, name in named.items()]
        return sorted(datasets, key=lambda dataset: dataset.name)

    def find(self, name: str) -> ServedDataset | None:
        """Return a dataset by its name; None where there is none."""
        with self._lock:
            return next(
                (
                    self._current(path, known)
                    for path, known in self._named().items()
                    if known == name
                ),
                None,
            )

    def _named(self) -> dict[Path, str]:
        """Return the directories with their names; of equal names each tells more of itself."""
        places = {path.resolve(): path for root in self.roots for path in _places(root)}
        paths = list(places.values())
        plain = [_plain(path) for path in paths]
        return {
            path: name if plain.count(name) == 1 else f"{name}-{_digest(path)}"
            for path, name in zip(paths, plain, strict=True)
        }

    def _current(self, path: Path, name: str) -> ServedDataset:
        files = files_of(path)
        home = home_of(path)
        named = (files / _MANIFEST, home / FILE, home / REJECTED)
        stamps = (files, *map(_stamp, named))
        known = self._known.get(path)
        if known is None or known[0] != stamps or known[1].name != name or known[1].problem:
            known = self._known[path] = stamps, _read(path, name)
        return known[1]


def _read(path: Path, name: str) -> ServedDataset:
    manifest, history, problems = None, History(), []
    try:
        manifest = open_dataset(path).manifest
    except (RagforgeError, OSError, ValueError) as error:
        problems.append(_problem_text(path, error))
    try:
        require_inside(path)
        history = read_history(home_of(path))
    except (RagforgeError, OSError, ValueError) as error:
        problems.append(_problem_text(path, error))
    told = "; ".join(dict.fromkeys(problems))
    return ServedDataset(name, path, manifest, history, told, _night(path))


def _night(path: Path) -> Night | None:
    files, home = files_of(path), home_of(path)
    nights = []
    with suppress(OSError):
        if files.parent.name == VERSIONS:
            nights.append(Night((files / _MANIFEST).stat().st_mtime, is_published=True))
    with suppress(OSError):
        refused = [child.stat().st_mtime for child in (home / REJECTED).iterdir()]
        nights += [Night(at, is_published=False) for at in refused]
    return max(nights, key=lambda night: night.at, default=None)


def check_roots(roots: Iterable[Path]) -> None:
    """Check that there is something to show.

    Raises:
        DataError: A root is no directory, or holds no dataset.
    """
    for root in roots:
        if not root.is_dir():
            raise DataError(f"{root}: no such directory; expected a dataset, or a folder of some")
        if not any(map(_is_dataset, _places(root))):
            raise DataError(f"{root}: holds no dataset, nor does a folder directly in it")


def _open_served(served: ServedDataset) -> Dataset:
    """Return the dataset for reading all of it.

    Raises:
        DataError: It is not there any more.
    """
    return open_dataset(served.path)


def _places(root: Path) -> list[Path]:
    """Return the datasets of a root; the root itself where there are none to be seen."""
    if _is_dataset(root):
        return [root]
    try:
        children = [child for child in root.iterdir() if _is_dataset(child)]
    except OSError:
        children = []
    return sorted(children) or [root]


def _is_dataset(path: Path) -> bool:
    return (files_of(path) / _MANIFEST).is_file()


def _plain(path: Path) -> str:
    name = _UNFIT.sub("-", path.resolve().name)[:_NAME_CHARS].strip(".-_")
    return name or "dataset"


def _digest(path: Path) -> str:
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:6]


def _problem_text(path: Path, error: Exception) -> str:
    return str(error) if isinstance(error, RagforgeError) else f"{path}: {error}"


@dataclass(frozen=True, slots=True)
class _Page:
    stamps: tuple[tuple[str, _Stamp], ...]
    digest: str
    html: str


@dataclass(slots=True)
class Reports:
    """Renders reports, each once for the same files; may be asked by several threads.

    Args:
        render: Makes a report; slow for large datasets.
    """

    render: Render
    _pages: OrderedDict[Path, _Page] = field(default_factory=OrderedDict)
    _locks: dict[Path, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def html(self, served: ServedDataset) -> str:
        """Return the report of a dataset; those who ask for one that is being made wait for it.

        Raises:
            RagforgeError: The dataset cannot be read.
            OSError: Likewise.
        """
        with self._lock:
            lock = self._locks.setdefault(served.path, Lock())
        with lock:
            page = self._page(served)
        with self._lock:
            self._pages[served.path] = page
            self._pages.move_to_end(served.path)
            while len(self._pages) > KEPT:
                self._pages.popitem(last=False)
        return page.html

    def _page(self, served: ServedDataset) -> _Page:
        """Return the page that is kept if it is still the right one: stamps first, then digests."""
        files = _files(served.path)
        stamps = tuple(sorted((name, _stamp(path)) for name, path in files.items()))
        known = self._pages.get(served.path)
        if known is not None and known.stamps == stamps:
            return known
        digest = _files_digest(files, stamps)
        if known is not None and known.digest == digest:
            return _Page(stamps, digest, known.html)
        return _Page(stamps, digest, self.render(_open_served(served)))


def _files(dataset: Path) -> dict[str, Path]:
    """Return what a report rests on: the files of the set, and what its versions share."""
    files, home = files_of(dataset), home_of(dataset)
    if files == home:
        return dict(_below(home))
    version = {f"{files.name}/{name}": path for name, path in _below(files)}
    return version | {
        name: path
        for name, path in _below(home)
        if not path.is_symlink() and not name.startswith((f"{VERSIONS}/", f"{REJECTED}/"))
    }


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder; of the hidden ones the call store, which holds replies."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and (not name.startswith(".") or name.startswith(".ragforge/calls.")):
            yield name, path


def _files_digest(files: dict[str, Path], stamps: tuple[tuple[str, _Stamp], ...]) -> str:
    """Return what the files say; of the call store, which may be large, only its stamp."""
    digest = hashlib.sha256()
    for name, stamped in stamps:
        state = repr(stamped) if name.startswith(".") else digest_file(files[name])
        digest.update(f"{name}\0{state}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
