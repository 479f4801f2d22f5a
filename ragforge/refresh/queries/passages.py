"""The documents as they are now, as far as a check needs to see them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ragforge.corpus.quote_locations import CONTEXT_CHARS, Location
from ragforge.deferred import dataclass
from ragforge.files.set.sorted_records import each_chunk
from ragforge.pipeline.surveying import StoredSurvey
from ragforge.records import Chunk, Evidence
from ragforge.refresh.quotes.locations import LocatedQuery, LocatedQuote
from ragforge.stages.generate.checks.absence import window
from ragforge.stages.recheck import Passage, titles_above, touching, widened

AROUND: Final = 1000
"""Characters that are shown to each side of a quote, within its document."""
HITS: Final = 5
"""Chunks that are shown of what a search finds."""


@dataclass(frozen=True, slots=True)
class CorpusNow:
    """The corpus as it is now.

    Args:
        chunks_path: All chunks, sorted by id.
        survey: Opens what is known of it; called only when something has to be searched for,
            since making it takes as long as the corpus is large.
    """

    chunks_path: Path
    survey: Callable[[], StoredSurvey]


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A part of a chunk: its text[start:end]."""

    chunk: Chunk
    start: int
    end: int

    @property
    def passage(self) -> Passage:
        """What is shown of it."""
        text = self.chunk.text
        titles = titles_above(text, self.start, self.chunk.heading_path)
        return Passage(text[self.start : self.end], titles)

    def evidence(self, place: Location, hop: int) -> Evidence:
        """Return the sentences around a place of the passage as evidence."""
        chunk = self.chunk
        inner = Location(self.start + place.start, self.start + place.end)
        held = widened(inner, chunk.text)
        known = chunk.end > chunk.start
        return Evidence(
            doc_id=chunk.doc_id,
            chunk_id=chunk.chunk_id,
            quote=chunk.text[held.start : held.end],
            start=chunk.offset(held.start) if known else None,
            end=chunk.end_offset(held.end) if known else None,
            prefix=chunk.text[max(0, held.start - CONTEXT_CHARS) : held.start],
            suffix=chunk.text[held.end : held.end + CONTEXT_CHARS],
            hop=hop,
        )


class NearbyChunks:
    """The chunks around the quotes of some queries, read in one pass over the corpus.

    Args:
        chunks_path: All chunks as they are now.
        located_queries: The queries that are checked; where there are none, nothing is read.

    Raises:
        DataError: The chunks cannot be read.
    """

    def __init__(self, chunks_path: Path, located_queries: Sequence[LocatedQuery]) -> None:
        wanted: dict[str, list[Location]] = {}
        for located in located_queries:
            for quote in located.quotes:
                region = _region(quote)
                if region is not None:
                    wanted.setdefault(quote.doc_id, []).append(region)
        self._chunks = _read(chunks_path, wanted) if wanted else {}

    def of(self, located: LocatedQuery) -> list[ShownPassage]:
        """Return what stands around the quotes of a query; where one is gone, where it stood."""
        return gathered(shown for quote in located.quotes for shown in self._around(quote))

    def _around(self, quote: LocatedQuote) -> list[ShownPassage]:
        region = _region(quote)
        placed = quote.placement.chunks if quote.placement else ()
        if region is None:
            return [ShownPassage(chunk, 0, len(chunk.text)) for chunk in placed]
        near = [*self._chunks.get(quote.doc_id, ()), *placed]
        by_id = {chunk.chunk_id: chunk for chunk in near if _overlaps(chunk, region)}
        ordered = sorted(by_id.values(), key=lambda chunk: (chunk.start, chunk.chunk_id))
        return [_part(chunk, region) for chunk in ordered]


def gathered(parts: Iterable[ShownPassage]) -> list[ShownPassage]:
    """Return parts in their order, those of one chunk as one that spans them."""
    by_chunk: dict[str, ShownPassage] = {}
    for part in parts:
        known = by_chunk.get(part.chunk.chunk_id, part)
        start, end = min(known.start, part.start), max(known.end, part.end)
        by_chunk[part.chunk.chunk_id] = ShownPassage(part.chunk, start, end)
    return [part for part in by_chunk.values() if part.passage.text.strip()]


async def searched(
    located: LocatedQuery, expected: str, survey: StoredSurvey
) -> list[ShownPassage]:
    """Return what BM25 finds in the whole corpus for a question with its answer.

    Raises:
        CallError: The search failed.
    """
    looked_for = f"{located.query.asked} {expected}"
    hits = await survey.bm25.retrieve(looked_for, HITS)
    return [best_part(survey.chunk(hit.chunk_id), looked_for) for hit in hits]


def best_part(chunk: Chunk, looked_for: str) -> ShownPassage:
    """Return the part of a chunk that has most of the words looked for; short ones are whole."""
    text = window(chunk.text, looked_for)
    start = chunk.text.find(text)
    return ShownPassage(chunk, start, start + len(text))


def _region(quote: LocatedQuote) -> Location | None:
    """Return where a quote stands or stood, with what is shown around; None where unknown."""
    at = quote.placement or quote.evidence
    if at.start is None or at.end is None:
        return None
    return Location(max(0, at.start - AROUND), at.end + AROUND)


def _read(path: Path, wanted: Mapping[str, Sequence[Location]]) -> dict[str, list[Chunk]]:
    by_document: dict[str, list[Chunk]] = {}
    for _, chunk in each_chunk(path):
        regions = wanted.get(chunk.doc_id, ())
        if any(_overlaps(chunk, region) for region in regions):
            by_document.setdefault(chunk.doc_id, []).append(chunk)
    return by_document


def _overlaps(chunk: Chunk, region: Location) -> bool:
    return chunk.start < region.end and region.start < chunk.end


def _part(chunk: Chunk, region: Location) -> ShownPassage:
    """Return what of a chunk lies in a region, in whole sentences."""
    place = Location(chunk.place(region.start), chunk.place(region.end))
    part = touching(place, chunk.text)
    return ShownPassage(chunk, part.start, part.end)
