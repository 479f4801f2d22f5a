import pytest

from ragforge.evaluating.query_details import (
    CHUNK_CHARS,
    ChunkStarts,
    Span,
    SpooledStarts,
    chunk_start,
    spans,
    visible_pieces,
)
from ragforge.records import Chunk


@pytest.fixture
def long_chunk():
    return Chunk(chunk_id="c", doc_id="d", text="a " * 600 + "the evidence" + " b" * 600)


@pytest.mark.parametrize(
    ("text", "quotes", "found"),
    [
        ("one two three", ["two"], [(4, 7)]),
        ("one\n  two three", ["one two"], [(0, 9)]),
        ("one two three", ["two three", "one two"], [(0, 13)]),
        ("one two three", ["four"], []),
        ("one two three", ["", "  "], []),
        ("a+b(c", ["b(c"], [(2, 5)]),
    ],
)
def test_quotes_are_found_in_a_text(text, quotes, found):
    """What the answer rests on is what the reader looks for first."""
    assert spans(text, quotes) == tuple(Span(*pair) for pair in found)


def test_a_quote_that_goes_on_beyond_the_shown_text_is_marked_to_its_end():
    """A text that is cut in the evidence still shows where it begins."""
    quote = "this quote is long enough to be known by its start alone"

    assert spans(f"Before {quote[:40]}", [quote]) == (Span(7, 47),)


def test_the_part_with_the_evidence_is_shown(long_chunk):
    """The start of a long chunk says nothing about why it was graded as it was."""
    found = chunk_start(long_chunk, ["not in it", "the evidence"])

    assert "the evidence" in found.text.text
    assert found.cut_note == "characters 1,121 to 1,620 of 2,412"


def test_the_start_is_shown_where_there_is_no_evidence(long_chunk):
    """The beginning is the most telling part of a text of which nothing is known."""
    found = chunk_start(long_chunk)

    assert (found.offset, len(found.text.text)) == (0, CHUNK_CHARS)
    assert found.cut_note == "first 500 of 2,412 characters"


def test_pieces_show_hidden_characters_in_and_around_the_marks():
    """Marks are placed in the text as it is, and must not move when escapes lengthen it."""
    pieces = list(visible_pieces("a\u202eb\u200bc", [Span(2, 4)]))

    assert pieces == [r"a\u202e", r"b\u200b", "c"]


def test_starts_that_memory_does_not_hold_come_back_whole(long_chunk):
    """A report of 50,000 queries shows hundreds of thousands of chunks."""
    there = chunk_start(long_chunk, ["the evidence"])
    hidden = chunk_start(Chunk(chunk_id="h", doc_id="d", heading_path=("a", "b"), text="\u202e"))
    starts = SpooledStarts(most=1)
    for key, start in (("first", hidden), ("c", there), ("h", hidden), ("c", there)):
        starts.put(key, start)

    assert dict(starts) == {"first": hidden, "c": there, "h": hidden}


def test_id_that_a_chunk_and_a_document_have_is_that_of_the_chunk():
    """A run names chunks; documents are shown only where nothing else has the id."""
    taken = ChunkStarts({"a": (), "d": ()})
    for chunk_id, doc_id, text in (("x", "a", "of a"), ("a", "d", "a"), ("y", "a", "again")):
        taken.take(Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text))

    assert {key: start.text.text for key, start in taken.starts().items()} == {"a": "a", "d": "a"}
