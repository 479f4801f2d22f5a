"""Grades of retrieved texts by rule: a text that covers the evidence of a query needs no judge.

As chunks that hold evidence have the grade of the query's own truth, whatever cut them: 3 for all
of it, 2 for a part. What the documents repeat holds it wherever it stands under the same titles.
"""

from bisect import bisect_left
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from types import MappingProxyType

from ragforge.corpus.letters import GRAM
from ragforge.corpus.quote_locations import fold
from ragforge.corpus.wordings import Wording
from ragforge.deferred import dataclass
from ragforge.records import Chunk, Evidence, Judgment, Query, RetrievedText, Span


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    text: RetrievedText


class TextsInPlace:
    """Retrieved texts by where they stand.

    A text or chunk holds evidence by its wording under the same titles. Under others it may be of
    another thing: the same sentence stands in the manual of each product.

    Args:
        texts: Of all runs.
        chunks: Of the set, which tell the titles of all.
        wanted: Ids of those among them at evidence, whose own truth is known, and of others that
            may hold it; all of them where None.
    """

    def __init__(
        self,
        texts: Iterable[RetrievedText],
        chunks: Iterable[Chunk] = (),
        wanted: Container[str] | None = None,
    ) -> None:
        self._by_document: dict[str, list[_Place]] = {}
        self._texts = {text.chunk_id: text for text in texts}
        self._chunks: dict[str, Chunk] = {}
        self._titles: dict[str, set[tuple[str, ...]]] = {}
        self._wordings: dict[str, Wording] = {}
        for text in self._texts.values():
            for span in text.places:
                place = _Place(span.start, span.end, text)
                self._by_document.setdefault(span.doc_id, []).append(place)
        self._longest: dict[str, int] = {}
        for doc_id, places in self._by_document.items():
            places.sort(key=lambda place: (place.start, place.end, place.text.chunk_id))
            self._longest[doc_id] = max(place.end - place.start for place in places)
        for chunk in chunks:
            if wanted is None or chunk.chunk_id in wanted:
                self._chunks[chunk.chunk_id] = chunk
                self._titles[chunk.chunk_id] = {chunk.heading_path}
            for place in self._near(chunk.doc_id, chunk.start, chunk.end):
                self._titles.setdefault(place.text.chunk_id, set()).add(chunk.heading_path)

    def judgments(
        self,
        query: Query,
        retrieved: Collection[str],
        given: Mapping[str, int] = MappingProxyType({}),
    ) -> Iterator[Judgment]:
        """Yield the judgments of the texts that hold evidence of a query, sorted by text.

        What covers at least half of a quote holds a part of it, as of chunks; so does what reads
        the same elsewhere. A text without a place, or that is only like it, holds a quote where it
        has all of its words. A quote of fewer than `GRAM` letters is looked for in these, and
        beside another one of the query: it may stand anywhere by chance. Where people graded all
        quotes that a text holds, it has no more than they gave.

        Args:
            query: With evidence or without.
            retrieved: Ids that its rankings hold; others are not looked at by their wording.
            given: What people gave to its quotes, by these as `fold` returns them.
        """
        from ragforge.stages.generate.truth import evidence_judgment

        held: dict[str, dict[Evidence, bool]] = {}
        for item in query.evidence:
            for chunk_id, is_whole in self._holding(item, retrieved):
                of_text = held.setdefault(chunk_id, {})
                of_text[item] = of_text.get(item, False) or is_whole
        self._add_short(query, held)
        for chunk_id, of_text in sorted(held.items()):
            judgment = evidence_judgment(query, chunk_id, list(of_text.items()))
            whole = [fold(item.quote) for item, is_whole in of_text.items() if is_whole]
            if whole and all(quote in given for quote in whole):
                highest = max(given[quote] for quote in whole)
                judgment = judgment.model_copy(update={"grade": min(judgment.grade or 0, highest)})
            yield judgment

    def _holding(self, item: Evidence, retrieved: Collection[str]) -> Iterator[tuple[str, bool]]:
        if item.start is not None and item.end is not None:
            span = Span(doc_id=item.doc_id, start=item.start, end=item.end)
            first, behind = _core(item.quote, span)
            for place in self._near(span.doc_id, span.start, span.end):
                if place.text.likeness < 1:
                    continue
                shared = min(place.end, span.end) - max(place.start, span.start)
                is_whole = place.start <= first and behind <= place.end
                if is_whole or 2 * shared >= span.end - span.start:
                    yield place.text.chunk_id, is_whole
        wording = Wording(item.quote)
        for chunk_id in retrieved if wording.letters else ():
            share = self._share(chunk_id, item, wording)
            if 2 * share >= 1:
                yield chunk_id, share >= 1

    def _share(self, chunk_id: str, item: Evidence, quote: Wording) -> float:
        """Return how much of a quote a text or chunk has by its wording."""
        text, chunk = self._texts.get(chunk_id), self._chunks.get(chunk_id)
        if not self._has_titles(chunk_id, item):
            return 0.0
        if text is not None and (not text.places or text.likeness < 1):
            return float(any(self._wording(chunk_id, text.text).places(quote)))
        copy = text or (chunk if chunk and not _is_at(chunk, item) else None)
        if copy is None or len(quote.letters) < GRAM:
            return 0.0
        return self._wording(chunk_id, copy.text).n_shared(quote) / len(quote.letters)

    def _has_titles(self, chunk_id: str, item: Evidence) -> bool:
        """Whether a text or chunk stands under the titles of a quote, as far as these are known."""
        home, titles = self._chunks.get(item.chunk_id), self._titles.get(chunk_id)
        return home is None or not titles or home.heading_path in titles

    def _add_short(self, query: Query, held: Mapping[str, dict[Evidence, bool]]) -> None:
        """Add the short quotes that stand beside others in what repeats these elsewhere."""
        wordings = {item: Wording(item.quote) for item in query.evidence}
        short = {item: of for item, of in wordings.items() if 0 < len(of.letters) < GRAM}
        at_home = {
            place.text.chunk_id
            for item in (query.evidence if short else ())
            for place in self._near(item.doc_id, item.start or 0, item.end or 0)
        }
        for chunk_id, of_text in held.items() if short else ():
            copy = self._texts.get(chunk_id) or self._chunks.get(chunk_id)
            if copy is None or chunk_id in at_home or not any(of_text.values()):
                continue
            wording = self._wording(chunk_id, copy.text)
            of_text |= {item: True for item, of in short.items() if any(wording.places(of))}

    def _wording(self, chunk_id: str, text: str) -> Wording:
        if chunk_id not in self._wordings:
            self._wordings[chunk_id] = Wording(text)
        return self._wordings[chunk_id]

    def _near(self, doc_id: str, start: int, end: int) -> Iterator[_Place]:
        """Yield the places that share something with a stretch of a document."""
        places = self._by_document.get(doc_id, [])
        longest = self._longest.get(doc_id, 0)
        first = bisect_left(places, start - longest, key=_start)
        for place in places[first : bisect_left(places, end, key=_start)]:
            if place.end > start:
                yield place


def _is_at(chunk: Chunk, item: Evidence) -> bool:
    """Whether a chunk stands where a quote does."""
    if item.start is None or item.end is None:
        return item.chunk_id == chunk.chunk_id
    is_apart = chunk.end <= item.start or item.end <= chunk.start
    return item.doc_id == chunk.doc_id and not is_apart


def _start(place: _Place) -> int:
    return place.start


def _core(quote: str, span: Span) -> tuple[int, int]:
    """Return where the letters of a quote begin and end: splitters strip what is around them."""
    letters = [at for at, char in enumerate(quote) if char.isalnum()]
    if not letters or len(quote) > span.end - span.start:
        return span.start, span.end
    return span.start + letters[0], span.end - (len(quote) - letters[-1] - 1)
