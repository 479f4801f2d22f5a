"""Reports rendered on demand, and kept as long as the files they rest on are the same."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.paths import REJECTED, VERSIONS, files_of, home_of
from ragforge.viewer.served import ServedDataset, Stamp, open_served, stamp

KEPT: Final = 8
"""Pages held in memory."""

Render = Callable[[Dataset], str]


@dataclass(frozen=True, slots=True)
class _Page:
    stamps: tuple[tuple[str, Stamp], ...]
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
        stamps = tuple(sorted((name, stamp(path)) for name, path in files.items()))
        known = self._pages.get(served.path)
        if known is not None and known.stamps == stamps:
            return known
        digest = _digest(files, stamps)
        if known is not None and known.digest == digest:
            return _Page(stamps, digest, known.html)
        return _Page(stamps, digest, self.render(open_served(served)))


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


def _digest(files: dict[str, Path], stamps: tuple[tuple[str, Stamp], ...]) -> str:
    """Return what the files say; of the call store, which may be large, only its stamp."""
    digest = hashlib.sha256()
    for name, stamped in stamps:
        state = repr(stamped) if name.startswith(".") else digest_file(files[name])
        digest.update(f"{name}\0{state}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
