"""The files of a dataset: written whole and sorted, each with its digest in the manifest.

While a directory gets its first versions its files move; whoever reads or writes notices.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import DataError, did_you_mean
from ragforge.files.atomic import alone_in, move_whole, write_whole, write_whole_bytes
from ragforge.files.manifest import FileEntry, Manifest, RunOrigin, digest_file
from ragforge.files.record_files import (
    Key,
    read_object,
    read_records,
    write_object,
    write_records,
)
from ragforge.files.set.paths import (
    MANIFEST,
    files_of,
    first_of,
    require_inside,
    show_in_home,
)
from ragforge.files.set.sorted_records import change_key, id_and_revision, pair_of
from ragforge.files.text import as_unicode, read_text
from ragforge.records import DormantGrade, ItemChange, MovedChunk, Query, VersionDiff
from ragforge.records.model import Model
from ragforge.records.queries import Selection
from ragforge.records.sharing import Sharing

R = TypeVar("R", bound=Model)
T = TypeVar("T")

_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SetFiles:
    """The files of the version of a set that was published when this was made.

    Args:
        path: The directory of the set, or one of its versions.

    Raises:
        DataError: A file of the set leads out of its directory.
    """

    path: Path
    _opened: Path = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_inside(self.path)
        object.__setattr__(self, "_opened", files_of(self.path))

    @property
    def folder(self) -> Path:
        """The folder they are in.

        It is that of one version throughout, also where the directory gets its first ones
        meanwhile.
        """
        return self._opened if self._opened != self.path else first_of(self.path)

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands on disk."""
        return self.steady(lambda files: read_object(files / MANIFEST, Manifest))

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the manifest as given."""
        write_object(self.folder / MANIFEST, manifest)

    def steady(self, read: Callable[[Path], T]) -> T:
        """Return the result of a reader; it reads anew where another folder is current by then."""
        files = self.folder
        found = read(files)
        return found if files == self.folder else read(self.folder)

    def each(self, read: Callable[[Path], Iterator[R]]) -> Iterator[R]:
        """Yield the records of a file, all of one version."""

        # The first record opens the file; what is open stays what it is.
        def begin(files: Path) -> tuple[Iterator[R], list[R]]:
            rest = read(files)
            return rest, list(itertools.islice(rest, 1))

        rest, first = self.steady(begin)
        yield from first
        yield from rest

    def records(self, name: str, record: type[R], key: Callable[[R], Key] | None) -> list[R]:
        """Return the records of a file; [] where it is not there."""

        def read(files: Path) -> list[R]:
            path = files / name
            if not path.exists():
                return []
            return list(map(Sharing().shared, read_records(path, record, key=key)))

        return self.steady(read)

    def object(self, name: str, kind: type[R]) -> R | None:
        """Return the object in a file; None where the file is not there."""
        path = self.folder / name
        return read_object(path, kind) if path.exists() else None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files of records in a folder, sorted, without their suffix."""
        return sorted(self._named(folder))

    def named(self, folder: str, name: str) -> Path:
        """Return the file of records of a name in a folder.

        Raises:
            DataError: There is none.
        """
        named = self._named(folder)
        if as_unicode(name) not in named:
            near, there = did_you_mean(name, named), ", ".join(sorted(named)) or "none yet"
            raise DataError(f"{self.folder / folder}: no {name!r}{near}; there are: {there}")
        return named[as_unicode(name)]

    def _named(self, folder: str) -> dict[str, Path]:
        files = (self.folder / folder).glob("*.jsonl")
        return {as_unicode(path.stem): path for path in files}

    def write(
        self,
        name: str,
        records: Iterable[R],
        key: Callable[[R], Key],
        run: RunOrigin | None = None,
        selection: Selection | None = None,
    ) -> None:
        """Write a file of records, sorted by their key; of a run with where it is from.

        Args:
            name: Of the file, in the folder of the set.
            records: What it holds.
            key: Sorts them.
            run: Of a run: what it was made on.
            selection: The part of the queries that it was made for.
        """
        files = self.folder
        count = write_records(files / name, records, key)
        self._require_unmoved(files)
        self._enter(name, count, run, selection)

    def write_sorted(self, name: str, records: Iterable[R]) -> None:
        """Write a file of records that are sorted, one at a time."""
        count = itertools.count()
        lines = (f"{record.model_dump_json()}\n" for record, _ in zip(records, count, strict=False))
        files = self.folder
        write_whole(files / name, lines)
        self._require_unmoved(files)
        self._enter(name, next(count))

    def write_object(self, name: str, value: Model) -> None:
        """Write a file of one object."""
        write_object(self.folder / name, value)
        self._enter(name, 1)

    def write_text(self, name: str, text: str) -> None:
        """Write a file for people."""
        write_whole(self.folder / name, [text])
        self._enter(name, 1)

    def take(self, name: str, path: Path, entry: FileEntry) -> None:
        """Make a file the set's own; it is moved, unless the set has the same already."""
        mine = self.folder / name
        if not mine.exists() or digest_file(mine) != entry.sha256:
            move_whole(path, mine)
        self._list(name, entry)

    def changed_by_hand(self, name: str) -> bool:
        """Whether a file differs from what ragforge last wrote."""
        entry = self.manifest.files.get(name)
        path = self.folder / name
        return entry is not None and path.exists() and digest_file(path) != entry.sha256

    def _require_unmoved(self, files: Path) -> None:
        if files != self.folder:
            raise DataError(
                f"{self.path}: got its first versions while this was written; run it "
                "again, replies of models are kept"
            )

    def copy(self, name: str, to: str) -> None:
        """Give a file of the set a second name, with all that the manifest says of it."""
        source = self.folder / name
        with source.open("rb") as stream:
            write_whole_bytes(self.folder / to, iter(partial(stream.read, _BLOCK), b""))
        entry = self.manifest.files.get(name)
        if entry is not None:
            self._list(to, entry)

    def drop(self, name: str) -> None:
        """Remove a file of the set. A kill on the way leaves one that the manifest does not list.

        Raises:
            DataError: It cannot be removed.
        """
        with alone_in(self.folder):
            old = self.manifest
            if name in old.files:
                files = {other: entry for other, entry in old.files.items() if other != name}
                self.write_manifest(old.model_copy(update={"files": files}))
        path = self.folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{path}: cannot be removed: {error.strerror or error}") from error

    def _enter(
        self,
        name: str,
        count: int,
        run: RunOrigin | None = None,
        selection: Selection | None = None,
    ) -> None:
        """Put a file that was written into the manifest."""
        with alone_in(self.folder):
            digest = digest_file(self.folder / name)
            self._list(name, FileEntry(sha256=digest, records=count, run=run, selection=selection))

    def _list(self, name: str, entry: FileEntry) -> None:
        with alone_in(self.folder):
            old = self.manifest
            if old.files.get(name) != entry:
                files = dict(sorted({**old.files, name: entry}.items()))
                self.write_manifest(old.model_copy(update={"files": files}))
                show_in_home(self.folder, name)


@dataclass(frozen=True, slots=True)
class VersionRecords:
    """The records of a version that a refresh made; there are none of any other.

    Args:
        files: Of the version.
    """

    files: SetFiles

    def revisions(self) -> list[Query]:
        """Return earlier revisions of queries, by id and revision; [] for none."""
        return self.files.records("revisions.jsonl", Query, id_and_revision)

    def write_revisions(self, revisions: Iterable[Query]) -> None:
        """Write all earlier revisions."""
        self.files.write("revisions.jsonl", revisions, id_and_revision)

    def events(self) -> list[ItemChange]:
        """Return the changes of queries by refreshes, by version, query and action; [] for none."""
        return self.files.records("events.jsonl", ItemChange, change_key)

    def write_events(self, changes: Iterable[ItemChange]) -> None:
        """Write all that refreshes did so far."""
        self.files.write("events.jsonl", changes, change_key)

    def diff(self) -> VersionDiff | None:
        """Return the differences to the version before; None where it is the first."""
        return self.files.object("diff.json", VersionDiff)

    def write_diff(self, diff: VersionDiff) -> None:
        """Write what this version changed."""
        self.files.write_object("diff.json", diff)

    def changelog(self) -> str:
        """Return the changelog of all versions, for people; "" where there is none."""
        path = self.files.folder / "CHANGELOG.md"
        return read_text(path) if path.exists() else ""

    def write_changelog(self, text: str) -> None:
        """Write what all versions changed, for people."""
        self.files.write_text("CHANGELOG.md", text)

    def moved_chunks(self) -> dict[str, tuple[str, ...]]:
        """Return the ids of now of chunks that earlier versions called otherwise."""
        rows = self.files.records("moved_chunks.jsonl", MovedChunk, lambda moved: moved.before)
        return {moved.before: moved.now for moved in rows}

    def write_moved_chunks(self, moved: Iterable[MovedChunk]) -> None:
        """Write under which ids chunks of earlier versions are found now."""
        self.files.write("moved_chunks.jsonl", moved, lambda item: item.before)

    def dormant_grades(self) -> list[DormantGrade]:
        """Return people's grades of chunks that are gone, by query and chunk; [] for none."""
        return self.files.records("dormant_grades.jsonl", DormantGrade, pair_of)

    def write_dormant_grades(self, grades: Iterable[DormantGrade]) -> None:
        """Write what people gave to chunks that are gone."""
        self.files.write("dormant_grades.jsonl", grades, pair_of)
