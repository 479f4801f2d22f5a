"""Documents from wherever they are, as files and folders that `read_documents` reads."""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ragforge.config import ChunkSettings
from ragforge.corpus.formats import FORMATS, suffix_of
from ragforge.corpus.origins.bucket import BucketSpec, opened_bucket, parse_bucket
from ragforge.corpus.origins.git import PREFIX as GIT
from ragforge.corpus.origins.git import GitSpec, opened_git, parse_git
from ragforge.corpus.origins.mirror import held, mirrored
from ragforge.corpus.origins.origin import PROPER, Origin, looks_like_address
from ragforge.corpus.origins.sql import PREFIX as SQL
from ragforge.corpus.origins.sql import SqlSpec, opened_sql, parse_sql
from ragforge.corpus.sources import GIVE_ABOVE, folder_filter, no_documents
from ragforge.errors import DataError, UsageError
from ragforge.files.inside import require_own_place
from ragforge.files.own_place import NAME
from ragforge.files.values import escaped
from ragforge.observe import Event, Observer

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LONGEST_NAME = 255
_LONGEST_PATH = 2000
_DIGITS = 12

_Spec = GitSpec | SqlSpec | BucketSpec


class Fetched(list[Path]):
    """Files and folders with documents; where they mirror an origin, messages can name that."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[str, str] = {}
        """Folders of mirrors, each with the spec as it is shown."""

    def named(self, message: str) -> str:
        """Return a message in which specs stand for the folders of their mirrors."""
        found = message
        for folder, shown in self.origins.items():
            found = found.replace(f"{folder}/", f"{shown}: ").replace(folder, shown)
        if found != message:
            found = found.replace(
                GIVE_ABOVE,
                "give another folder of an origin, so that its ids begin otherwise, or another "
                "name to a query: sql:URL#NAME: SELECT …",
            )
        return found

    def naming(self, observer: Observer) -> Observer:
        """Return an observer that is told of specs instead of mirrors."""
        if not self.origins:
            return observer

        def told(event: Event) -> None:
            message = self.named(event.message) if event.name == "note" else event.message
            observer(event if message == event.message else replace(event, message=message))

        return told


@contextmanager
def fetched(
    specs: Sequence[str | Path],
    place: Path,
    observer: Observer,
    settings: ChunkSettings,
) -> Iterator["Fetched"]:
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
    _refuse_twins(parsed)
    wanted = folder_filter(settings.include, settings.exclude)
    with ExitStack() as stack:
        paths = Fetched()
        for spec in parsed:
            if isinstance(spec, Path):
                paths.append(spec)
                continue
            folder = place / _folder_name(spec)
            if place.parent.name == NAME:
                require_own_place(place.parent)
            stack.enter_context(held(folder, spec.shown))
            paths.append(_fetch(spec, folder, wanted, _passed(spec, observer)))
            paths.origins[str(folder / "files")] = spec.shown
        try:
            yield paths
        except DataError as error:
            error.args = tuple(map(paths.named, map(str, error.args)))
            raise


def _parsed(spec: str | Path) -> Path | _Spec:
    if isinstance(spec, Path):
        return spec
    if spec.startswith(GIT):
        return parse_git(spec)
    if spec.startswith(SQL):
        return parse_sql(spec)
    if _URL.match(spec):
        return parse_bucket(spec)
    path = Path(spec)
    if looks_like_address(spec) and not path.exists():
        raise UsageError(f"a source of documents, not shown as it may hold a password: {PROPER}")
    return path


def _refuse_twins(specs: Sequence[Path | _Spec]) -> None:
    origins = [spec for spec in specs if not isinstance(spec, Path)]
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
        told = escaped(path)
        observer(Event("note", message=f"{spec.shown}: {told}: passed over: {reason}"))

    return passed


def _fetch(
    spec: _Spec, folder: Path, wanted: Callable[[str], bool], passed: Callable[[str, str], None]
) -> Path:
    match spec:
        case GitSpec():
            with opened_git(spec, passed) as origin:
                return mirrored(_chosen(spec, origin, wanted, passed), folder, passed)
        case SqlSpec():
            with opened_sql(spec) as origin:
                return mirrored(origin, folder, passed) / f"{spec.name}.jsonl"
        case BucketSpec():
            with opened_bucket(spec) as bucket:
                takes = _is_document if bucket.is_file else wanted
                files = mirrored(_chosen(spec, bucket.origin, takes, passed), folder, passed)
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
        if not _is_document(path):
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
        raise no_documents(spec.shown, list(origin.files))
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
