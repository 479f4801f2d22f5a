"""The datasets that are served, and what is made of them.

Datasets are found again at every request, and read again when they changed. A report is rendered on
demand, and kept as long as the files it rests on are the same.
"""

import hashlib
import os
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Final, Generic, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import DataError, RagforgeError
from ragforge.evaluating.runs import primary_of
from ragforge.files.atomic import OWN_FOLDER
from ragforge.files.manifest import Manifest, digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.history import FILE, History, read_history
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import REJECTED, VERSIONS, files_of, home_of, require_inside
from ragforge.records import Evaluation

_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_CHARS: Final = 60
_MANIFEST: Final = "manifest.json"

_Stamp = tuple[int, ...] | None
"""What tells that a file is another: size, time and inode; None where there is none."""

KEPT: Final = 8
"""Reports held in memory."""
_FOR_A_TREND: Final = 2
"""Evaluations that say where a measure goes."""
_PAST: Final = 20
"""Means of a spark line."""
_QUICK_S: Final = 0.05
_SHARE: Final = 10
"""What took longer to look at is looked at for a tenth of the time, whoever asks how often."""
Render = Callable[[Dataset], str]
T = TypeVar("T")


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
    recent: History
    """Of its history what says where each run stands and goes: all of it may be long."""
    problem: str
    """Why it cannot be shown, "" where it can."""
    night: Night | None = None
    """None where it has one version, and none was refused."""
    n_evaluations: int = 0
    """In all."""
    past: tuple[float, ...] = ()
    """The last means of the run that was evaluated last, by the measure followed."""
    state: str = ""
    """What tells it from the dataset as it was before and after."""

    @property
    def title(self) -> str:
        """Its own name, or that of its directory."""
        return self.manifest.name if self.manifest is not None else self.path.name or self.name

    def history(self) -> History:
        """Return all of its history, read anew; nothing where it cannot be read."""
        with suppress(RagforgeError, OSError, ValueError):
            require_inside(self.path)
            return read_history(home_of(self.path))
        return History()


def stamp(path: Path) -> _Stamp:
    """Return what changes when a file is written; None where it cannot be seen."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


@dataclass(frozen=True, slots=True)
class _Looked:
    """When something was looked at."""

    begun: float
    end: float

    @property
    def took(self) -> float:
        """Seconds."""
        return self.end - self.begun


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
    _names: dict[Path, str] = field(default_factory=dict)
    _named_at: "_Looked | None" = None
    _listed: list[ServedDataset] = field(default_factory=list)
    _listed_at: "_Looked | None" = None

    def datasets(self) -> list[ServedDataset]:
        """Return all datasets, sorted by name."""
        with self._lock:
            if self._is_fresh(self._listed_at):
                return self._listed
            begun = monotonic()
            named = self._named()
            self._known = {path: self._known[path] for path in named if path in self._known}
            datasets = [self._current(path, name) for path, name in named.items()]
            self._listed = sorted(datasets, key=lambda dataset: dataset.name)
            self._listed_at = _Looked(begun, monotonic())
            return self._listed

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
        if self._is_fresh(self._named_at):
            return self._names
        begun = monotonic()
        paths = list(
            {path.resolve(): path for root in self.roots for path in _places(root)}.values()
        )
        plain = [_plain(path) for path in paths]
        counts = Counter(plain)
        self._names = {
            path: name if counts[name] == 1 else f"{name}-{_digest(path)}"
            for path, name in zip(paths, plain, strict=True)
        }
        self._named_at = _Looked(begun, monotonic())
        return self._names

    @staticmethod
    def _is_fresh(looked: "_Looked | None") -> bool:
        """Whether what was seen stands for now: looking at many takes long, and many may ask."""
        if looked is None or looked.took < _QUICK_S:
            return False
        return monotonic() - looked.end < _SHARE * looked.took

    def _current(self, path: Path, name: str) -> ServedDataset:
        files = files_of(path)
        # The path has no links: only a version lies elsewhere than its home.
        home = home_of(path) if path.parent.name in (VERSIONS, REJECTED) else path
        named = (files / _MANIFEST, home / FILE, home / REJECTED)
        stamps = (files, *map(stamp, named))
        known = self._known.get(path)
        if known is None or known[0] != stamps or known[1].name != name or known[1].problem:
            known = self._known[path] = stamps, _read(path, name, stamps)
        return known[1]


def _read(path: Path, name: str, stamps: object) -> ServedDataset:
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
    return ServedDataset(
        name,
        path,
        manifest,
        _recent(history),
        told,
        _night(path),
        len(history.evaluations),
        _past(history),
        repr(stamps),
    )


def followed(evaluation: Evaluation) -> str:
    """Return the measure of an evaluation that is followed: that which decides, else the first."""
    named = list(evaluation.measures)
    return next((name for name in (primary_of(named), *named) if name in named), "")


def _recent(history: History) -> History:
    """Return the last two evaluations of each run, by each of its measures."""
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for item in reversed(history.evaluations):
        keys = [(item.run, measure) for measure in ("", *item.measures)]
        if any(seen[key] < _FOR_A_TREND for key in keys):
            kept.append(item)
            seen.update(keys)
    return replace(history, evaluations=tuple(reversed(kept)))


def _past(history: History) -> tuple[float, ...]:
    if not history.evaluations:
        return ()
    last = history.evaluations[-1]
    measure = followed(last)
    found = (item.measures.get(measure) for item in history.of_run(last.run))
    return tuple(one.mean for one in found if one is not None and one.mean is not None)[-_PAST:]


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
class Made(Generic[T]):
    """What was made of a dataset, and of which state of it."""

    stamps: tuple[tuple[str, _Stamp], ...]
    digest: str
    """Of the files that it rests on."""
    value: T


@dataclass(slots=True)
class KeptOfDatasets(Generic[T]):
    """What is made of datasets, each once for the same files; may be asked by several threads.

    Args:
        make: Slow for large datasets.
        most: How many are held in memory, those asked for last.
    """

    make: Callable[[Dataset], T]
    most: int = KEPT
    _made: OrderedDict[Path, Made[T]] = field(default_factory=OrderedDict)
    _locks: dict[Path, Lock] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, served: ServedDataset) -> Made[T]:
        """Return what is made of a dataset; who asks for what is being made waits for it.

        Raises:
            RagforgeError: The dataset cannot be read.
            OSError: Likewise.
        """
        with self._lock:
            lock = self._locks.setdefault(served.path, Lock())
        with lock:
            made = self._current(served)
        with self._lock:
            self._made[served.path] = made
            self._made.move_to_end(served.path)
            while len(self._made) > self.most:
                self._made.popitem(last=False)
        return made

    def _current(self, served: ServedDataset) -> Made[T]:
        """Return what is kept if it is still the right one: stamps first, then digests."""
        files = _files(served.path)
        stamps = tuple(sorted((name, stamp(path)) for name, path in files.items()))
        known = self._made.get(served.path)
        if known is not None and known.stamps == stamps:
            return known
        digest = _files_digest(files, stamps)
        if known is not None and known.digest == digest:
            return Made(stamps, digest, known.value)
        return Made(stamps, digest, self.make(_open_served(served)))


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
    """Yield the files below a folder; of the hidden ones the call store, which holds replies.

    What is hidden is not walked through: mirrors of documents may be large.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(place)
        for name in names:
            path = inside / name
            if not name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix(), path
    for path in (folder / OWN_FOLDER).glob("calls.*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path


def _files_digest(files: dict[str, Path], stamps: tuple[tuple[str, _Stamp], ...]) -> str:
    """Return what the files say; of the call store, which may be large, only its stamp."""
    digest = hashlib.sha256()
    for name, stamped in stamps:
        state = repr(stamped) if name.startswith(".") else digest_file(files[name])
        digest.update(f"{name}\0{state}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
