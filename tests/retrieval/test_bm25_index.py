import asyncio
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.config import Settings
from ragforge.corpus.chunk_files import chunk_documents
from ragforge.observe import silent
from ragforge.records import Chunk
from ragforge.retrieval import bm25_index
from ragforge.retrieval.bm25 import BM25Retriever
from ragforge.retrieval.bm25_index import PostingsWriter, StoredBM25, TermNumbers, write_index
from ragforge.retrieval.tokens import searched_text, tokenize

DOCUMENTS = Path(__file__).parents[2] / "datasets" / "helpcentre" / "documents"


def index(folder, chunks, at_once=3, n_parts=2):
    """Write an index of chunks, as several processes do, and open it."""
    chunks = sorted(chunks, key=lambda chunk: chunk.chunk_id)
    number, size = TermNumbers(), -(-len(chunks) // n_parts)
    parts = [folder.with_name(f"{folder.name}-{number}") for number in range(n_parts)]
    for place, part in enumerate(parts):
        own = chunks[place * size : (place + 1) * size]
        with PostingsWriter(part) as writer:
            for first in range(0, len(own), at_once):
                terms = [
                    number(tokenize(searched_text(chunk))) for chunk in own[first : first + at_once]
                ]
                writer.add(np.concatenate(terms), np.array([len(each) for each in terms]))
    write_index(folder, parts)
    return StoredBM25(folder, len(chunks), lambda row: chunks[row].chunk_id)


@pytest.fixture(scope="module")
def sample():
    """The chunks of the shipped corpus."""
    return list(chunk_documents([DOCUMENTS], Settings().chunk, silent))


@pytest.fixture(scope="module")
def both(sample, tmp_path_factory):
    """The stored index of the sample and the one in memory."""
    return index(tmp_path_factory.mktemp("x") / "bm25", sample, 50), BM25Retriever(sample)


@pytest.mark.slow
@pytest.mark.parametrize("n_words", [1, 3, 10, 1000])
def test_hits_are_those_of_the_index_in_memory_to_the_last_bit(both, sample, ask, n_words):
    """A pool must not depend on the size of the corpus, nor on which of the two made a run."""
    queries = [" ".join(chunk.text.split()[-n_words:]) for chunk in sample]

    found = [ask(both[0], query, 20) for query in queries]

    assert found == [ask(both[1], query, 20) for query in queries]


@pytest.mark.slow
@given(
    texts=st.lists(st.text("ab 北京 é", max_size=12), max_size=9),
    query=st.text("ab 北京 é", max_size=9),
    k=st.integers(1, 9),
)
def test_hits_are_the_same_for_any_texts(tmp_path_factory, texts, query, k):
    """Blocks of two chunks are merged here, with terms that are in some of them only."""
    chunks = [
        Chunk(chunk_id=f"c{number}", doc_id="d", text=text or "-")
        for number, text in enumerate(texts)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25_index, "_BLOCK_ROWS", 4)
        patch.setattr(bm25_index, "_MERGED_AT_ONCE", 2)
        patch.setattr(bm25_index, "_TERMS_AT_ONCE", 3)
        opened = index(tmp_path_factory.mktemp("x") / "bm25", chunks, 2)

    found = asyncio.run(opened.retrieve(query, k))

    assert found == asyncio.run(BM25Retriever(chunks).retrieve(query, k))


def test_the_commonest_terms_of_a_query_are_left_out_where_they_would_take_too_long(
    monkeypatch, tmp_path, chunks, ids
):
    """A whole chunk as a query must not read the postings of all its words of a large corpus."""
    opened = index(tmp_path / "bm25", chunks(a="the red", b="the", c="the blue", d="the blue"))
    assert ids(opened, "the red blue") == ["a", "d", "c", "b"]
    monkeypatch.setattr(bm25_index, "_MOST_POSTINGS", 3)
    monkeypatch.setattr(bm25_index, "_LEAST_TERMS", 1)

    assert ids(opened, "the red blue") == ["a", "d", "c"]


def test_a_query_of_common_words_alone_still_finds_something(monkeypatch, tmp_path, chunks, ids):
    """Leaving out all of its words would be a failed search that looks like an empty one."""
    opened = index(tmp_path / "bm25", chunks(a="the", b="the the"))
    monkeypatch.setattr(bm25_index, "_MOST_POSTINGS", 1)

    assert ids(opened, "the") == ["b", "a"]


@pytest.mark.parametrize("query", ["", " ?! ", "unheard"])
def test_a_query_without_known_words_finds_nothing(tmp_path, chunks, ask, query):
    """Chunks of score 0 would be noise that looks like a result."""
    assert ask(index(tmp_path / "bm25", chunks(a="red", b="blue")), query) == []


@pytest.mark.parametrize("texts", [{}, {"a": "—"}])
def test_a_corpus_without_words_finds_nothing(tmp_path, chunks, ask, texts):
    """An index of nothing is no error."""
    assert ask(index(tmp_path / "bm25", chunks(**texts)), "red") == []


def test_index_of_parts_is_that_of_one_pass(sample, tmp_path, monkeypatch):
    """Shards, and what is merged at once, must leave no trace in an index."""
    index(tmp_path / "one", sample, n_parts=1)
    monkeypatch.setattr(bm25_index, "_TERMS_AT_ONCE", 500)
    monkeypatch.setattr(bm25_index, "_BLOCK_ROWS", 16)
    index(tmp_path / "other", sample, n_parts=5)

    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "other")
    )
    assert sorted(one) == ["rows.bin", "starts.bin", "terms.bin", "weights.bin"]
    assert other == one


def test_a_term_has_one_number_for_ever():
    """Queries are numbered in another process than the corpus was."""
    assert TermNumbers()(["wax", "蜜", "wax"]).tolist() == [
        82_272_665_154_623,
        141_907_955_254_244,
        82_272_665_154_623,
    ]
