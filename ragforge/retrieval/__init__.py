"""What a retriever and an embedder are; the modules here hold those that ship with ragforge."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

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
