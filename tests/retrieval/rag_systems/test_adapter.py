import asyncio
import threading

import pytest

from ragforge.errors import CallError, UsageError
from ragforge.retrieval.rag_systems import adapt


def plain(query):
    return f"{query}!"


async def coroutine(query):
    return f"{query}!"


def returns_awaitable(query):
    return coroutine(query)


def with_options(query, k=3, **options):
    return f"{query}!"


def by_position(query, /):
    return f"{query}!"


class Chain:
    """Has what LangChain's Runnable has."""

    def invoke(self, input, config=None, **kwargs):
        raise NotImplementedError

    async def ainvoke(self, input, config=None, **kwargs):
        return {"answer": f"{input}!"}


class Engine:
    """Has what LlamaIndex's query engine has."""

    def query(self, str_or_query_bundle):
        return f"{str_or_query_bundle}!"


class Own:
    async def answer(self, query):
        return f"{query}!"


class Callable:
    def __call__(self, query):
        return f"{query}!"


class NeedsChunks:
    def __init__(self, chunks):
        self.chunks = chunks

    def answer(self, query):
        return self.chunks[0].text


@pytest.mark.parametrize(
    "found",
    [
        plain,
        coroutine,
        returns_awaitable,
        with_options,
        by_position,
        Chain(),
        Chain,
        Engine(),
        Own(),
        Own,
        Callable(),
        lambda query: f"{query}!",
    ],
)
def test_functions_and_objects_of_frameworks_answer(ask, found):
    """What a user has already should work as it is."""
    assert ask(adapt(found, "mine"), "Krill").text == "Krill!"


def test_a_class_gets_the_chunks_if_it_wants_them(ask, chunks):
    """A system that keeps its own index is built on the corpus of the set."""
    assert ask(adapt(NeedsChunks, "mine", chunks(a="red"))).text == "red"


def test_plain_functions_run_side_by_side():
    """One slow answer must not hold up the others."""
    both = threading.Barrier(2, timeout=10)

    def meet(query):
        both.wait()
        return query

    async def two():
        answerer = adapt(meet, "mine")
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answerer.answer(text)) for text in "ab"]
        return [task.result().text for task in tasks]

    assert asyncio.run(two()) == ["a", "b"]


def test_an_answer_that_never_comes_fails_in_time(ask):
    """A query that hangs must hold up neither the run nor its end."""
    never = threading.Event()

    with pytest.raises(CallError, match=r"system mine: no answer in 0\.05 s"):
        ask(adapt(lambda query: never.wait(), "mine", timeout_s=0.05))


@pytest.mark.parametrize("error", [TimeoutError("slow"), RuntimeError("down")])
def test_what_the_system_raises_passes(ask, error):
    """The runner makes failures of it, with the system's own words."""

    def fail(query):
        raise error

    with pytest.raises(type(error), match=str(error)):
        ask(adapt(fail, "mine"))


def test_a_stop_of_an_iterator_is_an_error(ask):
    """A future cannot carry it, and the query would never end."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        ask(adapt(lambda query: next(iter([])), "mine"))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (7, "system mine: is of type int; expected a function f.query., or an object with"),
        (lambda query, k: "a", r"takes \(query, k\); expected the query as its only argument"),
        (lambda query, *, k: "a", r"takes \(query, k\)"),
        (lambda *, query: "a", r"takes \(query\)"),
        (type("Db", (), {"__init__": lambda self, db: None}), "the constructor needs db"),
        (type("Bad", (), {"__init__": lambda self: 1 / 0}), "the constructor raised ZeroDiv"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_first_query(found, message):
    """A mistake in a name must not become a failure of each query."""
    with pytest.raises(UsageError, match=message):
        adapt(found, "mine")
