"""Paths that are proposed by what a reply looks like."""

import json

import pytest

from ragforge.retrieval.services.paths import ReplyPath
from ragforge.retrieval.services.shapes import propose_answer, propose_results

from .test_engines import ELASTICSEARCH, QDRANT, WEAVIATE


def paths(proposals):
    return {item.setting: item.path for item in proposals}


@pytest.mark.parametrize(
    ("reply", "proposed"),
    [
        (
            ELASTICSEARCH,
            {"results": "hits.hits", "id": "_id", "score": "_score"},
        ),
        (QDRANT, {"results": "result.points", "id": "id", "score": "score"}),
        (
            WEAVIATE,
            {
                "results": "data.Get.Docs",
                "id": "_additional.id",
                "text": "body",
                "score": "_additional.score",
            },
        ),
        (
            {"responses": [{"value": [{"@search.score": 1.5, "chunk_id": "a", "chunk": "x y"}]}]},
            {
                "results": "responses[0].value",
                "id": "chunk_id",
                "text": "chunk",
                "score": '"@search.score"',
            },
        ),
        (
            [{"docid": "x.md", "uid": "1", "text": "a b"}, {"docid": "x.md", "uid": "2"}],
            {"results": "@", "id": "uid", "document": "docid"},
        ),
        (
            {
                "ids": [["a", "b"]],
                "embeddings": None,
                "documents": [["goods go back", "beeswax is a polish"]],
                "metadatas": [[{"source": "x.md"}, {"source": "y.md"}]],
                "distances": [[0.1, 1.8]],
                "include": ["documents", "metadatas", "distances"],
            },
            {
                "results": "{id: ids[0], document: documents[0], metadata: metadatas[0], "
                "distance: distances[0]}",
                "id": "id",
                "text": "document",
                "document": "metadata.source",
                "score": "distance",
            },
        ),
        ({"tags": ["a", "b"], "matches": ["c1", "c2"]}, {"results": "matches"}),
    ],
)
def test_results_are_found_by_names_and_shapes(reply, proposed):
    """Of well-known engines first: whoever writes a service copies one of them."""
    assert paths(propose_results(reply)) == proposed


@pytest.mark.parametrize("reply", [None, 3, "text", {}, [], {"x": 1}, [[1, 2]], {"v": [1, 2, 3]}])
def test_nothing_is_proposed_where_nothing_looks_like_results(reply):
    """A wrong path costs more than none."""
    assert propose_results(reply) == []


@pytest.mark.parametrize(
    ("reply", "proposed"),
    [
        ({"result": {"output_text": "Yes"}}, {"answer": "result.output_text"}),
        ({"id": "7", "answer": "Yes", "trace": "a long line of words"}, {"answer": "answer"}),
        ({"sources": ["a", "b"], "reply": "So"}, {"answer": "reply", "contexts": "sources"}),
        ({"content": ["So", "it is"]}, {"answer": "content[0]"}),
        (
            {"reply": "So", "contents": [{"text": "So it is.", "source": "a.md"}]},
            {"answer": "reply", "contexts": "contents", "text": "text", "document": "source"},
        ),
    ],
)
def test_an_answer_is_found_by_its_name(reply, proposed):
    """The longest text may be a log."""
    assert paths(propose_answer(reply)) == proposed


@pytest.mark.parametrize(
    ("reply", "path"),
    [
        (
            {
                "id": "chatcmpl-12345678901234567890",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "Thirty."}}],
            },
            "choices[0].message.content",
        ),
        (
            {"candidates": [{"content": {"parts": [{"text": "Thirty."}], "role": "model"}}]},
            "candidates[0].content.parts[0].text",
        ),
        (
            {"output": [{"type": "message", "content": [{"type": "text", "text": "Thirty."}]}]},
            "output[0].content[0].text",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": "How many days?"},
                    {"role": "assistant", "content": "Thirty."},
                ]
            },
            "messages[-1].content",
        ),
    ],
)
def test_what_a_model_says_is_no_context(reply, path):
    """An answer that is its own context says nothing beyond it, whatever it says."""
    assert paths(propose_answer(reply)) == {"answer": path}
    assert ReplyPath(path, "x").scalar(reply) == "Thirty."


def test_a_rank_is_no_score_and_an_id_no_text():
    """The best hit would have the lowest score, and ids would be judged as if they were texts."""
    reply = {"hits": [{"chunk": "a-1", "rank": 1}, {"chunk": "a-2", "rank": 2}]}

    assert paths(propose_results(reply)) == {"results": "hits", "id": "chunk"}


def test_what_is_proposed_finds_what_it_says():
    """Keys that are no words are quoted."""
    reply = {"my data": {"x-hits": [{"chunk-id": "a", "text": "one two"}]}}

    [results, *fields] = propose_results(reply)

    [item] = ReplyPath(results.path, "x").listed(reply)
    found = {field.setting: ReplyPath(field.path, "x").scalar(item) for field in fields}
    assert found == {"id": "a", "text": "one two"}


def test_a_huge_reply_is_looked_at_in_part():
    """A service decides how much it sends."""
    reply = json.loads("[" * 5 + "]" * 5)
    reply.append([{"id": str(number), "text": "x"} for number in range(50_000)])

    assert propose_results({"hits": reply}) is not None
