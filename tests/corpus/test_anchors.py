import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.quote_locations import (
    ChunkIndex,
    FoldedText,
    Location,
    fold,
    locate,
)
from ragforge.records import Chunk


def chunks(*texts, doc_id="d", gap=1):
    """Chunks that follow each other with a gap, as `chunk_document` makes them."""
    made, start = [], 0
    for number, text in enumerate(texts):
        made.append(
            Chunk(
                chunk_id=f"c{number}", doc_id=doc_id, text=text, start=start, end=start + len(text)
            )
        )
        start += len(text) + gap
    return made


def unanchored(*texts):
    return [Chunk(chunk_id=f"c{at}", doc_id="d", text=text) for at, text in enumerate(texts)]


def held(quote, given_chunks):
    return [chunk.chunk_id for chunk in ChunkIndex(given_chunks).holding(quote, "d")]


def test_verbatim_quote_is_located():
    """The common case."""
    assert locate("two three", "one two three four") == Location(4, 13)


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        ("two three", "one two\n   three four", Location(4, 16)),
        ("two\n\nthree", "one two three", Location(4, 13)),
        ("  two ", "one two", Location(4, 7)),
        ("fine", "a ﬁne b", Location(2, 5)),
        ("10 km", "a 10\u00a0km b", Location(2, 7)),
        ("ABC", "x \uff21\uff22\uff23 y", Location(2, 5)),
        ("café", "x cafe\u0301 y", Location(2, 7)),
        ("각", "x \u1100\u1161\u11a8 y", Location(2, 5)),
        ("\u00bd", "\u00bd and 1\u20442", Location(0, 1)),
        ("a b", "ﬁ\u3000\u3000a \t\n b", Location(3, 9)),
    ],
)
def test_quote_is_located_across_blanks_and_compatibility_forms(quote, text, expected):
    """Models reflow and retype what they quote."""
    assert locate(quote, text) == expected


@pytest.mark.parametrize("quote", ["", "  \n", "three", "on e"])
def test_quote_that_does_not_stand_there_is_not_located(quote):
    """A made-up quote must not pass for evidence."""
    assert locate(quote, "one two") is None


def test_all_places_of_a_quote_are_found():
    """Each of them makes its chunk relevant."""
    assert list(FoldedText("a b  a\nb").locations("a b")) == [Location(0, 3), Location(5, 8)]


@given(
    st.text(alphabet="ab \n\t\u00a0ﬁé\u0301각Å½", max_size=40),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_located_text_reads_like_the_quote(text, start, length):
    """Offsets must point at what was quoted, whatever was folded on the way."""
    quote = text[start : start + length]
    found = [fold(text[place.start : place.end]) for place in FoldedText(text).locations(quote)]

    assert all(fold(quote) in reading for reading in found)


def test_chunk_with_the_whole_quote_holds_it():
    """This is how relevant chunks follow from golden quotes."""
    assert held("two three", chunks("one two", "zero two three", "four")) == ["c1"]


def test_every_chunk_with_the_quote_holds_it():
    """A retriever that finds the second copy is right too."""
    assert held("same", chunks("same one", "other", "the same")) == ["c0", "c2"]


@pytest.mark.parametrize("make", [chunks, unanchored])
def test_quote_over_two_chunks_is_held_by_the_one_with_more(make):
    """A chunk with two words of the quote does not answer."""
    assert held("two three four five six", make("one two", "three four five six seven")) == ["c1"]


def test_quote_half_in_each_is_held_by_both():
    """Neither half is better."""
    assert held("twoo fivee", chunks("one twoo ", "fivee six", gap=0)) == ["c0", "c1"]


def test_word_cut_by_a_hard_split_is_found():
    """Offsets say that there is no blank between."""
    assert held("abcdef", chunks("xxabcd", "efyy", gap=0)) == ["c0"]


def test_overlapping_chunks_with_offsets_are_laid_over_each_other():
    """Foreign chunkers overlap, and a quote may run over three of theirs."""
    text = "one two three four five"
    cut = [
        Chunk(chunk_id=f"c{a}", doc_id="d", text=text[a:b], start=a, end=b)
        for a, b in [(0, 13), (4, 18), (8, 23), (8, 13)]
    ]

    assert held("two three four five", cut) == ["c4", "c8"]
    assert held("three", cut) == ["c0", "c4", "c8", "c8"]


def test_offsets_that_contradict_the_texts_are_not_trusted():
    """Some exporters count from the start of a page."""
    wrong = [
        Chunk(chunk_id=f"c{at}", doc_id="d", text=text, start=0, end=3)
        for at, text in enumerate(["one", "two"])
    ]

    assert held("two", wrong) == ["c1"]


def test_chunks_of_other_documents_hold_nothing():
    """A quote is evidence from its own document."""
    index = ChunkIndex([*chunks("one two"), *chunks("one two", doc_id="e")])

    assert [chunk.doc_id for chunk in index.holding("one", "e")] == ["e"]


@pytest.mark.parametrize(("quote", "doc_id"), [("one", "absent"), ("", "d"), ("absent", "d")])
def test_nothing_is_held_where_nothing_stands(quote, doc_id):
    """The caller reports it; an error would stop the other quotes."""
    assert ChunkIndex(chunks("one two")).holding(quote, doc_id) == []
