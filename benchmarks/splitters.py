"""How well retrieved pieces are placed in their documents: real splitters, real Markdown.

Run it where langchain-text-splitters, llama-index-core, haystack-ai, chonkie and wordllama are
installed, and with `--no-deps` langchain-experimental, langchain-community and langchain-classic:

    python benchmarks/splitters.py DOCUMENTS_DIR [--named] [--altered] [--json FILE]

Splitters by meaning work with the word vectors of wordllama; the tables of NLTK and tiktoken are
those that come with llama-index-core. `--altered` takes what became of pieces instead: a summary
added, words dropped or replaced, letters dropped or mistyped. There a place is right that has at
least half of its letters, and of those of the piece, in common with it.

A piece is placed right where it stands at the offsets that its splitter knows, or, where that tells
none or wrong ones, at the next place of its letters behind the piece before. Offsets are held to
the first and last letter of the piece. `--named` tells the document of each piece, as metadata do.
`by offset` counts the ambiguous pieces that the splitter's own offset puts right; `wrong` those too
that it puts wrong.
"""

import argparse
import importlib.util
import json
import logging
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from ragforge.corpus.text_locations import TextLocator
from ragforge.records import Span
from ragforge.retrieval.local_models import TextVectors, open_model

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
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


def splitters(*, few: bool = False) -> Iterator[tuple[str, Splitter]]:
    """Yield the splitters of four frameworks by name.

    Args:
        few: Leave out those that need more than the frameworks: models, or tables of tokens.
    """
    yield from _langchain()
    if not few:
        yield from _langchain_more()
    for name, how in chain(_llama_index(), _haystack(), _chonkie()):
        if not few or "semantic" not in name:
            yield name, how


def _langchain() -> Iterator[tuple[str, Splitter]]:
    from langchain_text_splitters import (
        MarkdownHeaderTextSplitter,
        MarkdownTextSplitter,
        RecursiveCharacterTextSplitter,
    )

    for size in (200, 500, 1000):
        yield (
            f"langchain recursive {size}",
            _documents(
                RecursiveCharacterTextSplitter(
                    chunk_size=size, chunk_overlap=size // 5, add_start_index=True
                )
            ),
        )
    yield (
        "langchain markdown 500",
        _documents(MarkdownTextSplitter(chunk_size=500, chunk_overlap=50, add_start_index=True)),
    )
    by_header = MarkdownHeaderTextSplitter([("#", "h1"), ("##", "h2"), ("###", "h3")])

    def headers(text: str) -> Iterator[Piece]:
        for each in by_header.split_text(text):
            yield each.page_content, None

    yield "langchain markdown headers", headers


def _documents(splitter: object) -> Splitter:
    def split(text: str) -> Iterator[Piece]:
        for each in splitter.create_documents([text]):  # type: ignore[attr-defined]
            yield each.page_content, each.metadata.get("start_index")

    return split


def _langchain_more() -> Iterator[tuple[str, Splitter]]:
    from langchain_core.embeddings import Embeddings
    from langchain_experimental.text_splitter import SemanticChunker
    from langchain_text_splitters import (
        ExperimentalMarkdownSyntaxTextSplitter,
        NLTKTextSplitter,
        RecursiveCharacterTextSplitter,
        TokenTextSplitter,
    )

    class Vectors(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return _model().vectors(texts).tolist()  # type: ignore[no-any-return]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    def syntax(text: str) -> Iterator[Piece]:
        for each in ExperimentalMarkdownSyntaxTextSplitter().split_text(text):
            yield each.page_content, None

    yield "langchain markdown syntax", syntax
    for size in (64, 256):
        tokens = TokenTextSplitter(
            "cl100k_base", chunk_size=size, chunk_overlap=size // 5, add_start_index=True
        )
        yield f"langchain tokens {size}", _documents(tokens)
    yield (
        "langchain recursive, 128 tokens",
        _documents(
            RecursiveCharacterTextSplitter.from_tiktoken_encoder(
                "cl100k_base", chunk_size=128, chunk_overlap=20, add_start_index=True
            )
        ),
    )
    sentences = NLTKTextSplitter(chunk_size=500, chunk_overlap=0, add_start_index=True)
    yield "langchain NLTK sentences 500", _documents(sentences)
    yield "langchain semantic", _documents(SemanticChunker(Vectors(), add_start_index=True))


def _llama_index() -> Iterator[tuple[str, Splitter]]:
    from llama_index.core import Document
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.node_parser import (
        MarkdownNodeParser,
        SemanticSplitterNodeParser,
        SentenceSplitter,
        SentenceWindowNodeParser,
        TokenTextSplitter,
    )

    class Vectors(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return _model().vectors([text])[0].tolist()  # type: ignore[no-any-return]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

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
    semantic = SemanticSplitterNodeParser.from_defaults(embed_model=Vectors())
    yield "llama-index semantic", nodes(semantic)


def _haystack() -> Iterator[tuple[str, Splitter]]:
    from haystack import Document, component
    from haystack.components.preprocessors import (
        DocumentSplitter,
        EmbeddingBasedDocumentSplitter,
        MarkdownHeaderSplitter,
        RecursiveDocumentSplitter,
    )

    @component
    class Vectors:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]) -> dict[str, list[Document]]:
            for each in documents:
                each.embedding = _model().vectors([each.content])[0].tolist()
            return {"documents": documents}

    def split_with(part: object) -> Splitter:
        part.warm_up()  # type: ignore[attr-defined]

        def split(text: str) -> Iterator[Piece]:
            for each in part.run(documents=[Document(content=text)])["documents"]:  # type: ignore[attr-defined]
                yield each.content, each.meta.get("split_idx_start")

        return split

    yield (
        "haystack words 100",
        split_with(DocumentSplitter(split_by="word", split_length=100, split_overlap=20)),
    )
    for by, length in (("passage", 2), ("sentence", 4), ("period", 4), ("line", 8)):
        yield (
            f"haystack {by}s {length}",
            split_with(DocumentSplitter(split_by=by, split_length=length)),
        )
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
    semantic = EmbeddingBasedDocumentSplitter(document_embedder=Vectors())
    yield "haystack semantic", split_with(semantic)


def _chonkie() -> Iterator[tuple[str, Splitter]]:
    from chonkie import (
        FastChunker,
        RecursiveChunker,
        SemanticChunker,
        SentenceChunker,
        TokenChunker,
    )
    from chonkie.embeddings import BaseEmbeddings

    class Vectors(BaseEmbeddings):
        @property
        def dimension(self) -> int:
            return 256

        def embed(self, text: str) -> object:
            return _model().vectors([text])[0]

        def get_tokenizer(self) -> object:
            return len

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
    yield "chonkie semantic 500", chunks(SemanticChunker(Vectors(), chunk_size=500))


_OPENED: list[TextVectors] = []


def _model() -> TextVectors:
    if not _OPENED:
        _OPENED.append(open_model("static"))
    return _OPENED[0]


def tell_where_tables_are() -> None:
    """Let NLTK and tiktoken read what llama-index-core brings."""
    spec = importlib.util.find_spec("llama_index.core")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "_static"
    os.environ.setdefault("NLTK_DATA", str(folder / "nltk_cache"))
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder / "tiktoken_cache"))


_SUMMARY = (
    "This passage belongs to the reference documentation and explains how the feature named above "
    "behaves in practice."
)
_OTHERS = ("moreover", "therefore", "system", "value", "certain", "usually")
_SHARE_OF_WORDS = 0.1
_SHARE_OF_LETTERS = 0.02
_LEAST_ALTERED = 150
"""Characters of a piece from which on it is altered."""


def alterations() -> Iterator[tuple[str, Callable[[str], str]]]:
    """Yield what models and careless pipelines make of texts, by name."""
    chance = random.Random(0)

    def words(change: Callable[[str], str]) -> Callable[[str], str]:
        return lambda text: " ".join(
            change(word) if chance.uniform(0, 1) < _SHARE_OF_WORDS else word
            for word in text.split()
        )

    def letters(change: Callable[[str], str]) -> Callable[[str], str]:
        return lambda text: "".join(
            change(each) if chance.uniform(0, 1) < _SHARE_OF_LETTERS else each for each in text
        )

    yield "summary in front", lambda text: f"{_SUMMARY} {text}"
    yield "summary behind", lambda text: f"{text} {_SUMMARY}"
    yield "a tenth of words dropped", words(lambda _: "")
    yield "a tenth of words replaced", words(lambda _: chance.choice(_OTHERS))
    yield "a 50th of characters dropped", letters(lambda _: "")
    yield "a 50th of characters mistyped", letters(lambda _: chance.choice("abcdefgh"))
    yield "CRLF, tabs and no marks", lambda text: text.replace("\n", "\r\n\t").replace("`", "")


def measure_altered(
    name: str, change: Callable[[str], str], documents: dict[str, str], *, named: bool
) -> Row:
    """Return how altered pieces of 500 characters of all documents are placed."""
    locator, row, spent = TextLocator(documents), Row(name), 0.0
    split = dict(_langchain())["langchain recursive 500"]
    for doc_id, text in documents.items():
        for piece, start in split(text):
            if len(piece) < _LEAST_ALTERED or start is None:
                continue
            altered = change(piece)
            begun = time.process_time()
            location = locator.locate(altered, doc_ids=[doc_id] if named else ())
            spent += time.process_time() - begun
            row.pieces += 1
            if location is None:
                row.nowhere += 1
            elif location.is_ambiguous:
                row.ambiguous += 1
            elif _is_about(
                location.spans[0], Span(doc_id=doc_id, start=start, end=start + len(piece))
            ):
                row.right += 1
            else:
                row.wrong += 1
    row.ms = 1000 * spent / max(1, row.pieces)
    return row


def _is_about(span: Span, true: Span) -> bool:
    both = min(span.end, true.end) - max(span.start, true.start)
    either = max(span.end, true.end) - min(span.start, true.start)
    return span.doc_id == true.doc_id and 2 * both >= either


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
        return told + next(at for at, char in enumerate(text[told:]) if char.isalnum())
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
    parser.add_argument("--altered", action="store_true")
    parser.add_argument(
        "--few", action="store_true", help="those that need nothing beside the four packages"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    tell_where_tables_are()
    paths = sorted(args.documents.rglob("*.md"))
    documents = {
        str(path.relative_to(args.documents)): path.read_text(encoding="utf-8") for path in paths
    }
    print(f"{len(documents)} documents, {sum(map(len, documents.values())):,} characters")
    print(
        f"{'splitter':32}{'pieces':>8}{'right':>8}{'wrong':>7}{'ambig.':>8}"
        f"{'by offset':>11}{'nowhere':>9}{'ms':>7}"
    )
    rows = []
    work = alterations() if args.altered else splitters(few=args.few)
    for name, how in work:
        place = measure_altered if args.altered else measure
        row = place(name, how, documents, named=args.named)
        rows.append(asdict(row))
        print(
            f"{name:32}{row.pieces:8,}{row.right:8,}{row.wrong:7,}{row.ambiguous:8,}"
            f"{row.by_offset:11,}{row.nowhere:9,}{row.ms:7.2f}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
