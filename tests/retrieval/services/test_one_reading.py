"""A service is read alike by its address and by settings."""

import pytest
from scripted_service import Answer

from ragforge.config import RetrieverService
from ragforge.corpus.text_locations import TextLocator, documents_of
from ragforge.records import Chunk, Ranking, text_id
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.services.retriever import ServiceRetriever
from ragforge.retrieval.user_retrievers import HttpRetriever

ZEBRAS = "Zebras live in Africa, where they graze in herds and flee from lions."
GADGETS = "The one-gadget costs one dollar, and the other one costs two dollars."
ELSEWHERE = "A sentence that stands in none of the documents of the set."
BOILERPLATE = "This page was reviewed by the council."


@pytest.fixture
def corpus():
    return [
        Chunk(chunk_id="d0", doc_id="a.md", text=ZEBRAS, end=len(ZEBRAS)),
        Chunk(chunk_id="d1", doc_id="b.md", text=GADGETS, end=len(GADGETS)),
        *(
            Chunk(chunk_id=f"e{n}", doc_id=f"{n}.md", text=BOILERPLATE, end=len(BOILERPLATE))
            for n in range(3)
        ),
    ]


def by_address(url, chunks, **options):
    return HttpRetriever(url, chunks, **options)


def by_settings(url, chunks, **options):
    return ServiceRetriever("docs", RetrieverService(url=url), chunks, **options)


def by_paths(url, chunks, **options):
    fields = {"results": "results", "id": "id", "text": "text", "document": "source"}
    service = RetrieverService.model_validate({"url": url, **fields})
    return ServiceRetriever("docs", service, chunks, **options)


@pytest.fixture(params=[by_address, by_settings, by_paths])
def found(request, scripted, corpus, ask):
    """Return the ids that a reply comes to, and what was told."""

    def read(*results):
        scripted.answer = Answer({"results": [*results]})
        taken = RetrievedTexts(CorpusDocuments(corpus, documents_of, TextLocator))
        notes = []
        retriever = request.param(scripted.url, corpus, note=notes.append, texts=taken)
        [ranking] = taken.settle([Ranking(query_id="q", ranking=ask(retriever, "Why?"))])
        return [hit.chunk_id for hit in ranking.ranking], notes

    return read


@pytest.mark.parametrize(
    ("text", "chunk_id"), [(ZEBRAS, "d0"), (ELSEWHERE, text_id(ELSEWHERE)), (BOILERPLATE, "e0")]
)
def test_a_hit_that_comes_again_counts_once_and_is_told(found, text, chunk_id):
    """Its copies gained again by one way of asking, and not by the other."""
    again, other = {"id": "x0", "text": text}, {"id": "x1", "text": GADGETS}

    ids, notes = found(again, again, other, other, again)

    assert ids == [chunk_id, "d1"]
    [note] = notes
    assert "chunk 'x0' comes twice for the query 'Why?'; its first place counts" in note


def test_one_text_of_another_document_is_a_hit_of_its_own(found):
    """Ids that count within a document name two hits alike."""
    hit = {"id": "0", "text": BOILERPLATE}

    ids, notes = found(hit | {"source": "2.md"}, hit | {"source": "0.md"})

    assert (ids, notes) == (["e2", "e0"], [])


def test_a_text_without_an_id_counts_as_often_as_the_documents_hold_it(found):
    """Nothing tells which of its places is meant."""
    ids, notes = found(*[{"text": BOILERPLATE}] * 5, {"text": ZEBRAS})

    assert ids == ["e0", "e1", "e2", "d0"]
    assert notes == []
