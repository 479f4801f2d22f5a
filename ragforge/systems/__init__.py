"""What a RAG system under test is, as far as it is asked; the modules here reach those of users."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that a system had before it; one of the three is enough to find its chunk.

    Args:
        ids: What may be its chunk id, most telling first.
        texts: What it says, in full or in part.
        doc_ids: What may be the id of its document, where `texts` are looked for first.
    """

    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    doc_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """What a system says to one query.

    Args:
        text: The answer. May be empty: then that is what the system said.
        context: The passages the answer was written from, in the order the system had them; empty
            where it does not tell. Without it nothing can be said of hallucination and retrieval.
    """

    text: str
    context: tuple[Passage, ...] = ()


class Answerer(Protocol):
    """A RAG system. One instance serves a whole run."""

    async def answer(self, query: str) -> SystemAnswer:
        """Return what the system answers to a query.

        Called concurrently, from one event loop, on the same instance: keep no state of one query
        on the instance, and no memory of the queries before, or answers depend on their order.
        What waits for a disk, a network or another process belongs in `asyncio.to_thread`, or the
        other queries wait too. A method that is not async runs in a thread of its own. Instead of
        a `SystemAnswer` it may return anything that `ragforge.systems.results` reads.

        Args:
            query: The question, as its author wrote it.

        Returns:
            The answer. An abstention is an answer; a timeout or an error page is none.

        Raises:
            CallError: This query failed and the next may work; it becomes a Failure, and the run
                goes on. Any other exception but the following counts likewise, with kind `error`.
                Never return "" or an apology in place of an exception: it would be graded.
            RagforgeError: Every query would fail alike (a wrong address, a missing index); the run
                stops, and what was answered is kept.
        """
        ...
