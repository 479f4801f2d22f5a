"""Asking a retriever behind an HTTP address."""

from collections.abc import Iterable

from ragforge.errors import CallError, DataError
from ragforge.foreign.posting import Service
from ragforge.foreign.reading import Note, keep_quiet
from ragforge.records import Chunk, Hit
from ragforge.retrieval.results import ResultReader


class HttpRetriever:
    """Posts `{"query": ..., "k": ...}` as JSON and reads the hits of the JSON reply.

    The reply is a list of hits, best first, or an object that holds one under "hits", "results",
    "documents" or "matches"; a hit is an id or an object with `chunk_id` or `id` and perhaps a
    `score`, and whatever else `ResultReader` reads.

    Redirects are refused and nothing is tried again; see `Service`.

    Args:
        url: Address, http or https.
        chunks: The corpus, to know ids and texts; without it ids are taken as they come.
        timeout_s: Seconds to connect and for the whole reply.
        note: Told once of each oddity of the results, see `ResultReader`.

    Raises:
        UsageError: The address cannot be used.
    """

    def __init__(
        self,
        url: str,
        chunks: Iterable[Chunk] = (),
        *,
        timeout_s: float = 30.0,
        note: Note = keep_quiet,
    ) -> None:
        self._service = Service(url, what="retriever", function="f(query, k)", timeout_s=timeout_s)
        self._reader = ResultReader(self._service.shown, chunks, note)

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return what the service found.

        Raises:
            CallError: `error` where no good reply came (refused, timed out, a status but 2xx),
                `invalid` where it cannot be read; `raw` is the start of its body.
        """
        reply = await self._service.post({"query": query, "k": k})
        try:
            return self._reader.read(reply.value, query, k)
        except DataError as error:
            raise CallError("invalid", str(error), raw=reply.start) from error
