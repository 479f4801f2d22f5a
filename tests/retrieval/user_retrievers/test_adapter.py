import asyncio
import threading
from types import SimpleNamespace

import pytest

from ragforge.errors import CallError, DataError, UsageError
from ragforge.retrieval.user_retrievers import adapt


def document(chunk_id):
    return SimpleNamespace(page_content="", metadata={"chunk_id": chunk_id}, id=None)


def takes_query(query):
    return [query]


def takes_query_and_k(query, k):
    return [f"{query}{k}"]


def takes_k_by_keyword(query, *, top_k=3):
    return [f"{query}{top_k}"]


def takes_k_under_another_name(query, how_many):
    return [f"{query}{how_many}"]


def takes_k_by_position(query, k, /):
    return [f"{query}{k}"]


def takes_anything(*args):
    return ["".join(map(str, args))]


def takes_query_and_options(query, config=None, **options):
    return [query, str(config), str(options)]


async def takes_query_and_k_async(query, k):
    return [f"{query}{k}"]


def returns_awaitable(query, k):
    return takes_query_and_k_async(query, k)


def yields(query, k):
    yield f"{query}{k}"


class LangChainRetriever:
    """Has what LangChain's BaseRetriever has."""

    def invoke(self, input, config=None, **kwargs):
        raise NotImplementedError

    async def ainvoke(self, input, config=None, **kwargs):
        return [document(f"{input} {config} {kwargs}")]


class OldLangChainRetriever:
    def get_relevant_documents(self, query, *, callbacks=None, **kwargs):
        return [document(f"{query} {callbacks} {kwargs}")]


class LlamaIndexRetriever:
    """Has what LlamaIndex's BaseRetriever has."""

    async def aretrieve(self, str_or_query_bundle):
        node = SimpleNamespace(id_=str_or_query_bundle, node_id="", text="", metadata={})
        return [SimpleNamespace(node=node, score=0.5)]

    def retrieve(self, str_or_query_bundle):
        raise NotImplementedError


class OurRetriever:
    async def retrieve(self, query, k):
        return [f"{query}{k}"]


class CallableRetriever:
    async def __call__(self, query, k):
        return [f"{query}{k}"]


class SearchingRetriever:
    def search(self, query, limit):
        return [f"{query}{limit}"]


class RetrieverOverChunks:
    def __init__(self, chunks):
        self.chunks = chunks

    def retrieve(self, query, k):
        return [chunk.chunk_id for chunk in self.chunks]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (takes_query, ["q"]),
        (takes_query_and_k, ["q4"]),
        (takes_k_by_keyword, ["q4"]),
        (takes_k_under_another_name, ["q4"]),
        (takes_k_by_position, ["q4"]),
        (takes_anything, ["q4"]),
        (takes_query_and_options, ["q", "None", "{}"]),
        (takes_query_and_k_async, ["q4"]),
        (returns_awaitable, ["q4"]),
        (yields, ["q4"]),
        (LangChainRetriever(), ["q None {}"]),
        (OldLangChainRetriever(), ["q None {}"]),
        (LlamaIndexRetriever(), ["q"]),
        (OurRetriever(), ["q4"]),
        (OurRetriever, ["q4"]),
        (OurRetriever().retrieve, ["q4"]),
        (CallableRetriever(), ["q4"]),
        (SearchingRetriever(), ["q4"]),
    ],
)
def test_retrievers_are_asked_the_way_they_are_made(ids, found, expected):
    """A user names what they have; the wrong argument in the wrong place would fail or mislead."""
    assert ids(adapt(found, "m:x"), "q", k=4) == expected


def test_a_class_that_asks_for_the_chunks_gets_them(chunks, ids):
    """A plugin that indexes the corpus must be able to see it."""
    retriever = adapt(RetrieverOverChunks, "m:x", iter(chunks(a="red", b="blue")))

    assert ids(retriever, "q") == ["a", "b"]


def test_documents_are_matched_by_text(chunks, ids):
    """An index made elsewhere often keeps the text and nothing else."""
    found = SimpleNamespace(page_content="blue", metadata={}, id="0b5e")

    assert ids(adapt(lambda query: [found], "m:x", chunks(a="red", b="blue")), "q") == ["b"]


def test_plain_functions_run_beside_each_other():
    """A blocking client must not make the queries wait in line."""
    both = threading.Barrier(2, timeout=10)

    def search(query):
        both.wait()
        return [query]

    retriever = adapt(search, "m:x")

    async def together():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(retriever.retrieve(query, 1)) for query in "ab"]
        return [task.result()[0].chunk_id for task in tasks]

    assert asyncio.run(together()) == ["a", "b"]


def hangs(query):
    threading.Event().wait()


async def hangs_async(query):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (hangs_async, r"retriever m:x: no result in 0\.05 s$"),
        (hangs, r"retriever m:x: no result in 0\.05 s; its thread is left behind$"),
    ],
)
def test_what_hangs_fails_the_query_in_time(ask, found, message):
    """One lost connection must not hold up the run for ever."""
    with pytest.raises(CallError, match=message):
        ask(adapt(found, "m:x", timeout_s=0.05), "q")


def test_a_timeout_of_the_object_itself_passes(ask):
    """It says more than ours would."""

    async def search(query):
        raise TimeoutError("the index took 3 s")

    with pytest.raises(TimeoutError, match="the index took 3 s"):
        ask(adapt(search, "m:x", timeout_s=9), "q")


@pytest.mark.parametrize("result", [["\ud800"], [{"id": "a\udfff", "score": 1}]])
def test_an_id_that_no_file_can_hold_is_refused_in_a_sentence(ask, result):
    """A validator's four lines name no retriever."""
    with pytest.raises(
        DataError, match=r"retriever m:x: the chunk id '[^\n]+' has a lone surrogate"
    ):
        ask(adapt(lambda query: result, "m:x"), "q")


def test_exceptions_of_the_object_pass(ask):
    """The stage records them with the query they belong to."""

    def search(query):
        raise ConnectionError("index is down")

    with pytest.raises(ConnectionError, match="index is down"):
        ask(adapt(search, "m:x"), "q")


def test_an_unreadable_result_names_the_retriever(ask):
    """With several retrievers in a run the message must say which is meant."""
    with pytest.raises(DataError, match="retriever m:x: the result is of type NoneType"):
        ask(adapt(lambda query: None, "m:x"), "q")


def test_oddities_are_told(ask):
    """A retriever that repeats chunks has a defect its owner wants to know."""
    notes = []

    ask(adapt(lambda query: ["a", "a"], "m:x", note=notes.append), "q")

    assert notes == [
        "retriever m:x: chunk 'a' comes twice for the query 'q'; its first place counts (said once)"
    ]


@pytest.mark.parametrize("found", [{"a": 1}, "text", SimpleNamespace(retrieve=5)])
def test_what_cannot_search_is_refused(found):
    """The mistake must show before the first query."""
    with pytest.raises(UsageError, match=r"retriever m:x: is of type .*; expected a function"):
        adapt(found, "m:x")


def test_a_constructor_with_needs_is_refused():
    """Only the user knows what to pass."""

    class Needy:
        def __init__(self, url, index):
            raise NotImplementedError

    with pytest.raises(UsageError, match="constructor needs url, index; expected none or 'chunks'"):
        adapt(Needy, "m:x")


def test_a_constructor_that_raises_is_the_users_to_mend():
    """A missing service is no bug of ragforge."""

    class Broken:
        def __init__(self):
            raise ConnectionError("no index")

    with pytest.raises(UsageError, match="constructor raised ConnectionError: no index"):
        adapt(Broken, "m:x")
