from types import SimpleNamespace

import numpy as np
import pytest

from ragforge.errors import CallError
from ragforge.records import Answer
from ragforge.retrieval import ContextPassage, SystemAnswer
from ragforge.retrieval.rag_systems import read_answer


def document(text, **metadata):
    """What LangChain's Document has."""
    return SimpleNamespace(page_content=text, metadata=metadata, id=None)


def node(text, node_id, **metadata):
    """What LlamaIndex's NodeWithScore has."""
    inner = SimpleNamespace(text=text, node_id=node_id, id_=node_id, metadata=metadata)
    return SimpleNamespace(node=inner, score=0.5)


class Response:
    """What LlamaIndex's Response has."""

    def __init__(self, response, source_nodes):
        self.response, self.source_nodes, self.metadata = response, source_nodes, {}


def message(content):
    """What LangChain's AIMessage has."""
    return SimpleNamespace(content=content, response_metadata={})


@pytest.mark.parametrize(
    "result",
    [
        "Krill.",
        ("Krill.", []),
        SystemAnswer("Krill."),
        {"answer": "Krill."},
        {"response": "Krill."},
        {"query": "What?", "result": "Krill.", "source_documents": []},
        {"generatedAnswer": "Krill."},
        Response("Krill.", []),
        message("Krill."),
        message([{"type": "text", "text": "Krill."}]),
        {"messages": [message("What?"), message("Krill.")]},
        {"answer": message("Krill.")},
        SimpleNamespace(response=message("Krill.")),
        Answer(query_id="q1", answer="Krill."),
        {"answer": "Krill.", "error": None},
    ],
)
def test_the_answer_is_found_in_what_systems_return(result):
    """A user should not have to write code between a framework and this tool."""
    assert read_answer(result, "here") == SystemAnswer("Krill.")


@pytest.mark.parametrize("result", ["", {"answer": ""}, ("", ["a"]), Response("", [])])
def test_an_empty_answer_is_what_the_system_said(result):
    """It is graded as such; only a call that failed gives no answer."""
    assert read_answer(result, "here").text == ""


@pytest.mark.parametrize(
    ("context", "passage"),
    [
        ("a", ContextPassage(("a",), ("a",))),
        (7, ContextPassage(("7",))),
        (("a", 0.5), ContextPassage(("a",), ("a",))),
        ({"chunk_id": "a"}, ContextPassage(("a",))),
        ({"id": "x", "text": "red"}, ContextPassage(("x",), ("red",))),
        ({"doc_id": "a.md", "quote": "red"}, ContextPassage((), ("red",), ("a.md",))),
        ({"source": "a.md"}, ContextPassage(("a.md",), (), ("a.md",))),
        (document("red", chunk_id="a", source="a.md"), ContextPassage(("a",), ("red",), ("a.md",))),
        (node("red", "n1", file_name="a.md"), ContextPassage(("n1", "n1"), ("red",), ("a.md",))),
        (ContextPassage(("a",)), ContextPassage(("a",))),
    ],
)
def test_passages_of_several_shapes_are_read(context, passage):
    """Ids, texts and documents each can tell which chunk it is."""
    assert read_answer(("Krill.", [context]), "here").context == (passage,)


def test_passages_may_come_in_an_array():
    """A notebook has its contexts in one, or in a column of a frame."""
    answer = read_answer({"answer": "Krill.", "contexts": np.array(["b", "a"])}, "here")

    assert answer == read_answer({"answer": "Krill.", "contexts": ["b", "a"]}, "here")


@pytest.mark.parametrize(
    "result",
    [
        {"answer": "Krill.", "chunk_ids": ["a"]},
        {"answer": "Krill.", "retrievedDocs": ["a"]},
        {"answer": "Krill.", "context": ["a"]},
        {"answer": "Krill.", "sources": ["a"]},
        {"answer": "Krill.", "chunk_ids": [], "contexts": ["a"]},
        {"answer": "Krill.", "retrieved": {"documents": ["a"]}},
        {"answer": "Krill.", "context": "a"},
        ("Krill.", ("a",)),
        SimpleNamespace(answer="Krill.", context=["a"]),
    ],
)
def test_the_context_goes_by_several_names(result):
    """Without it no one can tell bad retrieval from a bad model."""
    assert [passage.ids for passage in read_answer(result, "here").context] == [("a",)]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, r"here: the result is None \(type NoneType\); expected a text"),
        (7, "the result is 7"),
        (["Krill."], r"the result is \['Krill.'\]"),
        ({}, "a mapping with nothing, and no text as its answer"),
        ({"detail": "busy"}, "a mapping with 'detail', and no text"),
        ({"answer": None}, "a mapping with 'answer', and no text"),
        ({"answer": 7}, "a mapping with 'answer', and no text"),
        (Response(None, []), "expected a text"),
        ({"answer": "a", "sources": 1.5}, "the context is of type float"),
        ({"answer": "a", "sources": [{"score": 1}]}, "cannot tell which passage"),
        ({"answer": "\ud800"}, "half a surrogate pair"),
        ({"answer": "a", "chunk_ids": ["\ud800"]}, "half a surrogate pair"),
    ],
)
def test_what_is_no_answer_is_a_failure(result, message):
    """An error object must not be graded as if the system had said nothing."""
    with pytest.raises(CallError, match=message) as caught:
        read_answer(result, "here", "start")

    assert (caught.value.kind, caught.value.raw) == ("invalid", "start")


@pytest.mark.parametrize("error", ["boom", {"code": 500}, True])
def test_an_error_beside_a_text_is_a_failure(error):
    """Services apologise in the answer, and tell what happened beside it."""
    with pytest.raises(CallError, match="no answer, but an error") as caught:
        read_answer({"answer": "x", "error": error}, "here")

    assert caught.value.kind == "error"


@pytest.mark.parametrize("error", [None, "", {}, [], False, 0])
def test_no_error_beside_an_answer_is_none(error):
    """Many services always send the field."""
    assert read_answer({"answer": "x", "error": error}, "here").text == "x"


@pytest.mark.parametrize("lacking", [{"answer": ""}, {"answer": None}, {}])
def test_an_error_in_the_place_of_an_answer_is_a_failure(lacking):
    """Services put nothing where an answer would be, and the reason beside it."""
    with pytest.raises(CallError, match="no answer, but an error: 'timeout'") as caught:
        read_answer({**lacking, "error": "timeout"}, "here")

    assert caught.value.kind == "error"


@pytest.mark.parametrize(
    ("told", "usd"),
    [(0.002, 0.002), ("0.002", 0.002), (0, 0.0), (None, None), (-1, None), ("free", None)],
)
@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_what_an_answer_cost_is_taken_where_it_is_an_amount(told, usd, kind):
    """A system's answer is no worse for a price that cannot be read."""
    assert read_answer(kind(answer="Krill.", cost_usd=told), "here") == SystemAnswer(
        "Krill.", cost_usd=usd
    )
