"""Which files are documents: files and folders as given, patterns, each file once."""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragforge.corpus.formats import FORMATS, missing_extra, suffix_of
from ragforge.corpus.globs import path_matcher
from ragforge.errors import DataError

Skipped = Callable[[str, str], None]
"""Called with the path and the reason for what is passed over without being an error."""


GIVE_ABOVE: Final = "give the folder above both"
"""Advice where two files have one id."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file that is a document, or a table of them."""

    doc_id: str
    """Path relative to the folder that was given, posix, NFC; the name of a file given by name."""
    path: Path
    in_folder: bool
    """Found in a folder that was given, where patterns say what is read."""

    @property
    def suffix(self) -> str:
        """The suffix in lower case, one of `FORMATS`."""
        return suffix_of(self.path.name)


def find_sources(
    paths: Sequence[Path], include: Sequence[str], exclude: Sequence[str], skipped: Skipped
) -> list[FileSource]:
    """Return the files of what is given, path by path in sorted order; see `read_documents`.

    Raises:
        DataError: A path is missing, a folder holds no document, or two files would have the same
            doc_id.
    """
    wanted = folder_filter(include, exclude)
    sources = _each_once([_sources(path, wanted, skipped) for path in paths])
    _refuse_twins(sources)
    return sources


def with_readers(sources: Sequence[FileSource], skipped: Skipped) -> list[FileSource]:
    """Leave out the files that need a library which is not installed, told once per suffix."""
    counts = Counter(source.suffix for source in sources)
    missing = {suffix: missing_extra(suffix) for suffix in counts}
    for suffix, advice in missing.items():
        if advice:
            files = "file" if counts[suffix] == 1 else "files"
            skipped(f"{counts[suffix]} {suffix} {files}", advice)
    return [source for source in sources if not missing[source.suffix]]


def folder_filter(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str], bool]:
    """Return a test of paths relative to a folder, posix and NFC: is it read as a document?

    Hidden files are not. Exports in JSON Lines are only where `include` says so: data of any kind
    has that form, the files of a dataset of ragforge too.
    """
    included, excluded = path_matcher(include), path_matcher(exclude)

    def takes(relative: str) -> bool:
        form = FORMATS.get(suffix_of(relative))
        if form is None or any(part.startswith(".") for part in relative.split("/")):
            return False
        named = included(relative) if include else form != "export"
        return named and not excluded(relative)

    return takes


def _sources(path: Path, wanted: Callable[[str], bool], skipped: Skipped) -> list[FileSource]:
    if path.is_dir():
        return _folder_sources(path, wanted, skipped)
    if not path.exists():
        raise DataError(f"{path}: does not exist; expected a document or a folder of documents")
    if suffix_of(path.name) not in FORMATS:
        found = path.suffix or "no suffix"
        raise DataError(f"{path}: expected one of {_suffixes()}, got {found}")
    return [FileSource(unicodedata.normalize("NFC", path.name), path, in_folder=False)]


def _folder_sources(
    folder: Path, wanted: Callable[[str], bool], skipped: Skipped
) -> list[FileSource]:
    files = [FileSource(_relative(path, folder), path, True) for path in _files(folder, skipped)]
    sources = [file for file in files if wanted(file.doc_id)]
    if not sources:
        raise no_documents(str(folder), [file.doc_id for file in files])
    return sources


def _relative(path: Path, folder: Path) -> str:
    return unicodedata.normalize("NFC", path.relative_to(folder).as_posix())


def _files(folder: Path, skipped: Skipped) -> list[Path]:
    found: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            if (link := Path(place, name)).is_symlink():
                skipped(str(link), "is a link to a folder, which is not followed")
        found.extend(Path(place, name) for name in names if not name.startswith("."))
    return sorted(found, key=lambda path: path.relative_to(folder).parts)


def _unreadable(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from error


def no_documents(place: str, paths: Collection[str]) -> DataError:
    """Return the error about a place in which no file is taken; the paths are what it has."""
    seen = Counter(suffix_of(path) or "no suffix" for path in paths)
    kinds = ", ".join(f"{suffix}: {count}" for suffix, count in sorted(seen.items()))
    held = f"{seen.total()} files ({kinds})" if seen else "no file"
    forms = Counter(FORMATS.get(suffix_of(path)) for path in paths)
    unwanted = forms.total() - forms[None] - forms["export"]
    hint = f"; include and exclude pass over {unwanted} of them" if unwanted else ""
    if forms["export"]:
        hint += "; exports in JSON Lines are read where include names them"
    return DataError(f"{place}: expected documents ({_suffixes()}), got {held}{hint}")


def _suffixes() -> str:
    return ", ".join(FORMATS)


def _each_once(given: Sequence[Sequence[FileSource]]) -> list[FileSource]:
    """Leave out of each path's files those that another path leads to from further out.

    Links to files within one folder are documents of their own.
    """
    places: dict[str, tuple[bool, int, int]] = {}
    for number, sources in enumerate(given):
        for source in sources:
            file = os.path.realpath(source.path)
            place = (source.in_folder, source.doc_id.count("/"), -number)
            places[file] = max(place, places.get(file, place))
    return [
        source
        for number, sources in enumerate(given)
        for source in sources
        if places[os.path.realpath(source.path)][-1] == -number
    ]


def _refuse_twins(sources: Sequence[FileSource]) -> None:
    first: dict[str, Path] = {}
    for source in sources:
        if source.doc_id in first:
            raise DataError(
                f"{source.path}: has the doc_id {source.doc_id!r} of {first[source.doc_id]}; "
                f"expected one file for each: {GIVE_ABOVE}"
            )
        first[source.doc_id] = source.path
