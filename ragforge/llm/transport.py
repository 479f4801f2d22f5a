"""What both ways of sending a request have in common: the two clients, and the layer above them."""

from typing import Final, Protocol

from ragforge.config import ModelSettings
from ragforge.http_service import MAX_FILE_BYTES, MAX_REPLY_BYTES, MAX_VECTORS_BYTES, Reply

CONNECT_TIMEOUT_S: Final = 30.0
"""A busy event loop fails shorter ones although the endpoint is well."""
KEEP_ALIVE_S: Final = 75.0
"""Of an idle connection: by default, a pause of five seconds would open every one anew."""
CHAT_PATH: Final = "/chat/completions"
EMBEDDINGS_PATH: Final = "/embeddings"
_MOST_BYTES: Final = {EMBEDDINGS_PATH: MAX_VECTORS_BYTES, "/content": MAX_FILE_BYTES}
"""By the end of a path."""
_OPENAI: Final = "https://api.openai.com/v1"


class Transport(Protocol):
    """Sends requests to one endpoint, with its key; follows no redirect, and retries nothing."""

    async def post(self, path: str, content: bytes) -> Reply:
        """Send JSON, and return the reply, of any status.

        Args:
            path: Below the endpoint's address, from its first slash on.
            content: The JSON.

        Raises:
            ReplyBrokenOffError: The connection failed when the reply had begun.
            ConnectionError: It failed before; the causes tell how.
            BodyError: The reply is too long, or not packed as it says.
            UnreadableReplyError: What came is no reply.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class RefusedError(Exception):
    """An endpoint refused a call of the official client.

    Args:
        reply: Its status is no success.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}")
        self.reply = reply


class ReplyBrokenOffError(ConnectionError):
    """The connection failed when a reply had begun, which the endpoint may charge for."""


class UnreadableReplyError(Exception):
    """A client made nothing of what came."""


def endpoint_address(settings: ModelSettings) -> str:
    """Return the address that paths are below, with a slash at its end."""
    return (settings.address or _OPENAI).rstrip("/") + "/"


def most_bytes(path: str) -> int:
    """Return how long a reply to a path may be, packed or not."""
    return next((most for end, most in _MOST_BYTES.items() if path.endswith(end)), MAX_REPLY_BYTES)
