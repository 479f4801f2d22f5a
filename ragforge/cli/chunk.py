"""Cut documents into chunks, or report on the quality of chunks.

Reads Markdown, reStructuredText, plain text, HTML, CSV and TSV (a document for each row), PDF and
DOCX (extras `pdf` and `docx`), folders to any depth. Chunks follow the headings, keep code fences
and tables whole, and get ids from their content. With --report nothing is written unless --out
says where: chunks that are too small, too large, cut in two, repeated, stale or unreadable are
shown with what to do about them.

Example: ragforge chunk docs/ --out chunks.jsonl
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.talk import Progress, complain, show
from ragforge.errors import DataError, UsageError

if TYPE_CHECKING:
    from ragforge.config import ChunkSettings
    from ragforge.records import Chunk


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("documents", nargs="*", type=Path, metavar="DOCS", help="files or folders")
    parser.add_argument(
        "--chunks", type=Path, metavar="FILE", help="ready-made chunks instead of documents"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where chunks are written (JSONL)")
    parser.add_argument(
        "--report", action="store_true", help="show what is wrong with the chunks, and the fix"
    )
    add_json(parser)
    add_common(parser, "chunk")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    _check(arguments)
    settings = settings_of(arguments).chunk
    if arguments.out is not None:
        from ragforge.pipeline.corpus import write_corpus

        given = arguments.documents, arguments.chunks
        write_corpus(*given, settings, Progress(arguments.quiet), arguments.out)
    if arguments.report:
        _report(_chunks(arguments, settings), settings.max_chars, arguments)
    else:
        _summarise(_chunks(arguments, settings), arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.documents) == bool(arguments.chunks):
        raise UsageError("chunk: expected documents, or --chunks FILE, and not both")
    if arguments.out is None and not arguments.report:
        raise UsageError("chunk: expected --out FILE, or --report, or both")


def _chunks(arguments: argparse.Namespace, settings: "ChunkSettings") -> "Iterator[Chunk]":
    """Yield the chunks: those that were written, else as they come."""
    from ragforge.files.chunks import read_chunks
    from ragforge.files.jsonl import read_records
    from ragforge.pipeline.corpus import chunks_of
    from ragforge.records import Chunk

    if arguments.out is not None:
        return read_records(arguments.out, Chunk)
    if arguments.chunks is not None:
        return read_chunks(arguments.chunks)
    return chunks_of(arguments.documents, settings, Progress(arguments.quiet))


def _report(chunks: "Iterator[Chunk]", max_chars: int, arguments: argparse.Namespace) -> None:
    from ragforge.corpus.quality import Inspector
    from ragforge.report.chunk_quality import quality_json, quality_text

    inspector = Inspector(max_chars)
    for chunk in chunks:
        inspector.add(chunk)
    quality = inspector.quality()
    if quality is None:
        raise DataError(f"{', '.join(map(str, arguments.documents))}: no text to cut into chunks")
    if arguments.out is not None:
        complain(f"{quality.n_chunks:,} chunks are in {arguments.out}")
    if arguments.json:
        print(dumps(quality_json(quality)))
    else:
        show(quality_text(quality).rstrip())


def _summarise(chunks: "Iterator[Chunk]", arguments: argparse.Namespace) -> None:
    doc_ids, sizes = set(), []
    for chunk in chunks:
        doc_ids.add(chunk.doc_id)
        sizes.append(len(chunk.text))
    sizes.sort()
    found = {
        "out": str(arguments.out),
        "documents": len(doc_ids),
        "chunks": len(sizes),
        "median_chars": sizes[len(sizes) // 2],
        "largest_chars": sizes[-1],
    }
    if arguments.json:
        print(dumps(found))
    else:
        complain(
            f"{found['chunks']} chunks of {found['documents']} documents, median "
            f"{found['median_chars']} characters, largest {found['largest_chars']}"
        )
        print(arguments.out)
