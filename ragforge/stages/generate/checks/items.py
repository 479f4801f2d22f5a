"""What is checked: a query with its expected answer and what proves it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragforge.records import Chunk, Evidence, Gate, Query, QueryType, Turn
from ragforge.stages.generate.candidates import Anchored

_ORDINARY: tuple[Gate, ...] = ("self_contained", "independent_answer")
_GATES: Mapping[QueryType, tuple[Gate, ...]] = {
    "multi_hop": (*_ORDINARY, "necessary_hops"),
    "multi_hop_across": (*_ORDINARY, "necessary_hops"),
    "false_premise": ("self_contained", "premise", "independent_answer"),
    "ambiguous": ("ambiguity", "independent_answer"),
    "unanswerable": ("self_contained", "unanswerable"),
}


@dataclass(frozen=True, slots=True)
class Proof:
    """A quote as a checker sees it.

    Args:
        text: The quote.
        titles: What its chunk stands under, the outermost first.
        hop: Which step of the answer it holds.
    """

    text: str
    titles: tuple[str, ...] = ()
    hop: int = 1


@dataclass(frozen=True, slots=True)
class Item:
    """What checkers need to know of a query.

    Args:
        key: Names it in failures.
        question: As it was written; a follow-up leans on `history`.
        asked: The question as it stands on its own.
        expected: The expected answer.
        proofs: The evidence.
        chunk_ids: What it was written from.
        type, language, history: As in `Query`.
    """

    key: str
    question: str
    asked: str
    expected: str
    proofs: tuple[Proof, ...]
    chunk_ids: tuple[str, ...]
    type: QueryType | None = None
    language: str = "en"
    history: tuple[Turn, ...] = ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates it must pass, in the order in which they are tried."""
        return _ORDINARY if self.type is None else _GATES.get(self.type, _ORDINARY)


def item_of(anchored: Anchored) -> Item:
    """Return what is checked of a candidate."""
    candidate, slot = anchored.candidate, anchored.brief.slot
    return Item(
        key=f"{slot.slot_id}/{anchored.place}",
        question=candidate.question,
        asked=candidate.asked,
        expected=candidate.answer,
        proofs=_proofs(anchored.evidence, anchored.brief.chunks),
        chunk_ids=slot.chunk_ids,
        type=candidate.type,
        language=slot.language,
        history=candidate.history,
    )


def item_of_query(query: Query, chunks: Sequence[Chunk]) -> Item:
    """Return what is checked of a query of a set.

    Args:
        query: With its evidence.
        chunks: Those that its evidence stands in; of others the titles are not known.
    """
    return Item(
        key=query.query_id,
        question=query.query,
        asked=query.asked,
        expected=query.expected_answer or "",
        proofs=_proofs(query.evidence, chunks),
        chunk_ids=query.source_chunk_ids,
        type=query.type,
        language=query.language,
        history=query.history,
    )


def _proofs(evidence: Sequence[Evidence], chunks: Sequence[Chunk]) -> tuple[Proof, ...]:
    titles = {chunk.chunk_id: tuple(chunk.heading_path) for chunk in chunks}
    return tuple(Proof(one.quote, titles.get(one.chunk_id, ()), one.hop) for one in evidence)
