"""Systems that answer from contexts: called, asked, and refused where they retrieve themselves."""

import asyncio
import json

import pytest
from service import running_service

from ragforge.config import SystemService
from ragforge.errors import CallError, UsageError
from ragforge.plugins import HandedOver
from ragforge.retrieval.context_readers import make_context_reader

TEXTS = ["Whales eat krill.", "Oak is a tree."]


@pytest.fixture
def service():
    """Serve until the test ends."""
    with running_service() as server:
        yield server


def read(system, contexts=TEXTS, timeout_s=120.0):
    """Return what a system answers."""
    spec = system if isinstance(system, str) else HandedOver("tests.system", system)
    return asyncio.run(make_context_reader(spec, timeout_s=timeout_s).read("What?", contexts))


def joined(query, contexts):
    return f"{query} {' '.join(contexts)}"


async def awaited(question, passages, style="brief"):
    return {"answer": passages[0], "contexts": [passages[0]]}


class Reader:
    """An object with a method of its own."""

    def answer(self, query, contexts):
        return contexts[1]


class Callable:
    """A class whose objects are called."""

    def __call__(self, query, docs=()):
        return docs[0]


@pytest.mark.parametrize(
    ("system", "answer"),
    [
        (joined, "What? Whales eat krill. Oak is a tree."),
        (awaited, "Whales eat krill."),
        (Reader(), "Oak is a tree."),
        (Reader, "Oak is a tree."),
        (Callable(), "Whales eat krill."),
        (lambda *given: given[1][0], "Whales eat krill."),
    ],
    ids=["function", "async", "object", "class", "called", "star"],
)
def test_whatever_takes_a_query_and_contexts_answers(system, answer):
    """Nobody writes a service to try a chunk size."""
    assert read(system) == answer


def alone(query):
    return query


def invoke(input, config=None):  # as frameworks call it
    return input


def three(query, contexts, index):
    return query


class Chain:
    """What frameworks call a chain."""

    def invoke(self, query, config=None):
        return query


@pytest.mark.parametrize("system", [alone, invoke, Chain().invoke])
def test_what_takes_no_contexts_retrieves_by_itself(system):
    """Each configuration would get one and the same answer."""
    with pytest.raises(UsageError, match=r"retrieves by itself.*f\(query, contexts\)"):
        read(system)


def test_what_needs_more_than_contexts_is_refused_before_the_first_query():
    """Every query would fail alike."""
    with pytest.raises(UsageError, match=r"takes \(query, contexts, index\)"):
        read(three)


def test_a_name_that_is_almost_model_is_told():
    """The commonest system has the shortest name."""
    with pytest.raises(UsageError, match="did you mean model"):
        make_context_reader("modle")


def test_a_service_is_sent_the_contexts(service):
    """Its own index must have no part in it."""
    service.body = b'{"answer": "krill"}'

    answer = read(service.url)

    [(_, _, sent)] = service.requests
    assert (answer, json.loads(sent)) == ("krill", {"query": "What?", "contexts": TEXTS})


@pytest.mark.parametrize("named", ['["Squid swim."]', '["c-17"]', '[{"id": "c1", "text": "No"}]'])
def test_a_service_that_answers_from_something_else_stops_the_sweep(service, named):
    """It retrieved by itself, and all configurations would look alike."""
    service.body = f'{{"answer": "squid", "contexts": {named}}}'.encode()

    with pytest.raises(UsageError, match="which it was not given"):
        read(service.url)


@pytest.mark.parametrize("named", ['["Whales  eat krill."]', "[0]", '["Oak is"]', "[]"])
def test_a_service_may_name_what_it_used(service, named):
    """Services cite contexts by their text, a part of it, or their number."""
    service.body = f'{{"answer": "krill", "contexts": {named}}}'.encode()

    assert read(service.url) == "krill"


def test_what_takes_too_long_fails_its_query():
    """One that hangs must not hang the sweep."""

    async def slow(query, contexts):
        await asyncio.Event().wait()

    with pytest.raises(CallError, match=r"no answer in 0\.01 s"):
        read(slow, timeout_s=0.01)


def test_a_service_of_the_settings_is_given_contexts(scripted):
    """A chat behind a token can be tried with other chunks, without Python."""
    body = {"q": "{query}", "passages": "{contexts}", "prompt": "{contexts}\n\nQ: {query}"}
    service = SystemService(url=scripted.url, body=body, answer="text")
    scripted.answer = {"text": "krill"}

    reader = make_context_reader("rag", services={"rag": service})
    answer = asyncio.run(reader.read("What?", ["one", "two"]))

    assert answer == "krill"
    assert scripted.seen[0].json == {
        "q": "What?",
        "passages": ["one", "two"],
        "prompt": "one\n\ntwo\n\nQ: What?",
    }


def test_a_service_whose_request_holds_no_contexts_is_refused():
    """It retrieves by itself, whatever is cut here."""
    service = SystemService(url="http://127.0.0.1:1/")

    with pytest.raises(UsageError, match="system rag: its request holds the query alone"):
        make_context_reader("rag", services={"rag": service})
