"""What a retriever, an embedder and a RAG system are; the modules here make and reach them."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ragforge.deferred import dataclass
from ragforge.records import Hit


class Retriever(Protocol):
    """Finds the chunks for a query. One instance serves a whole run."""

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the best chunks for a query, best first.

        Called concurrently, from one event loop, on the same instance: build an index before the
        first call or behind a lock, and keep no state of one query on the instance. What waits for
        a disk, a network or another process belongs in `asyncio.to_thread`, or the other queries
        wait too.

        Args:
            query: The question, as its author wrote it.
            k: How many chunks to return at most, 1 or more.

        Returns:
            At most k hits, each chunk once, higher scores first and ties by id, descending. Fewer,
            or none, where there are no more: an empty list says that the search worked and found
            nothing.

        Raises:
            CallError: This query failed and the next may work; it becomes a Failure, and the run
                goes on. Any other exception but the following counts likewise, with kind `error`.
            RagforgeError: Every query would fail alike (a wrong address, an unreadable index); the
                run stops.
        """
        ...


@runtime_checkable
class Buildable(Protocol):
    """A retriever that can prepare itself before the first query, whose latency would hold it."""

    async def build(self) -> None:
        """Prepare; a second call does nothing.

        Raises:
            CallError, EndpointError: It cannot be prepared.
        """
        ...


@runtime_checkable
class Embedding(Protocol):
    """A retriever that computes vectors of the chunks in this process, which takes its time."""

    @property
    def n_to_embed(self) -> int:
        """Chunks whose vectors are not there yet."""
        ...

    async def embed_chunks(self, progress: Callable[[int], None]) -> None:
        """Compute these vectors; a second call does nothing.

        Args:
            progress: Told of each part how many chunks it had.

        Raises:
            ConfigError: The model is not installed.
        """
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in the order of the texts.

        Called concurrently. Vectors need not be normalised; all must have one length, over all
        calls. At most `dense.BATCH` texts come at once.

        Raises:
            CallError: This call failed and a later one may work.
            EndpointError: No call can work.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContextPassage:
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
    """The answer of a RAG system to one query.

    Args:
        text: The answer. May be empty: then that is what the system said.
        context: The passages the answer was written from, in the order the system had them; empty
            where it does not tell. Without it nothing can be said of hallucination and retrieval.
        cost_usd: What it cost, in US dollars; None where that is not known.
    """

    text: str
    context: tuple[ContextPassage, ...] = ()
    cost_usd: float | None = None


class Answerer(Protocol):
    """A RAG system. One instance serves a whole run."""

    async def answer(self, query: str) -> SystemAnswer:
        """Return the answer of the system to a query.

        Called concurrently, from one event loop, on the same instance: keep no state of one query
        on the instance, and no memory of the queries before, or answers depend on their order.
        What waits for a disk, a network or another process belongs in `asyncio.to_thread`, or the
        other queries wait too. A method that is not async runs in a thread of its own. Instead of
        a `SystemAnswer` it may return anything that `ragforge.retrieval.rag_systems` reads.

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
