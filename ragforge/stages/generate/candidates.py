"""What a writer proposes, before any gate has looked at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragforge.records import Difficulty, Provenance, QueryType
from ragforge.stages.generate.plan import Seed


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed query.

    Args:
        question, answer: As proposed.
        evidence: What is said to be a verbatim quote of the chunk.
        difficulty, type: As the writer declares them.
        lineage: Who wrote it.
    """

    question: str
    answer: str
    evidence: str
    difficulty: Difficulty
    type: QueryType
    lineage: Provenance


class QueryWriter(Protocol):
    """Writes queries about chunks."""

    async def write(self, seed: Seed, asked: Sequence[str]) -> Candidate | None:
        """Return a candidate, None where the chunk gives no (further) one.

        Called concurrently from one event loop; must not block it.

        Args:
            seed: The chunk and the round.
            asked: Questions about this chunk that are accepted already.

        Raises:
            CallError: No candidate came of it.
            EndpointError, BudgetError: None can come any more.
        """
