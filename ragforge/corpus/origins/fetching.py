"""Fetching documents from origins into mirrors: folders that `read_documents` reads."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ragforge.config import ChunkSettings
from ragforge.corpus.formats import FORMATS, suffix_of
from ragforge.corpus.origins.origin import GIT, PROPER, SQL, Origin, looks_like_address
from ragforge.corpus.sources import GIVE_ABOVE, folder_filter, no_documents_error
from ragforge.deferred import pattern, shutil
from ragforge.errors import DataError, UsageError
from ragforge.files.atomic import OWN_FOLDER, write_whole
from ragforge.files.set.paths import require_own_place
from ragforge.files.text import escaped
from ragforge.observe import Event, Observer

if TYPE_CHECKING:
    from ragforge.corpus.origins.bucket import BucketSpec
    from ragforge.corpus.origins.git import GitSpec
    from ragforge.corpus.origins.sql import SqlSpec

_Passed = Callable[[str, str], None]
"""Called with the path of a file and why it is passed over."""
_Listing = dict[str, tuple[str, str]]
_URL = pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNFIT = pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LONGEST_NAME = 255
_LONGEST_PATH = 2000
_DIGITS = 12
_Spec: TypeAlias = "GitSpec | SqlSpec | BucketSpec"


class FetchedPaths(list[Path]):
    """Files and folders with documents; where they mirror an origin, messages can name that."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[str, str] = {}
        """Folders of mirrors, each with the spec as it is shown."""

    def name_origins(self, message: str) -> str:
        """Return a message in which specs stand for the folders of their mirrors."""
        renamed = message
        for folder, shown in self.origins.items():
            renamed = renamed.replace(f"{folder}/", f"{shown}: ").replace(folder, shown)
        if renamed != message:
            renamed = renamed.replace(
                GIVE_ABOVE,
                "give another folder of an origin, so that its ids begin otherwise, or another "
                "name to a query: sql:URL#NAME: SELECT …",
            )
        return renamed

    def observer_naming_origins(self, observer: Observer) -> Observer:
        """Return an observer that is told of specs instead of mirrors."""
        if not self.origins:
            return observer

        def observe(event: Event) -> None:
            message = self.name_origins(event.message) if event.name == "note" else event.message
            observer(event if message == event.message else replace(event, message=message))

        return observe


@contextmanager
def fetch_documents(
    specs: Sequence[str | Path],
    place: Path,
    observer: Observer,
    settings: ChunkSettings,
) -> Iterator[FetchedPaths]:
    """Lend files and folders with documents, those from elsewhere mirrored below a folder.

    Of an origin only what changed is fetched, and what is gone there goes here. As long as the
    paths are lent, no other process changes the mirrors.

    Args:
        specs: Files and folders, which come back as they are; `git:REPOSITORY@REVISION:FOLDER`,
            `sql:URL#QUERY`, and addresses such as `s3://BUCKET/PREFIX`.
        place: Where mirrors are, a folder for each origin; made if need be.
        observer: Told of files that are passed over.
        settings: With the patterns of what is read of a folder; nothing else is fetched.

    Raises:
        UsageError: A spec is none, one comes twice, a package is missing, or another command has
            the mirror.
        DataError: An origin cannot be read, or has no documents; its mirror stays as it was.
    """
    parsed = [_parsed(spec) for spec in specs]
    _refuse_repeated(parsed)
    source_code = settings.source_code == "on"
    wanted = folder_filter(settings.include, settings.exclude, source_code=source_code)
    with ExitStack() as stack:
        paths = FetchedPaths()
        for spec in parsed:
            if isinstance(spec, Path):
                paths.append(spec)
                continue
            folder = place / _folder_name(spec)
            if place.parent.name == OWN_FOLDER:
                require_own_place(place.parent)
            stack.enter_context(mirror_lock(folder, spec.shown))
            paths.append(_fetch(spec, folder, wanted, _passed(spec, observer)))
            paths.origins[str(folder / "files")] = spec.shown
        try:
            yield paths
        except DataError as error:
            error.args = tuple(map(paths.name_origins, map(str, error.args)))
            raise


def _parsed(spec: str | Path) -> Path | _Spec:
    if isinstance(spec, Path):
        return spec
    if spec.startswith(GIT):
        from ragforge.corpus.origins.git import parse_git

        return parse_git(spec)
    if spec.startswith(SQL):
        from ragforge.corpus.origins.sql import parse_sql

        return parse_sql(spec)
    if _URL.match(spec):
        from ragforge.corpus.origins.bucket import parse_bucket

        return parse_bucket(spec)
    path = Path(spec)
    if looks_like_address(spec) and not path.exists():
        raise UsageError(f"a source of documents, not shown as it may hold a password: {PROPER}")
    return path


def _refuse_repeated(specs: Sequence[Path | _Spec]) -> None:
    origins = [spec for spec in specs if not isinstance(spec, Path)]
    if not origins:
        return
    from ragforge.corpus.origins.sql import SqlSpec

    seen: set[str] = set()
    for spec in origins:
        file = f"{SQL}{spec.name}" if isinstance(spec, SqlSpec) else spec.key
        if file in seen and isinstance(spec, SqlSpec):
            raise UsageError(
                f"{spec.shown}: another query has the name {spec.name!r}, so that ids could be the "
                "same; name one of them: sql:URL#NAME: SELECT …"
            )
        if file in seen:
            raise UsageError(f"{spec.shown}: comes twice; expected each origin once")
        seen.add(file)


def _folder_name(spec: _Spec) -> str:
    digest = hashlib.sha256(spec.key.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", spec.name).strip(".-")[:40]
    return f"{name or 'documents'}-{digest}"


def _passed(spec: _Spec, observer: Observer) -> Callable[[str, str], None]:
    def passed(path: str, reason: str) -> None:
        observer(Event("note", message=f"{spec.shown}: {escaped(path)}: passed over: {reason}"))

    return passed


def _fetch(
    spec: _Spec, folder: Path, wanted: Callable[[str], bool], passed: Callable[[str, str], None]
) -> Path:
    from ragforge.corpus.origins.bucket import BucketSpec, opened_bucket
    from ragforge.corpus.origins.git import GitSpec, opened_git
    from ragforge.corpus.origins.sql import SqlSpec, opened_sql

    match spec:
        case GitSpec():
            with opened_git(spec, passed) as origin:
                return mirror_origin(_chosen(spec, origin, wanted, passed), folder, passed)
        case SqlSpec():
            with opened_sql(spec) as origin:
                return mirror_origin(origin, folder, passed) / f"{spec.name}.jsonl"
        case BucketSpec():
            with opened_bucket(spec) as bucket:
                takes = _is_document if bucket.is_file else wanted
                files = mirror_origin(_chosen(spec, bucket.origin, takes, passed), folder, passed)
                [*names] = bucket.origin.files
                return files / names[0] if bucket.is_file else files


def _is_document(path: str) -> bool:
    return suffix_of(path) in FORMATS


def _chosen(
    spec: _Spec,
    origin: Origin,
    wanted: Callable[[str], bool],
    passed: Callable[[str, str], None],
) -> Origin:
    """Return an origin with those of its files that are documents and fit for a file system."""
    files: dict[str, str] = {}
    for path in sorted(origin.files):
        if not (_is_document(path) or wanted(path)):
            continue
        if reason := _unfit(path):
            passed(path, reason)
        elif wanted(unicodedata.normalize("NFC", path)):
            files[path] = origin.files[path]
    folders = {folder for path in files for folder in _folders(path)}
    for path in sorted(files.keys() & folders):
        passed(path, "is the name of a folder too")
        del files[path]
    if not files:
        raise no_documents_error(spec.shown, list(origin.files))
    return replace(origin, files=files)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path leads through, the innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _unfit(path: str) -> str:
    """Return why a path cannot be that of a file here; "" where it can."""
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\\" in path:
        return "has a path that is not plain"
    if _UNFIT.search(path):
        return "has control characters in its path"
    if (
        len(path.encode()) > _LONGEST_PATH
        or max(len(part.encode()) for part in parts) > _LONGEST_NAME
    ):
        return "has a path that is too long"
    return ""


def mirror_origin(origin: Origin, folder: Path, passed: _Passed) -> Path:
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
def mirror_lock(folder: Path, spec: str) -> Iterator[None]:
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
            f"{spec}: another command is reading it into {folder}; wait for its end"
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
    from concurrent.futures import ThreadPoolExecutor

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
