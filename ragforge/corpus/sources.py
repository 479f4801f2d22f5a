"""Which files are documents: files and folders as given, patterns, each file once."""

import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from fnmatch import translate
from pathlib import Path
from typing import Final

from ragforge.corpus.formats import FORMATS, SOURCE_CODE, missing_extra, suffix_of
from ragforge.deferred import dataclass, pattern
from ragforge.errors import DataError
from ragforge.files.set.paths import is_within
from ragforge.files.text import escaped, is_unicode

_TOKEN = pattern(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]{0,100}+\]|.", re.DOTALL)
"""A class in brackets has at most 100 characters: each bracket that is none costs no more."""
_MEANING = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}

Skipped = Callable[[str, str], None]
"""Called with the path and the reason for what is passed over without being an error."""
_EXAMPLES: Final = 3
_SNIFFED: Final = 5_000
_FOLLOW: Final = "--follow-links reads what they lead to"
_LINK_OUT: Final = f"links out of the folder are not followed; {_FOLLOW}"
_ODD_NAME: Final = "names that are not UTF-8 cannot be ids"
GIVE_ABOVE: Final = "give the folder above both"
"""Advice where two files have one id."""


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test of relative posix paths against any of the patterns.

    `*` and `?` stay within a folder, `**` crosses folders. A pattern without a slash is matched
    with names at any depth, and one that matches a folder takes in all that the folder holds:
    `*.md`, `**/*.md`, `drafts`, `drafts/*`, `guide/**/intro.rst`.
    """
    anywhere = [pattern.rstrip("/") for pattern in patterns]
    alternatives = "|".join(_expression(pattern) for pattern in anywhere)
    expression = re.compile(f"(?:{alternatives})(?:/.*)?", re.DOTALL)
    return lambda path: bool(patterns) and expression.fullmatch(path) is not None


def _expression(pattern: str) -> str:
    anchored = pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"
    return "".join(_translate(token) for token in _TOKEN.findall(anchored))


def _translate(token: str) -> str:
    if token in _MEANING:
        return _MEANING[token]
    if len(token) > 1:
        # fnmatch knows what to do with [z-a] and [!]]; its end mark \Z is cut off.
        return translate(token)[: -len(r"\Z")]
    return re.escape(token)


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
    paths: Sequence[Path],
    include: Sequence[str],
    exclude: Sequence[str],
    skipped: Skipped,
    *,
    follow_links: bool = False,
    source_code: bool = False,
    unread: Callable[[str], None] = lambda doc_id: None,
) -> list[FileSource]:
    """Return the files of what is given, path by path in sorted order; see `read_documents`.

    Raises:
        DataError: A path is missing, a folder holds no document that can be read, a file that is
            given has a name that is not UTF-8, or two files would have the same doc_id.
    """
    wanted = folder_filter(include, exclude, source_code=source_code)
    search = _Search(wanted, skipped, unread, follow_links, source_code)
    sources = _each_once([_sources(path, search) for path in paths])
    _refuse_repeated(sources)
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


def folder_filter(
    include: Sequence[str], exclude: Sequence[str], *, source_code: bool = False
) -> Callable[[str], bool]:
    """Return a test of paths relative to a folder, posix and NFC: is it read as a document?

    Hidden files are not. Exports in JSON Lines are only where `include` says so: data of any kind
    has that form, the files of a dataset of ragforge too. Source files are only with
    `source_code`.
    """
    included, excluded = path_matcher(include), path_matcher(exclude)

    def takes(relative: str) -> bool:
        suffix = suffix_of(relative)
        form = FORMATS.get(suffix) or ("source" if source_code and suffix in SOURCE_CODE else None)
        if form is None or any(part.startswith(".") for part in relative.split("/")):
            return False
        named = included(relative) if include else form != "export"
        return named and not excluded(relative)

    return takes


@dataclass(frozen=True, slots=True)
class _Search:
    """How folders are searched."""

    wanted: Callable[[str], bool]
    skipped: Skipped
    unread: Callable[[str], None]
    follow_links: bool
    source_code: bool


def _sources(path: Path, search: _Search) -> list[FileSource]:
    if path.is_dir():
        return _folder_sources(path, search)
    if not path.exists():
        raise DataError(f"{path}: does not exist; expected a document or a folder of documents")
    suffix = suffix_of(path.name)
    if suffix not in FORMATS and not (search.source_code and suffix in SOURCE_CODE):
        found = path.suffix or "no suffix"
        raise DataError(f"{path}: expected one of {_suffixes()}, got {found}")
    if not is_unicode(path.name):
        raise DataError(f"{escaped(str(path))}: {_ODD_NAME}; rename it")
    return [FileSource(unicodedata.normalize("NFC", path.name), path, in_folder=False)]


def _folder_sources(folder: Path, search: _Search) -> list[FileSource]:
    files = [FileSource(_relative(path, folder), path, True) for path in _files(folder, search)]
    sources = [
        file for file in files if search.wanted(file.doc_id) and _is_what_its_suffix_says(file)
    ]
    if not sources:
        raise no_documents_error(str(folder), [file.doc_id for file in files])
    kept, passed = list[FileSource](), defaultdict[str, list[FileSource]](list)
    for source in sources:
        if not is_unicode(source.doc_id):
            passed[_ODD_NAME].append(source)
        elif not search.follow_links and _leads_out(source.path, folder):
            passed[_LINK_OUT].append(source)
            search.unread(source.doc_id)
        else:
            kept.append(source)
    for reason, some in passed.items():
        search.skipped(_describe_files(some), reason)
    if not kept:
        reasons = "; ".join(f"{_describe_files(some)}: {reason}" for reason, some in passed.items())
        raise DataError(f"{folder}: no document in it is read: {escaped(reasons)}")
    return kept


def _is_what_its_suffix_says(file: FileSource) -> bool:
    """Whether a file that ends in a digit is a manual page, and not the first of its name."""
    if FORMATS.get(file.suffix) != "man":
        return True
    from ragforge.corpus.man_reading import is_man_page

    try:
        with file.path.open(encoding="utf-8", errors="replace") as stream:
            return is_man_page(stream.read(_SNIFFED))
    except OSError:
        return False


def _leads_out(path: Path, folder: Path) -> bool:
    return path.is_symlink() and not is_within(path, folder)


def _describe_files(sources: Sequence[FileSource]) -> str:
    """Return the path of a file, or how many there are with those of the first."""
    if len(sources) == 1:
        return str(sources[0].path)
    examples = ", ".join(str(source.path) for source in sources[:_EXAMPLES])
    return f"{len(sources)} files, such as {examples}"


def _relative(path: Path, folder: Path) -> str:
    return unicodedata.normalize("NFC", path.relative_to(folder).as_posix())


def _files(folder: Path, search: _Search) -> list[Path]:
    files: list[Path] = []
    roots = [Path(os.path.realpath(folder))]
    """What is read already; a link into or around it would be a loop, or read files twice."""
    for place, folders, names in os.walk(folder, onerror=_unreadable, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for link in [Path(place, name) for name in folders if Path(place, name).is_symlink()]:
            real = Path(os.path.realpath(link))
            is_near = any(real.is_relative_to(at) or at.is_relative_to(real) for at in roots)
            if search.follow_links and not is_near:
                roots.append(real)
                continue
            folders.remove(link.name)
            out = "" if is_near else f"; {_FOLLOW}"
            search.skipped(str(link), f"is a link to a folder, which is not followed{out}")
        files.extend(Path(place, name) for name in names if not name.startswith("."))
    return sorted(files, key=lambda path: path.relative_to(folder).parts)


def _unreadable(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from error


def no_documents_error(place: str, paths: Collection[str]) -> DataError:
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


def _refuse_repeated(sources: Sequence[FileSource]) -> None:
    first: dict[str, Path] = {}
    for source in sources:
        if source.doc_id in first:
            raise DataError(
                f"{source.path}: has the doc_id {source.doc_id!r} of {first[source.doc_id]}; "
                f"expected one file for each: {GIVE_ABOVE}"
            )
        first[source.doc_id] = source.path
