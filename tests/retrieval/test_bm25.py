import asyncio
from pathlib import Path

import bm25s
import pytest

from ragforge.config import Settings
from ragforge.corpus.chunk_files import chunk_documents
from ragforge.errors import DataError
from ragforge.observe import silent
from ragforge.records import Chunk
from ragforge.retrieval.bm25 import BM25Retriever
from ragforge.retrieval.tokens import searched_text, tokenize

DOCUMENTS = Path(__file__).parents[2] / "datasets" / "helpcentre" / "documents"


def test_scores_are_those_of_the_formula(chunks, ask):
    """The baseline others are compared with must be BM25 and not something like it."""
    retriever = BM25Retriever(chunks(a="apple banana", b="apple apple cherry"))

    best, second = ask(retriever, "Apple?")

    # idf = ln(1 + 0.5 / 2.5); mean length 2.5
    assert (best.chunk_id, second.chunk_id) == ("b", "a")
    assert best.score == pytest.approx(0.18232156 * 2 / (2 + 1.5 * (0.25 + 0.75 * 3 / 2.5)))
    assert second.score == pytest.approx(0.18232156 * 1 / (1 + 1.5 * (0.25 + 0.75 * 2 / 2.5)))


def test_a_chinese_query_finds_its_chunk(chunks, ids):
    """Text without spaces must not become one long word."""
    retriever = BM25Retriever(
        chunks(a="北京是中国的首都。", b="上海是一座城市。", c="English only")
    )

    assert ids(retriever, "中国的首都在哪里") == ["a"]


def test_headings_are_searched(ids):
    """What a section is about is often said in its title alone."""
    with_title = Chunk(chunk_id="a", doc_id="d", text="Set it to 5.", heading_path=("Timeouts",))
    without = Chunk(chunk_id="b", doc_id="d", text="Set it to 7.")

    assert ids(BM25Retriever([with_title, without]), "timeouts") == ["a"]


def test_ties_are_broken_by_id_descending(chunks, ids):
    """The order must be the one in which the evaluation reads equal scores."""
    retriever = BM25Retriever(chunks(b="red", a="red", c="red", d="blue"))

    assert ids(retriever, "red") == ["c", "b", "a"]


def test_cutting_among_ties_keeps_the_highest_ids(chunks, ids):
    """A cut that depends on storage order would change the run with the order of the file."""
    retriever = BM25Retriever(chunks(b="red", a="red", c="red red", d="red"))

    assert ids(retriever, "red", k=2) == ["c", "d"]


@pytest.mark.parametrize("query", ["", " ?! ", "unheard"])
def test_a_query_without_known_words_finds_nothing(chunks, ask, query):
    """Chunks of score 0 would be noise that looks like a result."""
    assert ask(BM25Retriever(chunks(a="red", b="blue")), query) == []


@pytest.mark.parametrize("texts", [{}, {"a": "—"}])
def test_a_corpus_without_words_finds_nothing(chunks, ask, texts):
    """An empty folder is no reason for a division by zero."""
    assert ask(BM25Retriever(chunks(**texts)), "red") == []


def test_an_id_that_comes_twice_is_refused(chunks):
    """Two chunks of one id cannot be judged apart."""
    with pytest.raises(DataError, match="id 'a' comes twice"):
        BM25Retriever([*chunks(a="red"), *chunks(a="blue")])


def test_scores_are_those_of_bm25s_to_the_last_bit():
    """A ranking that differs in its ties from that of the known library would be another BM25."""
    chunks = list(chunk_documents([DOCUMENTS], Settings().chunk, silent))
    words = [tokenize(searched_text(chunk)) for chunk in chunks]
    known = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend="numpy")
    known.index(words, show_progress=False)
    retriever = BM25Retriever(chunks)

    for chunk in chunks:
        hits = asyncio.run(retriever.retrieve(chunk.text, len(chunks)))
        scores = known.get_scores(tokenize(chunk.text)).tolist()
        expected = {
            each.chunk_id: score for each, score in zip(chunks, scores, strict=True) if score
        }
        assert {hit.chunk_id: hit.score for hit in hits} == expected


def test_indexing_prints_nothing(chunks, capfd):
    """Standard output carries data, and progress belongs to the command line."""
    BM25Retriever(chunks(a="red"))

    assert capfd.readouterr() == ("", "")
