"""How well retrieved pieces are placed in their documents: real splitters, real Markdown.

Run it where langchain-text-splitters, llama-index-core, haystack-ai and chonkie are installed:

    python benchmarks/splitters.py DOCUMENTS_DIR [--named] [--json FILE]

A piece is placed right where it stands at the offsets that its splitter knows, or, where that tells
none or wrong ones, at the next place of its letters behind the piece before. Offsets are held to
the first and last letter of the piece. `--named` tells the document of each piece, as metadata do.
`by offset` counts the ambiguous pieces that the splitter's own offset puts right; `wrong` those too
that it puts wrong.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ragforge.corpus.text_locations import TextLocator
from ragforge.records import Span

warnings.filterwarnings("ignore")
Piece = tuple[str, int | None]
Splitter = Callable[[str], Iterator[Piece]]


@dataclass
class Row:
    """What became of the pieces of one splitter."""

    splitter: str
    pieces: int = 0
    right: int = 0
    wrong: int = 0
    ambiguous: int = 0
    by_offset: int = 0
    nowhere: int = 0
    without_letters: int = 0
    ms: float = 0.0


def splitters() -> Iterator[tuple[str, Splitter]]:
    """Yield the splitters of four frameworks by name."""
    yield from _langchain()
    yield from _llama_index()
    yield from _haystack()
    yield from _chonkie()


def _langchain() -> Iterator[tuple[str, Splitter]]:
    from langchain_text_splitters import (
        MarkdownHeaderTextSplitter,
        MarkdownTextSplitter,
        RecursiveCharacterTextSplitter,
    )

    def documents(splitter: object) -> Splitter:
        def split(text: str) -> Iterator[Piece]:
            for each in splitter.create_documents([text]):  # type: ignore[attr-defined]
                yield each.page_content, each.metadata.get("start_index")

        return split

    for size in (200, 500, 1000):
        yield (
            f"langchain recursive {size}",
            documents(
                RecursiveCharacterTextSplitter(
                    chunk_size=size, chunk_overlap=size // 5, add_start_index=True
                )
            ),
        )
    yield (
        "langchain markdown 500",
        documents(MarkdownTextSplitter(chunk_size=500, chunk_overlap=50, add_start_index=True)),
    )
    by_header = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2"), ("###", "h3")])

    def headers(text: str) -> Iterator[Piece]:
        for each in by_header.split_text(text):
            yield each.page_content, None

    yield "langchain markdown headers", headers


def _llama_index() -> Iterator[tuple[str, Splitter]]:
    from llama_index.core import Document
    from llama_index.core.node_parser import (
        MarkdownNodeParser,
        SentenceSplitter,
        SentenceWindowNodeParser,
        TokenTextSplitter,
    )

    def nodes(parser: object) -> Splitter:
        def split(text: str) -> Iterator[Piece]:
            for each in parser.get_nodes_from_documents([Document(text=text)]):  # type: ignore[attr-defined]
                yield each.text, each.start_char_idx

        return split

    for size in (64, 128, 256):
        yield (
            f"llama-index sentences {size}",
            nodes(SentenceSplitter(chunk_size=size, chunk_overlap=size // 5)),
        )
    yield "llama-index tokens 128", nodes(TokenTextSplitter(chunk_size=128, chunk_overlap=20))
    yield "llama-index markdown", nodes(MarkdownNodeParser())
    yield "llama-index sentence window", nodes(SentenceWindowNodeParser.from_defaults())


def _haystack() -> Iterator[tuple[str, Splitter]]:
    from haystack import Document
    from haystack.components.preprocessors import (
        DocumentSplitter,
        MarkdownHeaderSplitter,
        RecursiveDocumentSplitter,
    )

    def split_with(component: object) -> Splitter:
        component.warm_up()  # type: ignore[attr-defined]

        def split(text: str) -> Iterator[Piece]:
            for each in component.run(documents=[Document(content=text)])["documents"]:  # type: ignore[attr-defined]
                yield each.content, each.meta.get("split_idx_start")

        return split

    yield (
        "haystack words 100",
        split_with(DocumentSplitter(split_by="word", split_length=100, split_overlap=20)),
    )
    yield "haystack passages 2", split_with(DocumentSplitter(split_by="passage", split_length=2))
    for size in (200, 500, 1000):
        yield (
            f"haystack recursive {size}",
            split_with(
                RecursiveDocumentSplitter(
                    split_length=size, split_overlap=size // 5, split_unit="char"
                )
            ),
        )
    yield "haystack markdown headers", split_with(MarkdownHeaderSplitter())


def _chonkie() -> Iterator[tuple[str, Splitter]]:
    from chonkie import FastChunker, RecursiveChunker, SentenceChunker, TokenChunker

    def chunks(chunker: object) -> Splitter:
        def split(text: str) -> Iterator[Piece]:
            for each in chunker(text):  # type: ignore[operator]
                yield each.text, each.start_index

        return split

    for size in (200, 500, 1000):
        overlap = size // 5
        yield (
            f"chonkie tokens {size}",
            chunks(TokenChunker("character", chunk_size=size, chunk_overlap=overlap)),
        )
        yield (
            f"chonkie sentences {size}",
            chunks(SentenceChunker("character", chunk_size=size, chunk_overlap=overlap)),
        )
        yield f"chonkie recursive {size}", chunks(RecursiveChunker("character", chunk_size=size))
    yield "chonkie fast 1000", chunks(FastChunker(chunk_size=1000))


def measure(name: str, split: Splitter, documents: dict[str, str], *, named: bool) -> Row:
    """Return how the pieces of all documents are placed."""
    locator = TextLocator(documents)
    row = Row(name)
    spent = 0.0
    for doc_id, text in documents.items():
        behind = 0
        for piece, told in split(text):
            if not any(char.isalnum() for char in piece):
                row.without_letters += 1
                continue
            begun = time.process_time()
            location = locator.locate(piece, doc_ids=[doc_id] if named else ())
            spent += time.process_time() - begun
            row.pieces += 1
            true = _true_start(piece, told, text, behind)
            behind = behind if true is None else true + 1
            told_apart = location
            if location is None:
                row.nowhere += 1
                continue
            if location.is_ambiguous:
                row.ambiguous += 1
                told_apart = locator.locate(piece, doc_ids=[doc_id] if named else (), near=told)
            if told_apart is None or told_apart.is_ambiguous:
                continue
            is_right = _is_right(told_apart.spans[0], piece, doc_id, text, true)
            row.by_offset += is_right and location.is_ambiguous
            row.right += is_right and not location.is_ambiguous
            row.wrong += not is_right
    row.ms = 1000 * spent / max(1, row.pieces)
    return row


def _folded(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _letter_offsets(text: str) -> list[int]:
    return [at for at, char in enumerate(text) if char.isalnum()]


def _true_start(piece: str, told: int | None, text: str, behind: int) -> int | None:
    """Return where the first letter of a piece stands in its document."""
    wanted = _folded(piece)
    if told is not None and told >= 0 and _folded(text[told : told + len(piece)]) == wanted:
        return told + next(at for at, char in enumerate(piece) if char.isalnum())
    offsets = _letter_offsets(text)
    letters = _folded(text)
    if len(letters) != len(offsets):
        return None
    first = next((at for at, place in enumerate(offsets) if place >= behind), len(offsets))
    at = letters.find(wanted, first)
    return offsets[at] if at >= 0 else None


def _is_right(span: Span, piece: str, doc_id: str, text: str, true: int | None) -> bool:
    if span.doc_id != doc_id:
        return False
    stretch = text[span.start : span.end]
    if true is None:
        return _folded(stretch) in _folded(piece) or _folded(piece) in _folded(stretch)
    first = span.start + next(at for at, char in enumerate(stretch) if char.isalnum())
    return first == true and _folded(stretch) == _folded(piece)


def main() -> None:
    """Print a row a splitter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    paths = sorted(args.documents.rglob("*.md"))
    documents = {
        str(path.relative_to(args.documents)): path.read_text(encoding="utf-8") for path in paths
    }
    print(f"{len(documents)} documents, {sum(map(len, documents.values())):,} characters")
    print(
        f"{'splitter':30}{'pieces':>8}{'right':>8}{'wrong':>7}{'ambig.':>8}"
        f"{'by offset':>11}{'nowhere':>9}{'ms':>7}"
    )
    rows = []
    for name, split in splitters():
        row = measure(name, split, documents, named=args.named)
        rows.append(asdict(row))
        print(
            f"{name:30}{row.pieces:8,}{row.right:8,}{row.wrong:7,}{row.ambiguous:8,}"
            f"{row.by_offset:11,}{row.nowhere:9,}{row.ms:7.2f}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
