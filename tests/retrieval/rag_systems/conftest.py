import asyncio

import pytest

from ragforge.records import Chunk


@pytest.fixture
def ask():
    """Have a system answer and wait."""
    return lambda answerer, query="q": asyncio.run(answerer.answer(query))


@pytest.fixture
def chunks():
    """Make chunks of `id=text`."""
    return lambda **texts: [
        Chunk(chunk_id=chunk_id, doc_id="d", text=text) for chunk_id, text in texts.items()
    ]
