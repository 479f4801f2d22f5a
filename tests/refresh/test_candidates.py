from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.records import Chunk
from ragforge.refresh.quotes.candidates import candidate_documents

WORDS = [f"{stem}{number}" for stem in ("wal", "ber", "tin") for number in range(300)]


def prose(seed, n_words=80):
    return " ".join(Random(seed).choices(WORDS, k=n_words))


def chunk(number, text, doc_id=None):
    return Chunk(chunk_id=f"c{number:05}", doc_id=doc_id or f"d{number:05}", text=text)


CHUNKS = [chunk(number, prose(number)) for number in range(300)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 299), st.integers(0, 200), st.integers(12, 250))
def test_document_of_a_quote_is_a_candidate(number, start, size):
    """A quote that stands somewhere must be found, wherever it begins and ends."""
    quote = CHUNKS[number].text[start : start + size]
    [found] = candidate_documents([quote], CHUNKS)

    assert CHUNKS[number].doc_id in found


def test_document_in_which_a_border_cuts_the_quote_is_a_candidate():
    """Half of the stretches are in each half."""
    text = prose(1000, 30)
    halves = [chunk(900, text[: len(text) // 2]), chunk(901, text[len(text) // 2 :], "d00900")]

    assert candidate_documents([text], [*CHUNKS, *halves]) == [["d00900"]]


def test_document_with_an_edited_quote_is_a_candidate():
    """Other words of a quote are looked for where most of it stands."""
    text = prose(7)[100:300]

    assert candidate_documents([text.replace("ber", "BER", 2)], CHUNKS)[0][0] == "d00007"


def test_documents_with_more_of_a_quote_come_first():
    """Few of many are read."""
    text = prose(2000, 40)
    more = [chunk(800, f"{text[:150]} {prose(3)}"), chunk(801, text), chunk(799, text)]

    assert candidate_documents([text], [*CHUNKS, *more]) == [["d00799", "d00801", "d00800"]]


def test_order_of_the_chunks_does_not_matter():
    """Chunk ids are digests, and say nothing about their documents."""
    many = [chunk(number, f"{prose(5)[:300]} {number}") for number in range(400, 700)]
    quotes = [prose(5)[:200], prose(5)[50:300]]

    assert candidate_documents(quotes, many) == candidate_documents(quotes, many[::-1])


def test_sixteen_documents_are_named_at_most():
    """Boilerplate stands everywhere."""
    many = [chunk(number, prose(5)) for number in range(400)]

    assert candidate_documents([prose(5)[:200]], many) == [[f"d{n:05}" for n in range(16)]]


def test_quotes_that_share_their_wording_are_told_apart():
    """Templates make thousands of sentences that differ in a number."""
    texts = [f"The default number of connections of pool {n} is {n}{n} each." for n in range(500)]
    found = candidate_documents(texts, [chunk(n, text) for n, text in enumerate(texts)])

    assert [doc_ids[0] for doc_ids in found] == [f"d{n:05}" for n in range(500)]


@pytest.mark.parametrize("quote", ["", " ", "ab", "é"])
def test_quote_of_less_than_four_bytes_is_not_looked_for(quote):
    """It stands in too many texts to say anything."""
    assert candidate_documents([quote], [chunk(1, "ab é")]) == [[]]


def test_blanks_and_compatibility_forms_do_not_matter():
    """Quotes are compared folded everywhere."""
    found = candidate_documents(
        ["10 km of ﬁne roads"], [chunk(1, "so 10\u00a0km \n of fine  roads")]
    )

    assert found == [["d00001"]]


def test_nothing_is_found_in_no_chunks():
    """A corpus may be empty of what is new."""
    assert candidate_documents(["some quote of a text"], []) == [[]]
