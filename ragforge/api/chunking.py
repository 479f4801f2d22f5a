"""Cutting documents into chunks, and what is wrong with chunks."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ragforge.api.arguments import checked
from ragforge.api.call import CHUNK, Call, begin
from ragforge.api.keywords import ChunkKeywords
from ragforge.api.results import Result, plain_values
from ragforge.api.sources import Documents, Records, as_documents, as_optional_file
from ragforge.config import ChunkSettings
from ragforge.corpus.chunk_files import chunk_documents, write_corpus, write_ready_made
from ragforge.corpus.origins.fetching import FetchedPaths, fetch_documents
from ragforge.deferred import dataclass, tempfile
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.formatting import plural
from ragforge.files.atomic import MIRRORS, OWN_FOLDER
from ragforge.files.record_files import read_records
from ragforge.observe import Observer
from ragforge.records import Chunk

if TYPE_CHECKING:
    from ragforge.corpus.quality import ChunkQuality


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """How many chunks there are, of how many documents, and how large."""

    documents: int
    chunks: int
    median_chars: int
    largest_chars: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Chunked(Result):
    """Chunks of documents: iterate over them, or give them to `generate(chunks=…)`.

    Args:
        sizes: Counts and sizes.
        max_chars: Characters that a chunk was to have at most.
        path: The file that was written, sorted by id; None where none was.
        held: The chunks where there is no file, in the order of the documents; else empty.
        notes: What was told on the way.
    """

    sizes: ChunkSizes
    max_chars: int
    path: Path | None = None
    held: tuple[Chunk, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks; those of a file are read one by one."""
        return iter(self.held) if self.path is None else read_records(self.path, Chunk)

    def __len__(self) -> int:
        """Return the number of chunks."""
        return self.sizes.chunks

    def quality(self) -> "QualityReport":
        """Find chunks that are too small, too large, cut in two, repeated, stale or unreadable."""
        report = quality_of(self, self.max_chars)
        assert report is not None
        return report

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge chunk --json` prints."""
        return {"out": None if self.path is None else str(self.path), **asdict(self.sizes)}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each chunk."""
        return [
            {
                **plain_values(chunk.model_dump()),
                "heading_path": " > ".join(chunk.heading_path),
                "hidden": [list(part) for part in chunk.hidden],
            }
            for chunk in self
        ]

    def table(self) -> str:
        """Return the counts and sizes in words."""
        sizes = self.sizes
        return (
            f"{plural(sizes.chunks, 'chunk')} of {plural(sizes.documents, 'document')}, median "
            f"{sizes.median_chars} characters, largest {sizes.largest_chars}"
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class QualityReport(Result):
    """What is wrong with chunks, and the fix.

    Args:
        quality: All findings.
    """

    quality: "ChunkQuality"

    def to_dict(self) -> dict[str, Any]:
        """Return what `ragforge chunk --report --json` prints."""
        from ragforge.report.chunk_quality import quality_json

        return quality_json(self.quality)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kind of fault, with the number of chunks that have it."""
        findings: Any = self.to_dict()["findings"]
        names = ("kind", "chunks", "share", "fix")
        return [{name: finding[name] for name in names} for finding in findings]

    def table(self) -> str:
        """Return sizes, findings with examples, and the fix of each, as text."""
        from ragforge.report.chunk_quality import quality_text

        return quality_text(self.quality).rstrip()


@checked
def chunk(
    documents: Documents | None = None,
    *,
    chunks: Records | None = None,
    out: str | PathLike[str] | None = None,
    **settings: Unpack[ChunkKeywords],
) -> Chunked:
    """Cut documents into chunks, or take chunks that are there; see `Chunked.quality`.

    Args:
        documents: Files, folders and origins such as git:… and s3://…, or texts by name.
        chunks: Ready-made chunks instead: a file, records or a data frame.
        out: A file for the chunks (JSON Lines), for corpora that do not fit into memory; they are
            in the result where None.
        settings: max_chars, chunker and others; see `ragforge.api.keywords`.

    Raises:
        UsageError: There is no corpus, or two; or no such chunker.
        DataError: A document cannot be read, or there is no text.
    """
    if (documents is None) == (chunks is None):
        raise UsageError("name the corpus: either documents or chunks")
    place = None if out is None else Path(out)
    with (
        begin(CHUNK, settings, {}) as call,
        as_optional_file(chunks) as chunk_file,
        as_documents(documents) as named,
        files_of(named, place, call.settings.chunk, call.observer) as paths,
    ):
        max_chars = call.settings.chunk.max_chars
        if place is None:
            held = tuple(_cut(paths, chunk_file, call))
            return Chunked(sizes_of(held), max_chars, held=held, notes=tuple(call.notes))
        if chunk_file is None:
            write_corpus(
                paths, call.settings.chunk, paths.observer_naming_origins(call.observer), place
            )
        else:
            write_ready_made(chunk_file, call.observer, place)
        sizes = sizes_of(read_records(place, Chunk))
        return Chunked(sizes, max_chars, place, notes=tuple(call.notes))


@contextmanager
def files_of(
    documents: Sequence[str | Path], out: Path | None, settings: ChunkSettings, observer: Observer
) -> Iterator[FetchedPaths]:
    """Lend documents as files; mirrors of origins stay beside what is written, if anything."""
    with ExitStack() as stack:
        if out is None:
            mirrors = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ragforge-")))
        else:
            mirrors = out.absolute().parent / OWN_FOLDER / MIRRORS
        yield stack.enter_context(fetch_documents(documents, mirrors, observer, settings))


def quality_of(chunks: Iterable[Chunk], max_chars: int) -> QualityReport | None:
    """Return what is wrong with chunks; None where there is none."""
    from ragforge.corpus.quality import Inspector

    inspector = Inspector(max_chars)
    for chunk in chunks:
        inspector.add(chunk)
    quality = inspector.quality()
    return None if quality is None else QualityReport(quality)


def _cut(paths: FetchedPaths, chunk_file: Path | None, call: Call) -> Iterator[Chunk]:
    from ragforge.files.formats.chunks import read_chunks

    if chunk_file is not None:
        return read_chunks(chunk_file)
    return chunk_documents(paths, call.settings.chunk, paths.observer_naming_origins(call.observer))


def sizes_of(chunks: Iterable[Chunk]) -> ChunkSizes:
    """Return counts and sizes.

    Raises:
        DataError: There is no chunk.
    """
    doc_ids, sizes = set(), []
    for chunk in chunks:
        doc_ids.add(chunk.doc_id)
        sizes.append(len(chunk.text))
    if not sizes:
        raise DataError("the documents hold no text to cut into chunks")
    sizes.sort()
    return ChunkSizes(len(doc_ids), len(sizes), sizes[len(sizes) // 2], sizes[-1])
