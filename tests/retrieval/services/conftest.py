import asyncio

import pytest

from ragforge.config import RetrieverService, SystemService
from ragforge.errors import CallError, EndpointError
from ragforge.retrieval.services.client import ServiceClient
from ragforge.retrieval.services.dialects import plan_of
from ragforge.retrieval.services.retriever import ServiceRetriever
from ragforge.retrieval.services.system import ServiceSystem

TOKEN = "tok-0123456789abcdefg"
SECRET = "client-secret-9876"


@pytest.fixture
def waits():
    """Seconds that were waited for, without waiting."""
    return []


@pytest.fixture
def client_of(waits):
    """Make the client of settings; waiting takes no time."""

    async def sleep(seconds):
        waits.append(round(seconds, 3))

    def make(where, service, environment, notes=None):
        return ServiceClient(
            where,
            service,
            plan_of(service),
            timeout_s=10,
            environment=environment,
            note=(notes if notes is not None else []).append,
            sleep=sleep,
        )

    return make


@pytest.fixture
def retriever(scripted, client_of):
    """Make a retriever of settings, at the scripted service unless they say otherwise."""

    def make(chunks=(), *, embedder=None, texts=None, **fields):
        service = RetrieverService.model_validate({"url": f"{scripted.url}/search", **fields})
        client = client_of("retrievers.docs", service, {"TOKEN": TOKEN, "SECRET": SECRET})
        return ServiceRetriever(
            "docs", service, chunks, embedder=embedder, client=client, texts=texts
        )

    return make


@pytest.fixture
def system(scripted, client_of):
    """Make a system of settings, likewise."""

    def make(notes=None, **fields):
        service = SystemService.model_validate({"url": f"{scripted.url}/ask", **fields})
        client = client_of("systems.rag", service, {"TOKEN": TOKEN, "SECRET": SECRET}, notes)
        return ServiceSystem("rag", service, client=client)

    return make


@pytest.fixture
def answer():
    """Ask a system and wait."""
    return lambda system, query="Why?": asyncio.run(system.answer(query))


@pytest.fixture
def failure(ask):
    """Ask a retriever, and return how it failed."""

    def fail(retriever, query="Why?", k=10):
        with pytest.raises((CallError, EndpointError), match=r"^retrievers\.docs") as caught:
            ask(retriever, query, k)
        return caught.value

    return fail
