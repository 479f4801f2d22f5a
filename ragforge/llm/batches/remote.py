"""The provider's side of batches: upload, create, find, look, download, cancel."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ragforge.deferred import dataclass
from ragforge.errors import CallError, EndpointError
from ragforge.llm.retries import AttemptError
from ragforge.llm.transport import RefusedError

if TYPE_CHECKING:
    from ragforge.llm.official_client import Batch, Client
    from ragforge.llm.openai_endpoint import OpenAIEndpoint

T = TypeVar("T")
NAME: Final = "ragforge"
"""Of the metadata that holds the batch's own name."""
_TIMEOUT_S: Final = 900.0
_ATTEMPTS: Final = 5
_NOT_FOUND: Final = 404
_OVER: Final = ("completed", "failed", "expired", "cancelled")


class UnknownBatchError(EndpointError):
    """The provider knows a batch no more, or not under this key."""


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch as the provider tells it.

    Args:
        batch_id: The provider's.
        status: In its words.
        files: Of its replies and errors.
        message: Why it failed.
        has_replies: Whether there is more than errors; the first file has them.
        answered: Requests that it gave a reply to; None where the provider does not say.
    """

    batch_id: str
    status: str
    files: tuple[str, ...]
    message: str
    has_replies: bool = False
    answered: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in _OVER

    @property
    def was_cut(self) -> bool:
        """Whether it ended before all was worked on, though some of it was."""
        return self.status == "cancelled" or (self.status == "expired" and self.has_replies)


@dataclass(frozen=True, slots=True)
class Provider:
    """An endpoint with a batch API.

    Args:
        endpoint: The endpoint.
        pause_s: Before a call is tried again; doubles.
    """

    endpoint: "OpenAIEndpoint"
    pause_s: float = 1.0

    async def find(self, name: str) -> RemoteBatch | None:
        """Return the batch that was made under a name; None where there is none.

        Raises:
            EndpointError: The provider cannot be asked.
        """

        async def look(client: "Client") -> RemoteBatch | None:
            async for batch in client.batches.list(limit=100):
                if (batch.metadata or {}).get(NAME) == name:
                    return _remote_batch(batch)
            return None

        return await self._call(look)

    async def submit(self, name: str, path: Path) -> RemoteBatch:
        """Upload requests and make a batch of them, once.

        Args:
            name: Goes along as metadata.
            path: The requests.

        Raises:
            AttemptError: It may have been made or not; `find` tells.
            EndpointError: The provider takes none.
        """
        uploaded = await self._call(lambda client: client.files.create(file=path, purpose="batch"))
        try:
            made = await self.endpoint.call(
                lambda client: client.batches.create(
                    input_file_id=uploaded.id,
                    endpoint="/v1/chat/completions",
                    completion_window="24h",
                    metadata={NAME: name},
                ),
                _TIMEOUT_S,
            )
        except CallError as error:
            raise EndpointError(f"batch API: {error}") from error
        return _remote_batch(made)

    async def look(self, batch_id: str) -> RemoteBatch:
        """Return how far a batch is.

        Raises:
            UnknownBatchError: There is none.
            EndpointError: The provider cannot be asked.
        """
        try:
            return _remote_batch(await self._call(lambda client: client.batches.retrieve(batch_id)))
        except EndpointError as error:
            refused = error.__cause__
            if not isinstance(refused, RefusedError) or refused.reply.status != _NOT_FOUND:
                raise
            raise UnknownBatchError(
                f"{error}; where it is gone for good, and not another key's, --batch-api cancel "
                "gives it up, and its requests are sent again"
            ) from error

    async def cancel(self, batch_id: str) -> RemoteBatch:
        """End a batch; what is done of it is paid for, and can be fetched."""
        return _remote_batch(await self._call(lambda client: client.batches.cancel(batch_id)))

    async def content(self, batch: RemoteBatch) -> list[bytes]:
        """Return the content of the files of a batch.

        One that holds fewer replies than the provider counts is fetched once more: it may have been
        cut on its way.
        """
        parts = [await self._content(file_id) for file_id in batch.files]
        if batch.has_replies and parts[0].count(b"\n") < (batch.answered or 0):
            again = await self._content(batch.files[0])
            parts[0] = max(parts[0], again, key=len)
        return parts

    async def _content(self, file_id: str) -> bytes:
        async def fetch(client: "Client") -> bytes:
            return (await client.files.content(file_id)).content

        return await self._call(fetch)

    async def _call(self, make: Callable[["Client"], Awaitable[T]]) -> T:
        """Make a call that may be repeated, and repeat it while it fails for the moment."""
        pause_s = self.pause_s
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self.endpoint.call(make, _TIMEOUT_S)
            except CallError as error:
                raise EndpointError(f"batch API: {error}") from error
            except AttemptError as error:
                if attempt == _ATTEMPTS:
                    raise EndpointError(f"batch API: {error}") from error
                await asyncio.sleep(min(60.0, error.retry_after_s or pause_s))
                pause_s *= 2
        raise AssertionError


def _remote_batch(batch: "Batch") -> RemoteBatch:
    files = tuple(file for file in (batch.output_file_id, batch.error_file_id) if file)
    errors = (batch.errors.data if batch.errors else None) or []
    message = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
    answered = batch.request_counts.completed if batch.request_counts else None
    has_replies = bool(batch.output_file_id)
    return RemoteBatch(batch.id, batch.status, files, message, has_replies, answered)
