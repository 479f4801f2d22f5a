"""Calling functions and methods that users name: plain or async, of classes or objects."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar, cast

from ragforge.errors import UsageError

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Return what a function returns that may block, run in a thread of its own.

    The thread does not outlive the process, and none waits for another, unlike those of
    `asyncio.to_thread`: a call that never ends would hold up the end of the program.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: Callable[[], None]) -> None:
        if not done.done():
            result()

    def work() -> None:
        try:
            result = partial(done.set_result, context.run(function))
        except StopIteration as error:  # which a future does not take
            ended = RuntimeError(f"the function raised StopIteration: {error}")
            result = partial(done.set_exception, ended)
        except BaseException as error:  # noqa: BLE001  # raised where it is awaited
            result = partial(done.set_exception, error)
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(deliver, result)

    threading.Thread(target=work, daemon=True).start()
    return await done


async def call(function: Callable[..., object], ask: Callable[[], object]) -> object:
    """Return what a user's function comes to in the end.

    Args:
        function: What is called, to tell whether it is async.
        ask: Calls it with its arguments. Run in a thread if the function is plain; the rest of a
            generator too, whose body is the work.
    """
    if inspect.iscoroutinefunction(function):
        result = ask()
    else:
        result = await in_thread(partial(_to_the_end, ask))
    return await result if inspect.isawaitable(result) else result


def construct(cls: type, where: str, offered: Mapping[str, object], advice: str) -> object:
    """Return an object of a user's class.

    Args:
        cls: The class.
        where: What messages call it.
        offered: Arguments that its constructor may require, by name; one at most is given.
        advice: What to do where it requires others.

    Raises:
        UsageError: It requires others, or raised.
    """
    required = [
        parameter.name
        for parameter in parameters_of(cls)
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    if len(required) > 1 or not offered.keys() >= set(required):
        optional = "".join(f" or {name!r}" for name in offered)
        raise UsageError(
            f"{where}: the constructor needs {', '.join(required)}; expected none{optional}; "
            f"{advice}"
        )
    try:
        return cls(*(offered[name] for name in required))
    except Exception as error:  # a user's code may raise anything
        raise UsageError(f"{where}: the constructor raised {type(error).__name__}: {error}") from (
            error
        )


def method_of(
    target: object, methods: Sequence[str], where: str, expected: str
) -> Callable[..., object]:
    """Return what to call: a function itself, of an object the first method that it has.

    Raises:
        UsageError: There is nothing to call.
    """
    if not inspect.isroutine(target):
        for name in methods:
            method = getattr(target, name, None)
            if callable(method):
                return cast("Callable[..., object]", method)  # its signature is read later
    if callable(target):
        return cast("Callable[..., object]", target)
    raise UsageError(
        f"{where}: is of type {type(target).__qualname__}; expected a function {expected}, or an "
        f"object with one of {', '.join(methods)}"
    )


def parameters_of(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Return the parameters of a function; none of a built-in that does not tell."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        return []


def _to_the_end(ask: Callable[[], object]) -> object:
    result = ask()
    return list(result) if isinstance(result, Iterator) else result
