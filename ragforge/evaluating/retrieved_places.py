"""Lengths and places of what runs retrieved: chunks of the set, and texts that others cut."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ragforge.deferred import dataclass
from ragforge.files.set.dataset import Dataset
from ragforge.records import Chunk, RetrievedText, Span


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text that was retrieved, and where it stands.

    Args:
        length: Its characters.
        n_tokens: What it takes of a prompt, estimated.
        places: Where it stands in the documents; none where that is not known, several where they
            repeat it.
        text: Its wording where it has no place, or is only like it, so that quotes must be looked
            for in it; else "".
    """

    length: int
    n_tokens: int
    places: tuple[Span, ...] = ()
    text: str = ""


def retrieved_places(dataset: Dataset, ids: Collection[str]) -> dict[str, PlacedText]:
    """Return what is retrieved under some ids: chunks, texts of retrievers, whole documents.

    A document is found by its id where labels name documents, as it can be relevant there alone.

    The chunks are read once, one at a time. An id that the set knows nothing of is left out.

    Args:
        dataset: Has chunks, and `retrieved.jsonl` where texts that are no chunks were retrieved.
        ids: As runs hold them.

    Raises:
        DataError: The chunks or the texts cannot be read.
    """
    placed = {
        item.chunk_id: _of_text(item) for item in dataset.retrieved_texts() if item.chunk_id in ids
    }
    if dataset.chunks_path.exists():
        names_documents = dataset.manifest.level is not None
        placed |= _of_chunks(dataset.chunks(), ids, names_documents=names_documents)
    return placed


def _of_chunks(
    chunks: Iterable[Chunk], ids: Collection[str], *, names_documents: bool
) -> dict[str, PlacedText]:
    placed: dict[str, PlacedText] = {}
    of_documents: list[Chunk] = []
    for chunk in chunks:
        if chunk.chunk_id in ids:
            placed[chunk.chunk_id] = _placed(chunk.text, _place(chunk))
        if names_documents and chunk.doc_id in ids:
            of_documents.append(chunk)
    return _whole(of_documents) | placed


def _whole(chunks: Sequence[Chunk]) -> dict[str, PlacedText]:
    """Return whole documents by id, as their chunks have them."""
    # Its numpy is for whole documents.
    from ragforge.corpus.file_texts import file_texts, rebuilt_documents

    ends = {doc_id: len(text) for doc_id, text in file_texts(chunks).items()}
    texts = {document.doc_id: document.text for document in rebuilt_documents(chunks)}
    starts: dict[str, int] = {}
    unplaced = {chunk.doc_id for chunk in chunks if not _place(chunk)}
    for chunk in chunks:
        starts[chunk.doc_id] = min(chunk.start, starts.get(chunk.doc_id, chunk.start))
    placed = {}
    for doc_id, text in texts.items():
        span = Span(doc_id=doc_id, start=starts[doc_id], end=ends[doc_id])
        places = () if doc_id in unplaced else (span,)
        placed[doc_id] = _placed(text[starts[doc_id] :], places)
    return placed


def _place(chunk: Chunk) -> tuple[Span, ...]:
    """Return the place of a chunk; none where it has no offsets."""
    if chunk.end <= chunk.start:
        return ()
    return (Span(doc_id=chunk.doc_id, start=chunk.start, end=chunk.end),)


def _of_text(item: RetrievedText) -> PlacedText:
    placed = _placed(item.text, item.places)
    return placed if item.likeness >= 1 else replace(placed, text=item.text)


def _placed(text: str, places: tuple[Span, ...]) -> PlacedText:
    from ragforge.corpus.quality import token_count  # Its numpy is for other findings.

    return PlacedText(len(text), token_count(text), places, "" if places else text)
