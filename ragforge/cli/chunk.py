r"""Cut documents into chunks, or report on the quality of chunks.

Reads Markdown, reStructuredText, plain text, HTML, CSV, TSV and exports in JSON Lines (a document
for each row), PDF and DOCX (extras `pdf` and `docx`), folders to any depth, git repositories at a
revision, queries of a database (extra `sql`) and buckets (extra `buckets`). Chunks follow the
headings, keep code fences and tables whole, and get ids from their content. With --report nothing
is written unless --out says where: chunks that are too small, too large, cut in two, repeated,
stale or unreadable are shown with what to do about them.

Examples:
  ragforge chunk docs/ --out chunks.jsonl
  ragforge chunk git:../handbook@v2.1:docs --out chunks.jsonl
  ragforge chunk 'sql:postgresql://me:${DB_PASSWORD}@db/kb#SELECT id, title, body FROM articles' \
      --out chunks.jsonl
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge.api.progress import Progress, say
from ragforge.cli.flags import add_common, add_json, settings_of
from ragforge.cli.next_step import say_next
from ragforge.cli.output import dumps, show
from ragforge.errors import DataError, UsageError

if TYPE_CHECKING:
    from ragforge.config import ChunkSettings
    from ragforge.records import Chunk


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "documents",
        nargs="*",
        metavar="DOCS",
        help="files, folders, git:REPOSITORY@REVISION, sql:URL#QUERY or addresses such as s3://…",
    )
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
    from ragforge.api.chunking import files_of

    observer = Progress(arguments.quiet)
    with files_of(arguments.documents, arguments.out, settings, observer) as arguments.documents:
        return _run(arguments, settings)


def _run(arguments: argparse.Namespace, settings: "ChunkSettings") -> int:
    if arguments.out is not None:
        from ragforge.corpus.chunk_files import write_corpus, write_ready_made

        if arguments.chunks is not None:
            write_ready_made(arguments.chunks, Progress(arguments.quiet), arguments.out)
        else:
            observer = arguments.documents.observer_naming_origins(Progress(arguments.quiet))
            write_corpus(arguments.documents, settings, observer, arguments.out)
    if arguments.report:
        _report(_chunks(arguments, settings), settings.max_chars, arguments)
    else:
        _summarise(_chunks(arguments, settings), arguments)
    if arguments.out is not None:
        words = ["generate", "--chunks", str(arguments.out), "-n", "20", "--out", "my-set"]
        say_next(arguments, words, "questions with answers")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if bool(arguments.documents) == bool(arguments.chunks):
        raise UsageError("chunk: expected documents, or --chunks FILE, and not both")
    if arguments.out is None and not arguments.report:
        raise UsageError("chunk: expected --out FILE, or --report, or both")


def _chunks(arguments: argparse.Namespace, settings: "ChunkSettings") -> "Iterator[Chunk]":
    """Yield the chunks: those that were written, else as they come."""
    from ragforge.corpus.chunk_files import chunk_documents
    from ragforge.files.formats.chunks import read_chunks
    from ragforge.files.record_files import read_records
    from ragforge.records import Chunk

    if arguments.out is not None:
        return read_records(arguments.out, Chunk)
    if arguments.chunks is not None:
        return read_chunks(arguments.chunks)
    observer = arguments.documents.observer_naming_origins(Progress(arguments.quiet))
    return chunk_documents(arguments.documents, settings, observer)


def _report(chunks: "Iterator[Chunk]", max_chars: int, arguments: argparse.Namespace) -> None:
    from ragforge.api.chunking import quality_of

    quality = quality_of(chunks, max_chars)
    if quality is None:
        raise DataError(f"{', '.join(map(str, arguments.documents))}: no text to cut into chunks")
    if arguments.out is not None:
        say(f"{quality.quality.n_chunks:,} chunks are in {arguments.out}")
    if arguments.json:
        print(dumps(quality.to_dict()))
    else:
        show(quality.table())


def _summarise(chunks: "Iterator[Chunk]", arguments: argparse.Namespace) -> None:
    from ragforge.api.chunking import Chunked, sizes_of

    made = Chunked(sizes_of(chunks), max_chars=0, path=arguments.out)
    if arguments.json:
        print(dumps(made.to_dict()))
    else:
        say(made.table())
        print(arguments.out)
