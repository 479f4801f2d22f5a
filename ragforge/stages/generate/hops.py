"""The second chunk of a query that needs two."""

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from heapq import nsmallest
from itertools import pairwise
from math import log
from typing import Final

from ragforge.corpus.survey import Survey
from ragforge.deferred import dataclass, pattern
from ragforge.records import Chunk, QueryType, Slot
from ragforge.retrieval import Retriever
from ragforge.scripts import has_unspaced
from ragforge.stages.words import content_stems

HITS: Final = 30
"""Ranks that are looked through for a chunk of another document."""

_LONGEST = 4000
"""Characters of the source that are searched with; embedding models take no more."""
_FEWEST_SHARED = 2
_FEWEST_TERMS = 8
"""Different terms that a chunk must have to carry its part of an answer."""
_SAME = 0.8
"""Share of common terms from which two texts say the same."""
_NEAREST = 200
"""Chunks of a long document that are compared, those around the source."""
_RARE_SHARE = 4
"""A term is rare among hits if one in so many has it, or two do."""
_SAMPLE = 200
_COMMON_SHARE = 0.1
_SHORTEST_TERM = 3
_LINK = pattern(r"\]\(\s*<?([^()\s<>#?]+)|href=[\"']([^\"'#?]+)|:doc:`(?:[^`<]*<)?([^`<>]+)")


async def partner(
    source: Chunk,
    wanted: QueryType,
    survey: Survey,
    retriever: Retriever,
    common: Collection[str] = frozenset(),
) -> Chunk | None:
    """Return the chunk to ask about together with the source; None where there is none.

    Within a document it is the one with most weight of rare shared terms. Across documents it is
    the first hit of the source's text that is of another document, says something else, and shares
    two rare terms or a link; failing that, a chunk of a document that the source links to.

    Args:
        source: The first chunk.
        wanted: `multi_hop` or `multi_hop_across`.
        survey: Of the corpus.
        retriever: Finds what is like the source in other documents.
        common: Terms that are nowhere rare, see `common_terms`.

    Raises:
        CallError, RagforgeError: As the retriever raises them.
    """
    near_duplicates = frozenset(survey.near_duplicates(source.chunk_id))
    seen = _Seen(source, frozenset(terms(source.text)), near_duplicates)
    if wanted == "multi_hop":
        return _within(seen, survey, common)
    hits = await retriever.retrieve(source.text[:_LONGEST], HITS)
    found = _chunks((hit.chunk_id for hit in hits), survey)
    return _across(seen, found, survey, common)


def joined(slot: Slot, other: Chunk) -> Slot:
    """Return the slot with its second chunk."""
    return slot.model_copy(
        update={
            "chunk_ids": (*slot.chunk_ids, other.chunk_id),
            "doc_ids": (*slot.doc_ids, other.doc_id),
        }
    )


def common_terms(survey: Survey, seed: int) -> frozenset[str]:
    """Return the terms that one chunk in ten has, by a sample of 200 chunks.

    Reads the cards once; empty for corpora so small that every term is rare.
    """

    def place(chunk_id: str) -> bytes:
        return sha256(f"{seed}\n{chunk_id}".encode()).digest()

    ids = (card.chunk_id for card in survey.cards() if card.is_askable)
    sample = nsmallest(_SAMPLE, ids, key=place)
    counts = Counter(term for one in sample for term in set(terms(survey.chunk(one).text)))
    least = max(_COMMON_SHARE * len(sample), 2 * _FEWEST_SHARED)
    return frozenset(term for term, count in counts.items() if count > least)


def terms(text: str) -> list[str]:
    """Return the stems of a text that may tell what it is about, and pairs of ideographs."""
    stems = content_stems(text)
    pairs = [
        one + other
        for one, other in pairwise(stems)
        if len(one) == len(other) == 1 and has_unspaced(one) and has_unspaced(other)
    ]
    return [stem for stem in stems if len(stem) >= _SHORTEST_TERM] + pairs


@dataclass(frozen=True, slots=True)
class _Seen:
    chunk: Chunk
    terms: frozenset[str]
    near_duplicates: frozenset[str]

    def is_matched_by(self, other: Chunk, its_terms: Collection[str]) -> bool:
        """Whether the other can be asked about beside the source: long enough, and not the same."""
        if other.chunk_id == self.chunk.chunk_id or other.chunk_id in self.near_duplicates:
            return False
        both = len(self.terms.intersection(its_terms))
        either = len(self.terms) + len(its_terms) - both
        return len(its_terms) >= _FEWEST_TERMS and both < _SAME * either


def _within(seen: _Seen, survey: Survey, common: Collection[str]) -> Chunk | None:
    ids = _around(seen.chunk.chunk_id, survey.in_document(seen.chunk.doc_id))
    chunks = list(_chunks(ids, survey))
    found = [frozenset(terms(chunk.text)) for chunk in chunks]
    spread = Counter(term for its_terms in found for term in its_terms)
    best, most = None, 0.0
    for chunk, its_terms in zip(chunks, found, strict=True):
        if not seen.is_matched_by(chunk, its_terms):
            continue
        shared = sorted((seen.terms & its_terms).difference(common))
        weight = sum(log((len(chunks) + 1) / spread[term]) for term in shared)
        weight /= len(its_terms) ** 0.5
        if weight > most:
            best, most = chunk, weight
    return best


def _around(chunk_id: str, ids: Sequence[str]) -> Sequence[str]:
    if len(ids) <= _NEAREST or chunk_id not in ids:
        return ids[:_NEAREST]
    start = max(0, list(ids).index(chunk_id) - _NEAREST // 2)
    return ids[start : start + _NEAREST]


def _across(
    seen: _Seen, candidates: Iterable[Chunk], survey: Survey, common: Collection[str]
) -> Chunk | None:
    others = [chunk for chunk in candidates if chunk.doc_id != seen.chunk.doc_id]
    all_terms = [frozenset(terms(chunk.text)) for chunk in others]
    spread = Counter(term for its_terms in all_terms for term in its_terms)
    most = max(_FEWEST_SHARED, len(others) // _RARE_SHARE)
    rare = {term for term in seen.terms.difference(common) if spread[term] <= most}
    targets = set(_linked(seen.chunk))
    for chunk, its_terms in zip(others, all_terms, strict=True):
        is_near = len(rare & its_terms) >= _FEWEST_SHARED
        is_linked = chunk.doc_id in targets or seen.chunk.doc_id in set(_linked(chunk))
        if (is_near or is_linked) and seen.is_matched_by(chunk, its_terms):
            return chunk
    return _linked_to(seen, sorted(targets), survey)


def _linked_to(seen: _Seen, doc_ids: Iterable[str], survey: Survey) -> Chunk | None:
    """Return the chunk of the linked documents that shares most terms with the source."""
    best, most = None, 0
    for doc_id in doc_ids:
        for chunk in _chunks(survey.in_document(doc_id)[:_NEAREST], survey):
            its_terms = frozenset(terms(chunk.text))
            shared = len(seen.terms & its_terms)
            if shared > most and seen.is_matched_by(chunk, its_terms):
                best, most = chunk, shared
    return best


def _linked(chunk: Chunk) -> Iterator[str]:
    """Yield the ids that documents would have to which the chunk links; its own is none."""
    folder, own = posixpath.split(chunk.doc_id)
    ending = posixpath.splitext(own)[1]
    for groups in _LINK.findall(chunk.text):
        target = next(filter(None, groups))
        if ":" in target:
            continue
        base = "" if target.startswith("/") else folder
        path = posixpath.normpath(posixpath.join(base, target.strip("/")))
        for doc_id in (path, posixpath.splitext(path)[0] + ending):
            if doc_id != chunk.doc_id:
                yield doc_id


def _chunks(ids: Iterable[str], survey: Survey) -> Iterator[Chunk]:
    """Yield the chunks of the ids that the corpus has."""
    for chunk_id in ids:
        try:
            yield survey.chunk(chunk_id)
        except KeyError:
            continue
