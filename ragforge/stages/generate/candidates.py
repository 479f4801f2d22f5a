"""What passes between the parts of generation: briefs, candidates, and what becomes of them."""

from collections.abc import Sequence
from typing import Protocol

from ragforge.deferred import dataclass
from ragforge.records import (
    Behaviour,
    Chunk,
    Difficulty,
    Evidence,
    Lineage,
    QueryType,
    Slot,
    Turn,
)


@dataclass(frozen=True, slots=True)
class Brief:
    """What a writer is asked for.

    Args:
        slot: Which kind of query, about which chunks.
        chunks: Those chunks, in the order of the slot's `chunk_ids`.
    """

    slot: Slot
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Quoted:
    """What a writer says is a verbatim quote.

    Args:
        text: The quote as given; not looked up yet.
        passage: Index into the chunks of the brief; its hop is one more.
    """

    text: str
    passage: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed query, before any gate has looked at it.

    Args:
        question, answer: As proposed; for an unanswerable one the answer says what is missing.
        quotes: What proves the answer; for an unanswerable one the text that comes nearest.
        difficulty, type: As declared by the writer.
        lineage: Who wrote it.
        behaviour: What a good system does with it.
        standalone: What a follow-up asks when it is put alone; "" for others.
        history: What was said before a follow-up.
    """

    question: str
    answer: str
    quotes: tuple[Quoted, ...]
    difficulty: Difficulty
    type: QueryType
    lineage: Lineage
    behaviour: Behaviour = "answer"
    standalone: str = ""
    history: tuple[Turn, ...] = ()

    @property
    def asked(self) -> str:
        """The question as it stands on its own."""
        return self.standalone or self.question


@dataclass(frozen=True, slots=True)
class Anchored:
    """A candidate that passed the rules, its quotes found in the chunks.

    Args:
        brief: What it was written for.
        place: Among the candidates of its brief, from 0.
        candidate: What was proposed.
        evidence: One for each quote, as it stands in the document; what overlaps is one.
    """

    brief: Brief
    place: int
    candidate: Candidate
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a candidate was stopped.

    Args:
        code: Of the gate, such as `quote_not_found`.
        reason: What was found, in a few words; "" where the code says it all.
    """

    code: str
    reason: str = ""


class QueryWriter(Protocol):
    """Writes queries about chunks."""

    async def write(self, brief: Brief, asked: Sequence[str]) -> list[Candidate]:
        """Return candidates, the best first; [] where the chunks give none of this kind.

        Called concurrently from one event loop; must not block it.

        Args:
            brief: What is wanted.
            asked: Questions about these chunks that are accepted already.

        Raises:
            CallError: No candidate came of it.
            EndpointError, BudgetError: None can come any more.
        """
