"""Shapes of frameworks' objects; `tests/integrations` runs the real ones."""

import asyncio
from types import SimpleNamespace

import pytest

from ragforge.errors import UsageError
from ragforge.retrieval.frameworks import answer_of, hits_of
from ragforge.retrieval.rag_systems import adapt as adapt_system
from ragforge.retrieval.rag_systems import read_answer
from ragforge.retrieval.user_retrievers import adapt


def _found(*ids):
    return [{"chunk_id": each} for each in ids]


class VectorStore:
    """Has what LangChain's VectorStore has: its `search` wants a kind of search second."""

    def search(self, query, search_type, **kwargs):
        raise ValueError(search_type)

    def similarity_search_with_score(self, query, k=4, **kwargs):
        return [({"chunk_id": f"{query}{at}"}, 0.9 - at / 10) for at in range(k)]


class Index:
    """Has what LlamaIndex's index has."""

    def as_query_engine(self):
        raise NotImplementedError

    def as_retriever(self, **kwargs):
        async def retrieve(query):
            return _found(f"{query}{kwargs['similarity_top_k']}")

        return SimpleNamespace(aretrieve=retrieve)


class Component:
    """Has what a retriever of Haystack has."""

    __haystack_input__ = SimpleNamespace(_sockets_dict={"query": 1, "top_k": 1})

    def run(self, query, filters=None, top_k=None):
        return {"documents": _found(f"{query}{top_k}")}


class DocumentStore:
    """Has what a document store of Haystack has."""

    def bm25_retrieval(self, query, filters=None, top_k=10):
        return _found(f"{query}{top_k}")


class Pipeline:
    """Has what a pipeline of Haystack has: a retriever, a ranker, a model."""

    graph = SimpleNamespace(nodes=["retriever", "ranker", "model"])

    def inputs(self):
        text, number = ({"type": each, "is_mandatory": True} for each in (str, int))
        return {
            "retriever": {"query": text, "top_k": {"type": int, "is_mandatory": False}},
            "ranker": {"question": text, "seed": {**number, "is_mandatory": False}},
        }

    def run(self, data, include_outputs_from):
        assert include_outputs_from == {"retriever", "ranker", "model"}
        return {
            "retriever": {"documents": _found("first", data["retriever"]["query"])},
            "ranker": {"documents": _found(data["ranker"]["question"])},
            "model": {"replies": [SimpleNamespace(text="so it is")]},
        }


class Collection:
    """Has what a collection of Chroma has."""

    def query(self, query_embeddings=None, query_texts=None, n_results=10):
        return {
            "ids": [["7", "8"]],
            "documents": [["red", "blue"]],
            "metadatas": [[{"source": "a.md"}, None]],
            "distances": [[0.25, 0.5]],
            "embeddings": None,
        }


class Rows:
    """Has what a query of LanceDB has that was not run yet."""

    def __init__(self, kept=2):
        self.kept = kept

    def limit(self, kept):
        return Rows(kept)

    def to_list(self):
        rows = [
            {"vector": [0.0], "chunk_id": "a", "text": "red", "source": "a.md", "_distance": 0.25},
            {"vector": [1.0], "chunk_id": "b", "text": "blue", "source": "b.md", "_distance": 0.5},
        ]
        return rows[: self.kept]


class Table:
    """Has what a table of LanceDB has."""

    def search(self, query=None, vector_column_name=None, query_type="auto"):
        return Rows()


class Chain:
    """Has what a chain of LangChain has whose input is a mapping."""

    def __init__(self, *names, required=()):
        self.schema = {
            "type": "object",
            "properties": {name: {} for name in names},
            "required": list(required),
        }

    def get_input_jsonschema(self):
        return self.schema

    async def ainvoke(self, given, config=None):
        return {**given, "context": _found(str(given)), "answer": str(given)}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (VectorStore(), ["q0", "q1"]),
        (Index(), ["q2"]),
        (Component(), ["q2"]),
        (DocumentStore(), ["q2"]),
        (Pipeline(), ["q"]),
        (Collection(), ["7", "8"]),
        (Table(), ["a", "b"]),
        (Chain("input"), ["{'input': 'q'}"]),
        (Chain("text", "mood", required=["text"]), ["{'text': 'q'}"]),
        (Chain("chat_history", "question"), ["{'question': 'q'}"]),
        (Chain("messages", "files"), ["{'messages': [{'role': 'user', 'content': 'q'}]}"]),
        (lambda query, k: SimpleNamespace(source_nodes=_found("a")), ["a"]),
        (lambda query, k: {"answer": "x", "source_documents": _found("a", "b")}, ["a", "b"]),
    ],
)
def test_objects_of_frameworks_are_asked_in_their_way(ids, target, expected):
    """What a user has already should work as it is."""
    assert ids(adapt(target, "mine"), "q", 2) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [(VectorStore(), [0.9, 0.8]), (Collection(), [-0.25, -0.5]), (Table(), [-0.25, -0.5])],
)
def test_scores_and_distances_are_kept(ask, target, expected):
    """Scores are looked at, and fused; a distance grows where a score falls."""
    assert [hit.score for hit in ask(adapt(target, "mine"), "q", 2)] == expected


def test_a_row_of_a_table_says_where_it_is_from():
    """Its columns are its metadata, but for the vector."""
    [row] = hits_of(Rows(), 1)

    assert row == {
        "id": "a",
        "text": "red",
        "metadata": {"chunk_id": "a", "text": "red", "source": "a.md", "_distance": 0.25},
        "score": -0.25,
    }


def test_a_point_says_where_it_is_from():
    """LangChain keeps metadata inside of a payload of Qdrant, others beside the text."""
    payload = {"page_content": "red", "metadata": {"source": "a.md"}}
    points = [SimpleNamespace(id=7, score=0.5, payload=payload)]

    [hit] = hits_of(SimpleNamespace(points=points), 3)

    assert hit["metadata"]["source"] == "a.md"
    assert (hit["id"], hit["text"], hit["score"]) == (7, "red", 0.5)


@pytest.mark.parametrize("result", [["a"], "a", None, {"hits": ["a"]}, 7])
def test_other_results_stay_what_they_are(result):
    """What is no framework's is read, or refused, as ever."""
    assert hits_of(result, 3) == result
    assert answer_of(result) == result


def test_a_client_without_a_collection_is_refused():
    """It does not say which collection to search, nor what embeds the query."""
    client = SimpleNamespace(query_points=print)

    with pytest.raises(UsageError, match=r"mine: is a client of Qdrant.* around its query_points"):
        adapt(client, "mine")


def test_a_component_that_takes_a_vector_is_refused():
    """It has no text embedder; the pipeline around it has."""
    sockets = SimpleNamespace(_sockets_dict={"query_embedding": 1})
    component = SimpleNamespace(__haystack_input__=sockets, run=print)

    with pytest.raises(UsageError, match="takes an embedding and no text; expected a pipeline"):
        adapt(component, "mine")


def test_a_pipeline_answers_with_what_it_ranked_last():
    """What stood before the model is its context."""
    answer = asyncio.run(adapt_system(Pipeline(), "mine").answer("q"))

    assert answer.text == "so it is"
    assert [passage.ids for passage in answer.context] == [("q",)]


def test_a_generated_answer_brings_its_documents():
    """Haystack's AnswerBuilder keeps both."""
    generated = SimpleNamespace(data="so", query="q", documents=_found("a"))

    for result in (generated, {"answers": {"answers": [generated]}}):
        answer = read_answer(answer_of(result), "mine")
        assert (answer.text, answer.context[0].ids) == ("so", ("a",))


def test_a_chain_answers_what_is_asked_under_its_key():
    """Chains take mappings as a rule."""
    answer = asyncio.run(adapt_system(Chain("input"), "mine").answer("q"))

    assert answer.text == "{'input': 'q'}"


def test_documents_that_tools_retrieved_are_the_context_of_an_agent():
    """An agent's answer is its last message; what it read stands in those of its tools."""
    messages = [
        SimpleNamespace(content="q"),
        SimpleNamespace(content="red", artifact=_found("a", "b")),
        SimpleNamespace(content="so it is", artifact=None),
    ]
    answer = read_answer(answer_of({"messages": messages}), "mine")

    assert answer.text == "so it is"
    assert [passage.ids for passage in answer.context] == [("a",), ("b",)]


def test_a_chain_whose_types_have_no_schema_is_asked_with_the_text():
    """Pydantic refuses some types of users; the chain may work all the same."""

    class Chain:
        def get_input_jsonschema(self):
            raise TypeError("no schema")

        def invoke(self, query, config=None):
            return _found(query)

    assert [hit.chunk_id for hit in asyncio.run(adapt(Chain(), "mine").retrieve("q", 3))] == ["q"]


def test_a_text_that_can_be_called_is_an_answer():
    """So are those of LangChain, whose `text` was a method."""

    class Text(str):
        def __call__(self):
            raise NotImplementedError

    assert read_answer({"answer": Text("so")}, "mine").text == "so"
