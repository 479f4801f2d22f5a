"""Grades of texts that the chunks no longer have, since somebody changed them by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragforge.corpus.anchors import ChunkIndex
from ragforge.corpus.chunking import fits_id
from ragforge.files.dataset import Dataset
from ragforge.records import Chunk, Judgment
from ragforge.stages.asking import locate_shown


@dataclass(frozen=True, slots=True)
class LostGrades:
    """What became of the judgments of a set whose chunks were changed.

    Args:
        kept: The judgments without the grades of judges whose text is gone.
        n_of_judges: How many of these there are.
        n_of_people: Grades of people whose text is gone; they are kept.
    """

    kept: Sequence[Judgment] = ()
    n_of_judges: int = 0
    n_of_people: int = 0


def lost_grades(dataset: Dataset) -> LostGrades:
    """Find the grades of texts that are gone; none where nobody changed the chunks by hand.

    A text is gone where the quote that a grade rests on no longer stands in its chunk, or where
    ragforge made the id of the chunk from another content.

    Raises:
        DataError: The chunks or the judgments cannot be read.
    """
    if not dataset.changed_by_hand("chunks.jsonl"):
        return LostGrades()
    judgments = dataset.judgments()
    graded = {item.chunk_id for item in judgments if not item.is_failed}
    chunks = {chunk.chunk_id: chunk for chunk in dataset.chunks() if chunk.chunk_id in graded}
    replaced = {chunk_id for chunk_id, chunk in chunks.items() if not fits_id(chunk)}
    quotes = [
        (item.chunk_id, item.evidence)
        for item in judgments
        if item.chunk_id not in replaced and _lacks_quote(item, chunks.get(item.chunk_id))
    ]
    gone = set(quotes) - _running_over(dataset, quotes, chunks)
    kept, n_of_people = [], 0
    for item in judgments:
        is_lost = item.chunk_id in replaced or (item.chunk_id, item.evidence) in gone
        if item.is_failed or not is_lost:
            kept.append(item)
        elif item.source == "human":
            kept.append(item)
            n_of_people += 1
    return LostGrades(kept, len(judgments) - len(kept), n_of_people)


def _lacks_quote(judgment: Judgment, chunk: Chunk | None) -> bool:
    """Whether the quote of a judgment does not stand in its chunk as a judge sees that."""
    if chunk is None or not judgment.evidence.strip():
        return False
    return locate_shown(judgment.evidence, chunk.text) is None


def _running_over(
    dataset: Dataset, quotes: Sequence[tuple[str, str]], chunks: Mapping[str, Chunk]
) -> set[tuple[str, str]]:
    """Return the quotes, each with its chunk, that run over it and others of its document."""
    if not quotes:
        return set()
    documents = {chunks[chunk_id].doc_id for chunk_id, _ in quotes}
    of_these = (chunk for chunk in dataset.chunks() if chunk.doc_id in documents)
    index = ChunkIndex(sorted(of_these, key=lambda chunk: (chunk.start, chunk.chunk_id)))
    return {
        (chunk_id, quote)
        for chunk_id, quote in quotes
        for place in index.places(quote, chunks[chunk_id].doc_id)
        if chunk_id in {chunk.chunk_id for chunk in place.chunks}
    }
