import asyncio

import pytest

from ragforge.records import Chunk


@pytest.fixture
def chunks():
    """Make chunks of `id=text`."""
    return lambda **texts: [
        Chunk(chunk_id=chunk_id, doc_id="d", text=text) for chunk_id, text in texts.items()
    ]


@pytest.fixture
def ask():
    """Retrieve and wait."""
    return lambda retriever, query, k=10: asyncio.run(retriever.retrieve(query, k))


@pytest.fixture
def ids(ask):
    """Retrieve, wait, and keep the ids."""
    return lambda retriever, query, k=10: [hit.chunk_id for hit in ask(retriever, query, k)]
