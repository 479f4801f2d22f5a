"""Running a job from plain code, outside of an event loop and inside of one that runs already."""

import contextvars
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    suppress,
)
from functools import partial, wraps
from itertools import islice
from typing import Any, Generic, ParamSpec, TypeVar

from ragforge.api.arguments import refuse_other_kinds
from ragforge.deferred import asyncio

T = TypeVar("T")
P = ParamSpec("P")

_LOOK_S = 0.1
"""Seconds between two looks at an interrupt that reached the waiting task and not the thread, as
`asyncio.run` passes on Ctrl-C; on Windows a wait without an end cannot be interrupted at all."""
_MOST_INTERRUPTS = 2
"""The first ends a job in order, the second at once but for what it writes; the third leaves it."""
_AT_ONCE = 256
"""Records that a plain iterator is asked for at once by its awaited twin."""


def run_now(job: Coroutine[Any, Any, T]) -> T:
    """Return what a job comes to; it has a thread and a loop of its own where a loop runs here.

    Ctrl-C ends the job in order: calls in flight may end, and what was bought is written before
    this returns.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    if _has_loop():
        return _Beside(lambda: job).result()
    return asyncio.run(job)


def _has_loop() -> bool:
    """Whether a loop runs in this thread, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def plainly(job: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the plain twin of a function that is awaited."""

    @wraps(job)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_other_kinds(job, args, kwargs)
        return run_now(job(*args, **kwargs))

    return call


def awaited(call: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the awaited twin of a plain function: it works in a thread, and the loop goes on."""

    @wraps(call)
    async def job(*args: P.args, **kwargs: P.kwargs) -> T:
        refuse_other_kinds(call, args, kwargs)
        return await asyncio.to_thread(partial(call, *args, **kwargs))

    return job


def each_awaited(call: Callable[P, Iterator[T]]) -> Callable[P, AsyncIterator[T]]:
    """Return the awaited twin of a plain iterator, whose records are read in a thread."""

    @wraps(call)
    async def each(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        refuse_other_kinds(call, args, kwargs)
        items = await asyncio.to_thread(partial(call, *args, **kwargs))
        while found := await asyncio.to_thread(lambda: list(islice(items, _AT_ONCE))):
            for item in found:
                yield item

    return each


def lent_awaited(
    call: Callable[P, AbstractContextManager[T]],
) -> Callable[P, AbstractAsyncContextManager[T]]:
    """Return the awaited twin of a context manager, which begins and ends in a thread."""

    @wraps(call)
    @asynccontextmanager
    async def lend(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        with ExitStack() as stack:
            yield await asyncio.to_thread(stack.enter_context, call(*args, **kwargs))
            await asyncio.to_thread(stack.close)

    return lend


def each_plainly(
    stream: Callable[P, AsyncGenerator[T, None]],
) -> Callable[P, Iterator[T]]:
    """Return the plain twin of an async generator, which works on in a thread between two items."""

    @wraps(stream)
    def each(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        # What is wrong with the arguments is told by the call, not by the first item.
        return items_of(stream(*args, **kwargs))

    def items_of(items: AsyncGenerator[T, None]) -> Iterator[T]:
        with _Loop() as loop:
            try:
                while True:
                    try:
                        yield loop.run(items.__anext__)
                    except StopAsyncIteration:
                        return
            finally:
                loop.run(items.aclose)

    return each


class _Loop:
    """An event loop that runs in a thread as long as it is lent."""

    def __enter__(self) -> "_Loop":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ragforge")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401  # as `make` has it
        """Return what an awaitable of the loop comes to; an interrupt cancels it first."""

        async def job() -> Any:  # noqa: ANN401  # likewise
            return await make()

        waiting = asyncio.run_coroutine_threadsafe(job(), self._loop)
        done = threading.Event()
        waiting.add_done_callback(lambda _: done.set())
        try:
            _wait(done)
        except BaseException:
            waiting.cancel()
            raise
        return waiting.result()


class _Beside(Generic[T]):
    """A job in a thread of its own with an event loop of its own.

    Args:
        make: Makes the job.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        from concurrent.futures import Future

        self._make = make
        self._outcome: Future[T] = Future()
        self._began, self._ended = threading.Event(), threading.Event()
        self._cancel: Callable[[], object] = lambda: None
        # What the caller has in context variables, such as a span, the job has too.
        work = partial(contextvars.copy_context().run, self._work)
        self._thread = threading.Thread(target=work, name="ragforge")

    def result(self) -> T:
        """Start the job and return what it comes to.

        Raises:
            BaseException: What the job raises; or the interrupt, once the job has ended.
        """
        self._thread.start()
        interrupts: list[BaseException] = []
        while True:
            try:
                _wait(self._ended)
                self._thread.join()
                break
            except (KeyboardInterrupt, asyncio.CancelledError) as error:
                interrupts.append(error)
                if len(interrupts) > _MOST_INTERRUPTS:
                    raise
                self._began.wait()
                self._cancel()
        if interrupts and isinstance(self._outcome.exception(), asyncio.CancelledError):
            raise interrupts[0]
        return self._outcome.result()

    def _work(self) -> None:
        try:
            self._outcome.set_result(asyncio.run(self._run()))
        except BaseException as error:  # noqa: BLE001  # raised again where the job is waited for
            self._outcome.set_exception(error)
        finally:
            self._began.set()
            self._ended.set()

    async def _run(self) -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._cancel = partial(_cancel_in, loop, task)
        self._began.set()
        return await self._make()


def _cancel_in(loop: "asyncio.AbstractEventLoop", task: "asyncio.Task[Any]") -> None:
    with suppress(RuntimeError):  # The loop is closed: the job has ended meanwhile.
        loop.call_soon_threadsafe(task.cancel)


def _wait(event: threading.Event) -> None:
    """Wait for an event in a thread.

    Raises:
        KeyboardInterrupt: Of Ctrl-C.
        asyncio.CancelledError: The task in which this is called was cancelled meanwhile.
    """
    task = _task()
    before = task.cancelling() if task else 0
    while not event.wait(_LOOK_S):
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


def _task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
