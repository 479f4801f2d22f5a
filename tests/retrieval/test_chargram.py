import os
import subprocess
import sys

import pytest

from ragforge.errors import DataError
from ragforge.retrieval.bm25 import BM25Retriever
from ragforge.retrieval.chargram import ChargramRetriever


def test_a_misspelt_query_finds_what_words_do_not(chunks, ids):
    """Users mistype, and a pool of word matches alone would leave those chunks unjudged."""
    corpus = chunks(a="Authentication of clients", b="Timeouts and retries")

    assert ids(BM25Retriever(corpus), "authentciation") == []
    assert ids(ChargramRetriever(corpus), "authentciation")[0] == "a"


def test_a_chunk_asked_for_word_by_word_scores_one(chunks, ask):
    """Cosine of a vector with itself: weights and norms of both sides must agree."""
    retriever = ChargramRetriever(chunks(a="banana bread", b="rye bread, rye bread", c="milk"))

    best = ask(retriever, "rye bread rye bread")[0]

    assert best.chunk_id == "b"
    assert best.score == pytest.approx(1)


def test_scores_are_those_of_the_formula(chunks, ask):
    """Hashing, weights and norms must add up to the cosine that the docstring promises."""
    [hit] = ask(ChargramRetriever(chunks(a="ab", b="xy")), "ab ac")

    # " ab", "ab ", " ab " occur in one of two chunks, " ac", "ac ", " ac " in none:
    # weights 1 + ln(3/2) and 1 + ln(3), so the cosine is w1 / sqrt(w1**2 + w2**2)
    assert hit.score == pytest.approx(1.4054651 / (1.4054651**2 + 2.0986123**2) ** 0.5)


def test_a_chinese_query_finds_its_chunk(chunks, ids):
    """Short words of scripts without spaces must give n-grams too."""
    retriever = ChargramRetriever(chunks(a="北京是中国的首都。", b="上海是一座城市。"))

    assert ids(retriever, "首都")[0] == "a"


def test_ties_are_broken_by_id_descending(chunks, ids):
    """The order must be the one in which the evaluation reads equal scores."""
    assert ids(ChargramRetriever(chunks(b="red", a="red", c="red")), "red", k=2) == ["c", "b"]


@pytest.mark.parametrize("query", ["", "?!", "xyzzy"])
def test_a_query_that_shares_no_ngram_finds_nothing(chunks, ask, query):
    """Chunks of score 0 would be noise that looks like a result."""
    assert ask(ChargramRetriever(chunks(a="red", b="—")), query) == []


@pytest.mark.parametrize("texts", [{}, {"a": "—"}])
def test_a_corpus_without_words_finds_nothing(chunks, ask, texts):
    """An empty folder is no reason for a division by zero."""
    assert ask(ChargramRetriever(chunks(**texts)), "red") == []


def test_an_id_that_comes_twice_is_refused(chunks):
    """Two chunks of one id cannot be judged apart."""
    with pytest.raises(DataError, match="id 'a' comes twice"):
        ChargramRetriever([*chunks(a="red"), *chunks(a="blue")])


_SCRIPT = """
import asyncio
from ragforge.records import Chunk
from ragforge.retrieval.chargram import ChargramRetriever
texts = ["red apples", "green pears", "red pears", "dried apricots"]
chunks = [Chunk(chunk_id=str(i), doc_id="d", text=text) for i, text in enumerate(texts)]
print(asyncio.run(ChargramRetriever(chunks).retrieve("dread pares", 4)))
"""


def _output(seed):
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _SCRIPT]
    return subprocess.run(command, env=environment, check=True, capture_output=True).stdout


@pytest.mark.slow
def test_scores_are_the_same_in_every_process():
    """Same inputs, same bytes: `hash()` of a string differs from process to process."""
    assert _output("1") == _output("2")
