"""What the evidence of a query says itself: which chunks hold its quotes, and their grades."""

import base64
import hashlib
from collections.abc import Iterable, Sequence

from ragforge.corpus.quote_locations import ChunkIndex, Placement, evidence_at, fold
from ragforge.deferred import dataclass
from ragforge.records import Chunk, Evidence, Judgment, Provenance, Query
from ragforge.stages.generate.gates.repeated_questions import normal_question

_WHOLE, _PART = 3, 2


def query_id(question: str, language: str) -> str:
    """Return the id that the same question in the same language always gets."""
    digest = hashlib.sha256(f"{language}\n{normal_question(question)}".encode()).digest()
    return f"q_{base64.b32encode(digest).decode().lower()[:16]}"


@dataclass(frozen=True, slots=True)
class Rederived:
    """A query whose evidence was looked up in chunks.

    Args:
        query: With the places of its quotes in these chunks; quotes that are nowhere stay as they
            were.
        judgments: Of the chunks that hold its quotes.
        lost: The evidence that is nowhere.
    """

    query: Query
    judgments: tuple[Judgment, ...]
    lost: tuple[Evidence, ...]


def derive(query: Query, index: ChunkIndex) -> Rederived:
    """Return a query with its evidence as these chunks hold it; nothing but the chunks decides.

    A chunk that holds the whole evidence answers the query on its own and has grade 3; one that
    holds a part of it has grade 2: one hop of several, or at least half of a quote that was cut.

    Args:
        query: With evidence.
        index: Of all chunks of the documents that the evidence names.
    """
    evidence: list[Evidence] = []
    lost: list[Evidence] = []
    derived: dict[str, list[tuple[Evidence, bool]]] = {}
    for item in query.evidence:
        placed = index.place(item)
        if placed is None:
            lost.append(item)
            evidence.append(item)
            continue
        evidence.append(evidence_at(item, placed))
        for chunk in placed.chunks:
            derived.setdefault(chunk.chunk_id, []).append((evidence[-1], _is_whole(placed, chunk)))
    sources = tuple(dict.fromkeys(item.chunk_id for item in evidence)) or query.source_chunk_ids
    update = {"evidence": tuple(evidence), "source_chunk_ids": sources}
    found = query.model_copy(update=update)
    judgments = tuple(
        evidence_judgment(found, chunk_id, held) for chunk_id, held in derived.items()
    )
    return Rederived(found, judgments, tuple(lost))


def grades_at(placed: Placement, grade: int) -> dict[str, int]:
    """Return the grades of the chunks at the place of a quote that a person graded.

    A chunk that holds the whole quote has the grade that was given, one with a part of it at
    most 2: a part of the answer is no answer.
    """
    return {
        chunk.chunk_id: grade if _is_whole(placed, chunk) else min(grade, _PART)
        for chunk in placed.chunks
    }


def repeating_chunks(placed: Placement, places: Iterable[Placement]) -> tuple[str, ...]:
    """Return the chunks that hold all of a quote at other places than one, and nothing of that.

    Args:
        placed: That one.
        places: All places of the quote in the document.
    """
    first = {chunk.chunk_id for chunk in placed.chunks}
    held = (chunk.chunk_id for place in places for chunk in place.chunks if _is_whole(place, chunk))
    return tuple(chunk_id for chunk_id in dict.fromkeys(held) if chunk_id not in first)


def _is_whole(placed: Placement, chunk: Chunk) -> bool:
    return fold(placed.text) in fold(chunk.text)


def evidence_judgment(
    query: Query, chunk_id: str, held: Sequence[tuple[Evidence, bool]]
) -> Judgment:
    """Return the judgment of a chunk that holds evidence: 3 where it has all that counts, else 2.

    Of a generated query each quote is needed, for the writer gives one for each statement of the
    answer; of others one of each hop is, as people may quote the same answer at several places.

    Args:
        query: Has the evidence.
        chunk_id: Of the chunk.
        held: What it holds of that, and whether from end to end; at least one.
    """
    first = held[0][0]
    whole = {item for item, is_whole in held if is_whole}
    if query.origin == "synthetic":
        has_all = whole.issuperset(query.evidence)
    else:
        has_all = {item.hop for item in whole} == {item.hop for item in query.evidence}
    grade = _WHOLE if has_all else _PART
    by = query.lineage
    return Judgment(
        query_id=query.query_id,
        chunk_id=chunk_id,
        grade=grade,
        contains_answer=True,
        evidence=first.quote,
        reasoning="the evidence of the query stands in this chunk",
        source="evidence",
        provenance=Provenance(**{name: getattr(by, name) for name in Provenance.model_fields})
        if by
        else None,
    )
