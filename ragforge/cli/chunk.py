"""Cut documents into chunks.

Reads Markdown, reStructuredText, plain text and HTML, folders to any depth. Chunks follow the
headings, keep code fences and tables whole, and get ids from their content.

Example: ragforge chunk docs/ --out chunks.jsonl
"""

import argparse
from pathlib import Path

from ragforge.cli.flags import add_common, add_json, dumps, settings_of
from ragforge.cli.talk import Progress, complain


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("documents", nargs="+", type=Path, metavar="DOCS", help="files or folders")
    parser.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help="where chunks are written (JSONL)"
    )
    add_json(parser)
    add_common(parser, "chunk")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from ragforge.files.jsonl import write_records
    from ragforge.pipeline.corpus import load_chunks

    settings = settings_of(arguments)
    chunks = load_chunks(arguments.documents, None, settings.chunk, Progress(arguments.quiet))
    write_records(arguments.out, chunks, lambda chunk: chunk.chunk_id)
    sizes = sorted(len(chunk.text) for chunk in chunks)
    found = {
        "out": str(arguments.out),
        "documents": len({chunk.doc_id for chunk in chunks}),
        "chunks": len(chunks),
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
    return 0
