"""Documents: files and folders of text, normalised, each under an id that survives a move."""

import glob
import os
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from ragforge.corpus.globs import path_matcher
from ragforge.errors import DataError
from ragforge.files.text import read_text

Format = Literal["markdown", "rst", "text", "html"]
Skipped = Callable[[str, str], None]
"""Called with the path and the reason for what is passed over without being an error."""

FORMATS: dict[str, Format] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rst",
    ".txt": "text",
    ".text": "text",
    ".html": "html",
    ".htm": "html",
}
"""The suffixes that are read, lower case."""

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x85]")
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff]")
_TITLE_WITHIN = 20_000
"""A title is looked for in so many characters at the top; parsing twice would double the cost."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as its chunks see it: offsets of chunks and of evidence count in `text`."""

    doc_id: str
    """Path relative to the folder that was given, posix, NFC."""
    title: str
    """As the document states it (front matter, `<title>`), else its first top heading, else ""."""
    text: str
    format: Format


@dataclass(frozen=True, slots=True)
class _Source:
    doc_id: str
    path: Path
    in_folder: bool
    """Found in a folder that was given, where patterns say what is read."""


def read_documents(
    paths: Sequence[Path],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    skipped: Skipped = lambda path, reason: None,
) -> Iterator[Document]:
    """Yield the documents of files and folders, folder by folder in sorted order.

    Hidden files and folders inside a folder are passed over, and links to folders are not
    followed. A file that several of the paths lead to is read once, with the doc_id that the
    outermost folder gives it.

    Args:
        paths: Files and folders; folders are searched to any depth.
        include: Patterns (see `path_matcher`) of what is read of a folder; empty takes everything.
        exclude: Patterns of what is not; stronger than include. A file given by name is not asked.
        skipped: Told of documents without text and of links to folders.

    Raises:
        DataError: A path is missing, a folder holds no document, a file is not UTF-8 text, or two
            files would have the same doc_id; the last is found before any file is read.
    """
    wanted = _Filter(path_matcher(include) if include else lambda _: True, path_matcher(exclude))
    sources = _each_once([_sources(path, wanted, skipped) for path in paths])
    _refuse_twins(sources)
    for source in sources:
        document = _read(source)
        if document.text.strip():
            yield document
        else:
            skipped(str(source.path), "holds no text")


def normalise(text: str) -> str:
    """Return the text in the form that offsets and ids refer to; idempotent.

    NFC; every line end (also form feed and vertical tab) is one newline; byte order marks and
    control characters other than tab and newline are dropped. Blanks stay: they carry meaning in
    code.
    """
    if not text.isascii() or _LINE_ENDS.search(text) or _INVISIBLE.search(text):
        text = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))
    return unicodedata.normalize("NFC", text)


@dataclass(frozen=True, slots=True)
class _Filter:
    included: Callable[[str], bool]
    excluded: Callable[[str], bool]

    def takes(self, relative: str) -> bool:
        return self.included(relative) and not self.excluded(relative)


def _sources(path: Path, wanted: _Filter, skipped: Skipped) -> list[_Source]:
    if path.is_dir():
        return _folder_sources(path, wanted, skipped)
    if not path.exists():
        raise DataError(f"{path}: does not exist; expected a document or a folder of documents")
    if path.suffix.lower() not in FORMATS:
        found = path.suffix or "no suffix"
        raise DataError(f"{path}: expected one of {_suffixes()}, got {found}")
    return [_Source(unicodedata.normalize("NFC", path.name), path, in_folder=False)]


def _folder_sources(folder: Path, wanted: _Filter, skipped: Skipped) -> list[_Source]:
    seen: Counter[str] = Counter()
    unwanted = 0
    sources: list[_Source] = []
    for path in _files(folder, skipped):
        suffix = path.suffix.lower()
        relative = unicodedata.normalize("NFC", path.relative_to(folder).as_posix())
        seen[suffix or "no suffix"] += 1
        if suffix not in FORMATS:
            continue
        if wanted.takes(relative):
            sources.append(_Source(relative, path, in_folder=True))
        else:
            unwanted += 1
    if not sources:
        raise DataError(_nothing_in(folder, seen, unwanted))
    return sources


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


def _nothing_in(folder: Path, seen: Counter[str], unwanted: int) -> str:
    kinds = ", ".join(f"{suffix}: {count}" for suffix, count in sorted(seen.items()))
    held = f"{seen.total()} files ({kinds})" if seen else "no file"
    hint = f"; include and exclude pass over {unwanted} of them" if unwanted else ""
    return f"{folder}: expected documents ({_suffixes()}), got {held}{hint}"


def _suffixes() -> str:
    return ", ".join(FORMATS)


def _each_once(given: Sequence[Sequence[_Source]]) -> list[_Source]:
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


def _refuse_twins(sources: Sequence[_Source]) -> None:
    first: dict[str, Path] = {}
    for source in sources:
        if source.doc_id in first:
            raise DataError(
                f"{source.path}: has the doc_id {source.doc_id!r} of {first[source.doc_id]}; "
                "expected one file for each: give the folder above both"
            )
        first[source.doc_id] = source.path


def _read(source: _Source) -> Document:
    text = normalise(_text(source))
    form = FORMATS[PurePath(source.path).suffix.lower()]
    if form == "html":
        return _html_document(source.doc_id, text)
    return Document(source.doc_id, _title(text[:_TITLE_WITHIN], form), text, form)


def _text(source: _Source) -> str:
    try:
        return _file_text(source.path)
    except DataError as error:
        if not source.in_folder:
            raise
        pattern = shlex.quote(_pattern(source.doc_id))
        raise DataError(f"{error}; or leave it out with `--exclude {pattern}`") from error


def _file_text(path: Path) -> str:
    if not path.is_file():
        raise DataError(f"{path}: expected a file, got a broken link or a special file")
    return read_text(path)


def _pattern(relative: str) -> str:
    """Return the pattern of this file alone: without a slash it would be taken at any depth."""
    return glob.escape(relative if "/" in relative else f"/{relative}")


def _html_document(doc_id: str, html: str) -> Document:
    from ragforge.corpus.html import html_title, read_page

    page = read_page(html)
    text = normalise(page.text)
    return Document(doc_id, normalise(page.title) or html_title(text), text, "html")


def _title(text: str, form: Format) -> str:
    if form == "markdown":
        from ragforge.corpus.markdown import markdown_title

        return markdown_title(text, _TITLE_WITHIN)
    if form == "rst":
        from ragforge.corpus.rst import rst_title

        return rst_title(text)
    return ""
