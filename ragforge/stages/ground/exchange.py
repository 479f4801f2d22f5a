"""What is checked: an answer with the passages it was written from, and who checks it."""

from dataclasses import dataclass
from typing import Protocol

from ragforge.records import Grounding, Provenance


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as a system had it before it.

    Args:
        chunk_id: Two passages may share it, where it names a document.
        text: May be empty.
    """

    chunk_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, its answer, and the passages in the order in which the system had them.

    Args:
        query_id: Of the question.
        question: "" where it is not known.
        answer: As it was given.
        passages: None where the system retrieved nothing.
        lost: Ids of further passages whose texts are not to be had.
    """

    query_id: str
    question: str
    answer: str
    passages: tuple[Passage, ...]
    lost: tuple[str, ...] = ()


class Grounder(Protocol):
    """Checks answers."""

    @property
    def provenance(self) -> Provenance:
        """Who checks, for the answers that could not be checked."""

    async def ground(self, exchange: Exchange) -> Grounding:
        """Return a grounding without failure.

        Called concurrently from one event loop; must not block it.

        Raises:
            CallError: This answer cannot be checked.
            EndpointError, BudgetError: No answer can be checked any more.
        """
