"""Tests of hits with the id of a chunk and a text that says something else than the chunk."""

import pytest

from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import file_texts
from ragforge.pipeline.answer.asking_systems import PassageFinder
from ragforge.records import Chunk, text_id
from ragforge.retrieval import ContextPassage
from ragforge.retrieval.corpus_documents import CorpusDocuments
from ragforge.retrieval.retrieved_texts import RetrievedTexts
from ragforge.retrieval.user_retrievers import ResultReader

BEFORE = (
    "The town hall opens at eight on Mondays, and rooms on its upper floor are reached by the "
    "stairs behind the fountain."
)
FEE = "A fishing permit costs 107 crowns at the counter of the harbour office."
AFTER = (
    "Children fish without one as long as a grown-up watches them, and nobody fishes between the "
    "piers while the ferry is in."
)
TEXT = f"{BEFORE} {FEE} {AFTER}"
OTHER = "Fees are set in spring, please ask again."

CHANGES = {
    "another answer": TEXT.replace(FEE, OTHER),
    "another number": TEXT.replace("107", "120"),
    "another digit": TEXT.replace("107", "1.07"),
    "another name": TEXT.replace("Mondays", "Fridays"),
    "a negation": TEXT.replace("costs", "no longer costs"),
    "a sentence dropped": TEXT.replace(f"{FEE} ", ""),
    "another end": f"{BEFORE} {OTHER}",
    "another long end": f"{BEFORE} {OTHER} {' '.join(reversed(AFTER.split()))}",
    "another beginning": f"{OTHER} {AFTER}",
    "another number, cut": f"{TEXT.replace('107', '120')[:160]}…",
    "another number, marked": TEXT.replace("107", "<em>120</em>"),
    "another number, with a heading": f"Fees\n\n{TEXT.replace('107', '120')}",
    "an answer behind a cut": f"{BEFORE} … It costs 120 crowns.",
}
KEPT = {
    "marks of its own": TEXT.replace("107", "{{hl}}107{{/hl}}").replace("Mondays", "@@h@@Mondays"),
    "unknown tags": TEXT.replace("107 crowns", '<hit n="1">107 crowns</hit>'),
    "links": TEXT.replace("harbour office", "[harbour office](https://town.example/harbour)"),
    "a heading, cut": f"Town > Fees\n\n{TEXT[:150]}",
    "a heading, cut and marked": f"Town > Fees\n\n{TEXT[:160].replace('107', '<b>107</b>')}…",
    "a label behind a cut": f"{TEXT[:150]}… Read more",
    "a title before a cut": f"Fees of the town … {FEE} …",
    "an end with a source": f"…{AFTER} Source: the town's handbook",
    "a word": "fountain",
}


@pytest.fixture
def chunks():
    return [
        Chunk(chunk_id="fees", doc_id="fees.md", text=TEXT),
        Chunk(chunk_id="ferry", doc_id="ferry.md", text="The ferry leaves from the pier at six."),
    ]


@pytest.fixture
def taken(chunks):
    return RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))


@pytest.fixture
def reader(chunks, taken):
    return ResultReader("it", chunks, texts=taken)


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
def test_a_text_that_says_something_else_is_not_the_chunk_of_its_id(reader, taken, text):
    """A stale index would pass a gate with the grades of texts that it never returned."""
    [hit] = reader.read([{"id": "fees", "text": text}], "q", 10)

    assert hit.chunk_id == text_id(text)
    assert (taken.n_misnamed, taken.misnamed) == (1, ("fees", text))


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_text_that_says_nothing_else_is_the_chunk_of_its_id(reader, taken, text):
    """Services cut what they found, and put marks, headings and labels to it."""
    [hit] = reader.read([{"id": "fees", "text": text}], "q", 10)

    assert (hit.chunk_id, taken.n_misnamed) == ("fees", 0)


def test_a_chunk_with_markup_is_itself_as_it_is_read():
    """An index may hold what a reader sees of chunks that have links and tags."""
    text = 'The <b>permit</b> costs 107 crowns at the [office](https://town.example/o "Office").'
    chunks = [Chunk(chunk_id="fees", doc_id="fees.md", text=text)]
    taken = RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))
    read = "The permit costs 107 crowns at the office."
    [hit] = ResultReader("it", chunks, texts=taken).read([{"id": "fees", "text": read}], "q", 1)

    assert (hit.chunk_id, taken.n_misnamed) == ("fees", 0)


@pytest.mark.parametrize("n", [2, 5])
def test_another_number_in_a_tag_is_another_text(n):
    """A page about HTML says it."""
    text = 'A list with <ol start="2"> begins with <b>two</b>, whatever stands before it.'
    chunks = [Chunk(chunk_id="ol", doc_id="lists.txt", text=text)]
    taken = RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))
    hit = {"id": "ol", "text": text.replace("2", str(n)).replace("begins", "<em>begins</em>")}
    ResultReader("it", chunks, texts=taken).read([hit], "q", 1)

    assert taken.n_misnamed == (n != 2)


@pytest.mark.parametrize("n", [107, 120])
def test_the_markup_of_a_file_is_no_other_text(n):
    """An index may hold chunks as an earlier release cut them, before it read markup."""
    read = "Fees\n\nA fishing permit costs 107 crowns at the harbour office, see the price list."
    chunks = [Chunk(chunk_id="fees", doc_id="fees.rst", text=read)]
    taken = RetrievedTexts(CorpusDocuments(chunks, file_texts, FileTextLocator))
    text = (
        f".. note to whom it concerns\n\nA fishing permit costs {n} crowns at the `harbour office\n"
        "<http://town.example/harbour>`__, see the :ref:`price list <prices-of-all>`."
    )
    ResultReader("it", chunks, texts=taken).read([{"id": "fees", "text": text}], "q", 1)

    assert taken.n_misnamed == (n != 107)


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
def test_a_passage_that_says_something_else_is_not_the_chunk_of_its_id(chunks, text):
    """An answer was written from what the passage says."""
    finder = PassageFinder(chunks)
    found = finder.find([ContextPassage(ids=("fees",), texts=(text,))])

    assert "fees" not in found.chunk_ids
    assert "1 passage came with the id of a chunk" in finder.misnamed
