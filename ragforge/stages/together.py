"""Asking for several things at once where one failure does not spoil the others."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from ragforge.errors import CallError

T = TypeVar("T")


async def together(parts: Sequence[Awaitable[T]]) -> list[T | CallError]:
    """Return what each part came to, in order; a part that failed gives its error.

    Raises:
        Exception: The first that is no CallError; the other parts are cancelled then.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_caught(part)) for part in parts]
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


async def _caught(part: Awaitable[T]) -> T | CallError:
    try:
        return await part
    except CallError as error:
        return error


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
