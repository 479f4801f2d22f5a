"""Grades of retrieved texts by rule: a text that covers the evidence of a query needs no judge.

As chunks that hold evidence have the grade of the query's own truth, whatever cut them: 3 for all
of it, 2 for a part.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ragforge.corpus.quote_locations import fold
from ragforge.records import Evidence, Judgment, Query, RetrievedText, Span
from ragforge.stages.generate.truth import evidence_judgment


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    text: RetrievedText


class TextsInPlace:
    """Retrieved texts by where they stand.

    Args:
        texts: Of all runs.
    """

    def __init__(self, texts: Iterable[RetrievedText]) -> None:
        self._by_document: dict[str, list[_Place]] = {}
        self._by_wording: dict[str, RetrievedText] = {}
        self._texts = list(texts)
        for text in self._texts:
            for span in text.places:
                place = _Place(span.start, span.end, text)
                self._by_document.setdefault(span.doc_id, []).append(place)
            if not text.places or text.likeness < 1:
                self._by_wording[text.chunk_id] = text
        self._longest: dict[str, int] = {}
        for doc_id, places in self._by_document.items():
            places.sort(key=lambda place: (place.start, place.end, place.text.chunk_id))
            self._longest[doc_id] = max(place.end - place.start for place in places)

    @property
    def has_unplaced(self) -> bool:
        """Whether some are looked at by their wording."""
        return bool(self._by_wording)

    def __len__(self) -> int:
        """Return how many texts there are."""
        return len(self._texts)

    def judgments(self, query: Query, retrieved: Collection[str]) -> Iterator[Judgment]:
        """Yield the judgments of the texts that hold evidence of a query, sorted by text.

        What covers at least half of a quote holds a part of it, as of chunks. A text without a
        place, or that stands there in part, holds a quote where it has all of its words.

        Args:
            query: With evidence or without.
            retrieved: Ids that its rankings hold; others are not looked at by their wording.
        """
        held: dict[str, dict[Evidence, bool]] = {}
        for item in query.evidence:
            for chunk_id, is_whole in self._holding(item, retrieved):
                of_text = held.setdefault(chunk_id, {})
                of_text[item] = of_text.get(item, False) or is_whole
        hops = {item.hop for item in query.evidence}
        for chunk_id, of_text in sorted(held.items()):
            yield evidence_judgment(query, chunk_id, list(of_text.items()), hops)

    def _holding(self, item: Evidence, retrieved: Collection[str]) -> Iterator[tuple[str, bool]]:
        if item.start is not None and item.end is not None:
            span = Span(doc_id=item.doc_id, start=item.start, end=item.end)
            first, behind = _core(item.quote, span)
            for place in self._near(span):
                if place.text.likeness < 1:
                    continue
                shared = min(place.end, span.end) - max(place.start, span.start)
                is_whole = place.start <= first and behind <= place.end
                if is_whole or 2 * shared >= span.end - span.start:
                    yield place.text.chunk_id, is_whole
        quote = fold(item.quote)
        for chunk_id in retrieved:
            text = self._by_wording.get(chunk_id)
            if text is not None and quote in fold(text.text):
                yield chunk_id, True

    def _near(self, span: Span) -> Iterator[_Place]:
        """Yield the places that share something with a stretch of a document."""
        places = self._by_document.get(span.doc_id, [])
        longest = self._longest.get(span.doc_id, 0)
        first = bisect_left(places, span.start - longest, key=_start)
        for place in places[first : bisect_left(places, span.end, key=_start)]:
            if place.end > span.start:
                yield place


def _start(place: _Place) -> int:
    return place.start


def _core(quote: str, span: Span) -> tuple[int, int]:
    """Return where the letters of a quote begin and end: splitters strip what is around them."""
    letters = [at for at, char in enumerate(quote) if char.isalnum()]
    if not letters or len(quote) != span.end - span.start:
        return span.start, span.end
    return span.start + letters[0], span.start + letters[-1] + 1
