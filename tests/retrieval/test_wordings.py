"""Tests of texts by their letters and digits alone."""

import pytest

from ragforge.records import Chunk
from ragforge.retrieval.wordings import ChunkWordings, has_part, wording

FERRY = "The ferry leaves at six, but for Sundays and the days of the great storm."
ROCKS = "Nobody knew the way between the rocks in the dark of the winter nights."


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The *ferry*\nleaves", "the ferry leaves"),
        ("**Fähre** um 6", "fähre um 6"),
        ("snake_case and `code`", "SNAKE CASE AND CODE"),
        ("6 \u33a1, \ufb01ve", "6 m2, five"),
        ("北京**大学**在", "北京大学在"),
    ],
)
def test_marks_case_and_blanks_make_no_other_wording(text, other):
    """Services change them, and nothing is said otherwise."""
    assert wording(text) == wording(other)


@pytest.mark.parametrize(("text", "other"), [("1.5 kg", "15 kg"), ("1 200", "12 00"), ("a", "b")])
def test_other_numbers_and_letters_are_another_wording(text, other):
    """Pages that are alike differ in their numbers alone."""
    assert wording(text) != wording(other)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("The ferry costs 20", True),
        ("ferry costs 20 crowns", True),
        ("The ferry costs 2", False),
        ("0 crowns a day and night", False),
        ("crowns", False),
    ],
)
def test_a_part_is_long_enough_and_cuts_no_number(part, expected):
    """For 2 crowns is not for 20."""
    assert (
        has_part(wording("The ferry costs 20 crowns a day and night."), wording(part)) == expected
    )


@pytest.mark.parametrize(
    ("text", "share", "expected"),
    [
        (FERRY.upper(), 1, ["a", "b"]),
        (f"# Ferries\n\n{FERRY}", 0.8, ["a", "b"]),
        (f"# Ferries\n\n{FERRY}", 0.95, []),
        (f"{FERRY} {ROCKS}", 0.4, ["c"]),
        (f"{FERRY} {FERRY}", 0.4, ["a", "b"]),
        (f"{FERRY} {ROCKS}", 0.6, []),
        (FERRY[:-9], 0.1, []),
        ("ROCKS!", 0.5, ["d"]),
        ("", 0.5, []),
    ],
)
def test_the_chunk_that_is_most_of_a_text_is_found_with_its_copies(text, share, expected):
    """A heading is left over, and nothing tells copies apart."""
    texts = {"a": FERRY, "b": f" {FERRY}", "c": ROCKS, "d": "Rocks", "e": "…"}
    chunks = [Chunk(chunk_id=name, doc_id=name, text=each) for name, each in texts.items()]
    found = ChunkWordings(chunks).most_of(wording(text), share)

    assert [chunk.chunk_id for chunk in found] == expected
