"""Asking for several things at once where one failure does not spoil the others."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from ragforge.errors import CallError

T = TypeVar("T")


async def together(parts: Sequence[Coroutine[None, None, T]]) -> list[T | CallError]:
    """Return what each part came to, in order; a part that failed gives its error.

    What is in flight when another part raises is paid for: it is waited for.

    Raises:
        Exception: The first that is no CallError, once all parts have ended.
        asyncio.CancelledError: The caller was cancelled; so are the parts.
    """
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise
    errors = [task.exception() for task in tasks]
    for error in errors:
        if error is not None and not isinstance(error, CallError):
            raise error
    return [
        error if isinstance(error, CallError) else task.result()
        for task, error in zip(tasks, errors, strict=True)
    ]
