import pytest

from ragforge.corpus.quote_locations import Location, Page, Surroundings, evidence_at
from ragforge.records import Chunk, Evidence


def page(*texts):
    made, start = [], 0
    for number, text in enumerate(texts):
        end = start + len(text)
        made.append(Chunk(chunk_id=f"c{number}", doc_id="d", text=text, start=start, end=end))
        start = end + 2
    return Page(made)


def test_text_around_a_place_runs_over_chunks():
    """A border between chunks is no end of the text."""
    found = page("one two", "three  four five", "six")
    [spot] = found.folded_locations("four")

    assert found.surroundings(spot, 10) == Surroundings("two three ", " five six")


@pytest.mark.parametrize(("chars", "expected"), [(0, ("", "")), (2, ("e ", " f"))])
def test_text_around_a_place_is_as_long_as_asked(chars, expected):
    """How near a change counts is a setting."""
    found = page("one two", "three\nfour five")
    [spot] = found.folded_locations("four")

    assert found.surroundings(spot, chars) == Surroundings(*expected)


def test_place_in_the_folded_text_is_found_in_the_original():
    """Blanks and ligatures have other lengths there."""
    found = page("a  \n ﬁne  day")
    [spot] = found.folded_locations("fine day")

    assert (spot, found.original(spot)) == (Location(2, 10), Location(5, 13))


def test_every_kind_of_blank_is_compared_as_one():
    """Tabs, line ends and the blanks of other scripts all part words."""
    assert page("a\tb\u2003c\nd\x0be\u3000f").folded == "a b c d e f"


def test_evidence_takes_over_the_document_of_its_place():
    """A quote that moved to another document must not be looked up in the old one."""
    item = Evidence(doc_id="old", chunk_id="x", quote="two")
    placed = page("one two").place(item)

    assert evidence_at(item, placed) == Evidence(
        doc_id="d", chunk_id="c0", quote="two", start=4, end=7, prefix="one "
    )
