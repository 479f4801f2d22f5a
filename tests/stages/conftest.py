import asyncio

import pytest
from fakes import saying

from ragforge.config import ModelSettings
from ragforge.prompts import load_prompt
from ragforge.records import Chunk, Query
from ragforge.stages.asking import Asker


@pytest.fixture
def asker():
    """Make an asker with a shipped prompt and a model, or the texts a model says."""

    def make(prompt, *said):
        model = saying(*said) if isinstance(said[0], str) else said[0]
        return Asker(model, "test-model", ModelSettings(name="test-model"), load_prompt(prompt))

    return make


@pytest.fixture
def wait():
    """Run a coroutine to its end."""
    return asyncio.run


@pytest.fixture
def chunk():
    """Make a chunk."""

    def make(text, chunk_id="c1", doc_id="d1", **changes):
        return Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text, **changes)

    return make


@pytest.fixture
def query():
    """Make a query."""

    def make(text="What do whales eat?", query_id="q1", **changes):
        return Query(query_id=query_id, query=text, **changes)

    return make
