import pytest

from ragforge.evaluating.query_details import (
    CHUNK_CHARS,
    Span,
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
