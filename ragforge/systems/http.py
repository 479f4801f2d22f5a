"""Asking a RAG system behind an HTTP address."""

from ragforge.foreign.posting import Service
from ragforge.systems import SystemAnswer
from ragforge.systems.results import read_answer


class HttpSystem:
    """Posts `{"query": ...}` as JSON and reads the answer of the JSON reply.

    The reply is an object with "answer", and with the context under "chunk_ids", "contexts",
    "retrieved" or "sources": chunk ids, texts, or objects with an id or a text; and whatever else
    `ragforge.systems.results` reads.

    Redirects are refused and nothing is tried again; see `Service`.

    Args:
        url: Address, http or https.
        timeout_s: Seconds to connect and for the whole reply.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(self, url: str, *, timeout_s: float = 120.0) -> None:
        self._service = Service(url, what="system", function="f(query)", timeout_s=timeout_s)

    async def answer(self, query: str) -> SystemAnswer:
        """Return what the service answered.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it cannot be read; `raw` is the start of its body.
        """
        reply = await self._service.post({"query": query})
        return read_answer(reply.value, self._service.shown, reply.start)
