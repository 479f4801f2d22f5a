"""Where a model is: at an address, or in a file that is served for as long as it is needed."""

import asyncio
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ragforge.config import ModelSettings
from ragforge.errors import ConfigError

LOCAL = "local:"
LOCAL_CONTEXT_TOKENS = 8192
"""Context of one slot of a model served from a file; its own limit where that is lower."""
LOCAL_SLOTS = 4
"""Requests such a model works on at once, at most; memory grows with them, speed hardly."""
LOCAL_TIMEOUT_S = 1800.0
"""Least time limit for one attempt: a slow machine is no reason to ask the same again."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is and what it is called in keys and provenance."""

    settings: ModelSettings
    endpoint: str
    name: str

    @property
    def local(self) -> bool:
        """Whether it is a file that ragforge itself serves."""
        return self.endpoint == "local"


async def find_place(model: ModelSettings, stack: ExitStack, *, start: bool) -> Place:
    """Return where a model is; a local one is served until the stack closes, if it is to start.

    Raises:
        ConfigError, DataError, EndpointError: As for `connect`.
    """
    if not model.name.startswith(LOCAL):
        # Where none is named, the client goes by this variable; the call keys must too.
        endpoint = model.base_url or _from_environment() or "openai"
        return Place(model, endpoint.rstrip("/"), model.name)
    from ragforge.llm.local import model_digest, serve

    path = Path(model.name.removeprefix(LOCAL)).expanduser()
    name = model_digest(path)
    if not start:
        return Place(model, "local", name)
    slots = min(model.concurrency, LOCAL_SLOTS)
    serving = serve(path, parallel=slots, context_tokens=LOCAL_CONTEXT_TOKENS)
    served = await asyncio.to_thread(stack.enter_context, serving)
    changed = {
        "name": served.model,
        "base_url": served.base_url,
        "timeout_s": max(model.timeout_s, LOCAL_TIMEOUT_S),
    }
    return Place(model.model_copy(update=changed), "local", name)


def _from_environment() -> str:
    address = os.environ.get("OPENAI_BASE_URL", "")
    if "@" in address.partition("//")[2].partition("/")[0]:
        raise ConfigError(
            "OPENAI_BASE_URL: no user name or password in the address: it is stored and shown"
        )
    return address
