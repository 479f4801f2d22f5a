"""Documents: files and folders of text, normalised, each under an id that survives a move."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from ragforge.corpus.formats import FORMATS, ExtractedText, Format, suffix_of
from ragforge.corpus.seen_text import SeenText, composed, without_trailing_blanks
from ragforge.corpus.sources import FileSource, Skipped, find_sources, with_readers
from ragforge.deferred import dataclass
from ragforge.errors import DataError
from ragforge.files.text import normalise, read_text

MARKUP_READ: Final = ", markup read"
"""Ends the description of how documents are cut; sets that lack it hold texts as files have them.
"""
_TITLE_WITHIN = 20_000
"""A title is looked for in so many characters at the top; parsing twice would double the cost."""
_TITLE_OFTEN_WITHIN = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """A document as its chunks see it.

    Offsets of chunks and of evidence lead into the file where its markup is read (`source`), else
    into `text`.
    """

    doc_id: str
    """Path relative to the folder that was given, posix, NFC; for the row of a table with `#` and
    the row's id or number behind it."""
    title: str
    """As the document states it (front matter, `<title>`), else its first top heading, else ""."""
    text: str
    """What a reader sees, normalised."""
    format: Format
    source: SeenText | None = None
    """Where the text stands in the file; None where offsets count in the text itself."""
    file_text: str = ""
    """The normalised text of the file; "" where that is the text."""


def read_documents(
    paths: Sequence[Path],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    follow_links: bool = False,
    source_code: bool = False,
    skipped: Skipped = lambda path, reason: None,
    unread: Callable[[str], None] = lambda doc_id: None,
    named_must: bool = False,
) -> Iterator[Document]:
    """Yield the documents of files and folders, folder by folder in sorted order.

    Hidden files and folders inside a folder are passed over, and so are links that lead out of it,
    and names that are not UTF-8. A file that several of the paths lead to is read once, with the
    doc_id that the outermost folder gives it. Each row of a table or an export is a document.

    Args:
        paths: Files and folders; folders are searched to any depth.
        include: Patterns (see `path_matcher`) of what is read of a folder; empty takes everything.
        exclude: Patterns of what is not; stronger than include. A file given by name is not asked.
        follow_links: Read what links in a folder lead to outside of it, too.
        source_code: Read source files, too.
        skipped: Told of documents and pages without text, of links that are not followed, and of
            files that cannot be read as what their suffix says: not UTF-8, a table with a broken
            row. How many these are comes last.
        unread: Told the doc_id of each file that cannot be read; that of a row begins with it.
        named_must: Whether a file that is given by name must be read, and hold something.

    Raises:
        DataError: A path is missing, a folder holds no document, two files would have the same
            doc_id (found before any file is read), none of the files could be read, or not one
            that must be.
    """
    all_sources = find_sources(
        paths,
        include,
        exclude,
        skipped,
        follow_links=follow_links,
        source_code=source_code,
        unread=unread,
    )
    sources = with_readers(all_sources, skipped)
    for source in _without(all_sources, sources):
        _refuse_named(source, "what reads such files is not installed", named_must)
        unread(source.doc_id)
    broken: list[str] = []
    any_read = False
    for source in sources:
        n_broken = len(broken)
        for document in _unbroken(source, broken, skipped):
            any_read = True
            if document.text.strip():
                yield document
            else:
                is_whole = document.doc_id == source.doc_id
                _refuse_named(source, "holds no text", named_must and is_whole)
                skipped(_named(document, source), "holds no text")
        if len(broken) > n_broken:
            _refuse_named(source, broken[-1].removeprefix(f"{source.path}: "), named_must)
            unread(source.doc_id)
    n_unread = len(broken) + len(all_sources) - len(sources)
    if n_unread and not any_read:
        reason = broken[0] if broken else "what reads them is not installed"
        raise DataError(f"none of the {len(all_sources)} files could be read: {reason}")
    if n_unread > 1:
        skipped(f"{n_unread} of {len(all_sources)} files", "could not be read")


def _refuse_named(source: FileSource, reason: str, named_must: bool) -> None:
    """Refuse a file that was given by name and gives nothing, where that is asked for."""
    if named_must and not source.in_folder:
        raise DataError(
            f"{source.path}: {reason} (of a file that is given by name this is taken for a fault, "
            "not for documents that were all deleted)"
        )


def _without(found: Sequence[FileSource], sources: Sequence[FileSource]) -> list[FileSource]:
    kept = {source.suffix for source in sources}
    return [source for source in found if source.suffix not in kept]


def _unbroken(source: FileSource, broken: list[str], skipped: Skipped) -> Iterator[Document]:
    """Yield the documents of a file; what is wrong with a broken one is added to the list."""
    try:
        yield from _read(source, skipped)
    except DataError as error:
        reason = str(error).removeprefix(f"{source.path}: ")
        broken.append(f"{source.path}: {reason}")
        skipped(str(source.path), reason)


def _named(document: Document, source: FileSource) -> str:
    row = document.doc_id.removeprefix(source.doc_id)
    return f"{source.path}{row}"


def _read(source: FileSource, skipped: Skipped) -> Iterator[Document]:
    match FORMATS.get(source.suffix, "source"):
        case "row":
            yield from _rows(source)
        case "pdf":
            from ragforge.corpus.pdf import read_pdf

            page = read_pdf(_file(source))
            if page.lacks:
                skipped(str(source.path), page.lacks)
            yield _extracted_document(source.doc_id, page, "pdf")
        case "docx":
            from ragforge.corpus.docx import read_docx

            yield _extracted_document(source.doc_id, read_docx(_file(source)), "docx")
        case "html":
            from ragforge.corpus.html import read_page

            yield _extracted_document(source.doc_id, read_page(normalise(_text(source))), "html")
        case "export":
            yield from _exported(source)
        case form:
            yield _plain(source.doc_id, "", _text(source), form)


def _exported(source: FileSource) -> Iterator[Document]:
    from ragforge.corpus.row_documents import Export

    # It is read once before the first row is taken: a fault or a deletion may come last.
    for row in Export(_file(source)).rows():
        doc_id = normalise(f"{source.doc_id}#{row.name}")
        if row.format == "html":
            from ragforge.corpus.html import read_page

            page = read_page(normalise(row.text))
            yield _extracted_document(
                doc_id, ExtractedText(row.title or page.title, page.text), "html"
            )
        else:
            yield _plain(doc_id, row.title, row.text, row.format)


def _plain(doc_id: str, title: str, text: str, form: Format) -> Document:
    text = normalise(text)
    title = normalise(title) or _stated_title(text, form)
    seen = without_trailing_blanks(read_plain(text, form, doc_id))
    title = title or _title(seen.text[:_TITLE_WITHIN], form)
    if seen.text == text:
        return Document(doc_id, title, text, form)
    return Document(doc_id, title, seen.text, form, seen, text)


def read_plain(text: str, form: Format, doc_id: str) -> SeenText:
    """Return what a reader sees of a file of text.

    Raises:
        UnreadableError: It is not what its suffix says.
    """
    if form == "markdown":
        from ragforge.corpus.markdown_reading import read_markdown

        return read_markdown(text, is_mdx=doc_id.lower().endswith(".mdx"))
    if form == "rst":
        from ragforge.corpus.rst_reading import read_rst

        return read_rst(text)
    if form == "asciidoc":
        from ragforge.corpus.asciidoc_reading import read_asciidoc

        return read_asciidoc(text)
    if form == "source":
        from ragforge.corpus.source_code import read_source_code

        return read_source_code(text, suffix_of(doc_id))
    if form == "man":
        from ragforge.corpus.man_reading import read_man_page

        return read_man_page(text)
    if form == "notebook":
        from ragforge.corpus.markdown_reading import read_markdown
        from ragforge.corpus.notebook import read_notebook

        cells = read_notebook(text)
        return composed(cells, read_markdown(cells.text))
    return SeenText(text)


def _stated_title(text: str, form: Format) -> str:
    if form == "markdown":
        from ragforge.corpus.front_matter import stated_title

        return stated_title(text)
    if form == "man":
        from ragforge.corpus.man_reading import man_title

        return man_title(text)
    return ""


def _rows(source: FileSource) -> Iterator[Document]:
    from ragforge.corpus.row_documents import read_table_rows

    file = _file(source)
    for _ in read_table_rows(file):
        pass  # A fault in the last row must show before the first is taken.
    for row in read_table_rows(file):
        doc_id = normalise(f"{source.doc_id}#{row.name}")
        yield Document(doc_id, normalise(row.title), normalise(row.text), "row")


def _text(source: FileSource) -> str:
    return read_text(_file(source))


def _file(source: FileSource) -> Path:
    if not source.path.is_file():
        raise DataError(f"{source.path}: expected a file, got a broken link or a special file")
    return source.path


def _extracted_document(doc_id: str, page: ExtractedText, form: Format) -> Document:
    from ragforge.corpus.html import html_title

    text = normalise(page.text)
    return Document(doc_id, normalise(page.title) or html_title(text), text, form)


def _title(text: str, form: Format) -> str:
    if form in {"markdown", "notebook", "asciidoc"}:
        from ragforge.corpus.markdown import markdown_title

        # Most have it in the first line, and blocks do not depend on what follows them.
        first = text[: text.rfind("\n", 0, _TITLE_OFTEN_WITHIN) + 1]
        return markdown_title(first, _TITLE_WITHIN) or markdown_title(text, _TITLE_WITHIN)
    if form == "rst":
        from ragforge.corpus.rst import rst_title

        return rst_title(text)
    return ""
