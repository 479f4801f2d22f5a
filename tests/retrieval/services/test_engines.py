"""Search engines by their dialects.

No such engine can be installed here: the replies are look-alikes in the shape that their
documentation gives.
"""

import pytest
from scripted_service import Answer

ELASTICSEARCH = {
    "took": 5,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {
        "total": {"value": 2, "relation": "eq"},
        "max_score": 1.3,
        "hits": [
            {"_index": "docs", "_id": "b", "_score": 1.3, "_source": {"text": "blue"}},
            {"_index": "docs", "_id": "x7", "_score": 0.6, "_source": {"content": "red"}},
        ],
    },
}
QDRANT = {
    "result": {
        "points": [
            {"id": 17, "version": 3, "score": 0.75, "payload": {"page_content": "blue"}},
            {"id": "5c56", "version": 3, "score": 0.5, "payload": {"text": "red"}},
        ]
    },
    "status": "ok",
    "time": 0.002,
}
WEAVIATE = {
    "data": {
        "Get": {
            "Docs": [
                {"body": "blue", "_additional": {"id": "36dd", "score": "0.0163"}},
                {"body": "red", "_additional": {"id": "df2a", "score": "0.0082"}},
            ]
        }
    }
}


class Embedder:
    async def embed(self, texts):
        return [[0.5, float(len(text))] for text in texts]


@pytest.fixture
def found(scripted, retriever, ids, chunks):
    """Search with a dialect for what the reply holds."""

    def find(reply, **fields):
        scripted.answer = Answer(reply)
        corpus = chunks(a="red", b="blue")
        return ids(retriever(corpus, **{"url": scripted.url, **fields}), "Why?", k=2)

    return find


@pytest.mark.parametrize("dialect", ["elasticsearch", "opensearch"])
def test_an_index_is_searched(scripted, found, dialect):
    """The address of the server and the name of the index are enough."""
    assert found(ELASTICSEARCH, dialect=dialect, collection="docs") == ["b", "a"]

    [seen] = scripted.seen
    assert seen.path == "/docs/_search"
    assert seen.json == {
        "query": {"multi_match": {"query": "Why?", "lenient": True}},
        "size": 2,
        "from": 0,
    }


def test_fields_of_an_index_can_be_named(scripted, found):
    """A mapping has names of its own, with dots where it is nested."""
    hit = {"_id": "1", "_score": 1, "_source": {"key": {"chunk-id": "a"}, "passage": "?"}}
    reply = {**ELASTICSEARCH, "hits": {"hits": [hit]}}

    fields = {"collection": "docs", "id_field": "key.chunk-id", "text_field": "passage"}

    assert found(reply, dialect="elasticsearch", **fields) == ["a"]
    assert scripted.seen[0].json["query"]["multi_match"]["fields"] == ["passage"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"timed_out": True}, "the search timed out"),
        (
            {"_shards": {"failed": 1, "failures": [{"shard": 0, "reason": {"type": "x"}}]}},
            '"shard": 0',
        ),
        ({"_shards": {"total": 5, "successful": 2, "failed": 3}}, "3 shards failed"),
        ({"error": {"type": "index_not_found_exception"}}, "index_not_found"),
    ],
)
def test_a_search_of_a_part_of_the_index_is_a_failure(scripted, retriever, failure, change, told):
    """It has a status of 200, and lacks what the rest would have found."""
    scripted.answer = Answer({**ELASTICSEARCH, **change})

    assert told in str(failure(retriever(url=scripted.url, dialect="elasticsearch")))


def test_any_field_of_a_dialect_can_be_set_otherwise(scripted, found):
    """A hybrid query of one's own, with the rest as it is."""
    body = {"query": {"match": {"t": "{query}"}}, "size": "{k}"}

    assert found(ELASTICSEARCH, dialect="elasticsearch", body=body, id="_source.no") == ["b", "a"]
    assert scripted.seen[0].json == {"query": {"match": {"t": "Why?"}}, "size": 2}


def test_a_path_of_ones_own_stays(scripted, found):
    """A gateway may stand before an engine."""
    url = f"{scripted.url}/gateway/search?pretty=1"

    assert found(ELASTICSEARCH, dialect="opensearch", collection="docs", url=url) == ["b", "a"]
    assert scripted.seen[0].path == "/gateway/search"


def test_a_collection_of_qdrant_is_asked_with_a_vector(scripted, retriever, ids, chunks):
    """It searches vectors; those of the query are made as those of the index were."""
    scripted.answer = Answer(QDRANT)

    found = retriever(
        chunks(a="red", b="blue"),
        url=scripted.url,
        dialect="qdrant",
        collection="docs",
        headers={"api-key": "${TOKEN}"},
        embedder=Embedder(),
    )

    assert ids(found, "Why?", k=2) == ["b", "a"]
    [seen] = scripted.seen
    assert seen.path == "/collections/docs/points/query"
    assert seen.json == {"query": [0.5, 4.0], "limit": 2, "offset": 0, "with_payload": True}


def test_an_error_of_qdrant_is_told(scripted, retriever, failure):
    """In its own words."""
    scripted.answer = Answer({"status": {"error": "Not found: Collection"}, "time": 0.0}, 404)

    error = failure(
        retriever(url=scripted.url, dialect="qdrant", collection="c", embedder=Embedder())
    )

    assert "Not found: Collection" in str(error)


def test_a_class_of_weaviate_is_searched(scripted, found):
    """A quote in a question must not end the GraphQL text."""
    assert found(WEAVIATE, dialect="weaviate", collection="Docs", text_field="body") == ["b", "a"]

    [seen] = scripted.seen
    assert seen.path == "/v1/graphql"
    assert seen.json == {
        "query": '{ Get { Docs(limit: 2, offset: 0, hybrid: { query: "Why?" }) '
        "{ body _additional { id score } } } }"
    }


def test_an_error_of_graphql_is_a_failure(scripted, retriever, failure):
    """It comes with a status of 200, and with null for what was asked."""
    scripted.answer = Answer(
        {"data": {"Get": {"Docs": None}}, "errors": [{"message": "no vectorizer", "path": ["Get"]}]}
    )

    error = failure(retriever(url=scripted.url, dialect="weaviate", collection="Docs"))

    assert error.kind == "error"
    assert "no vectorizer" in str(error)
