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


@pytest.mark.parametrize(
    ("quote", "before", "after", "now", "is_there"),
    [
        ("set to 103", "is ", " GB", "is set to 1035 GB", False),
        ("set to 103", "is ", " GB", "is set to 103 GB", True),
        ("set to 103", "is ", " GB", "is set to 103.", True),
        ("set to 103", "is ", " GB", "is set to 103.5 GB", False),
        ("set to 103", "is ", " GB", "is set to 103 % of it", False),
        ("set to 103", "", "", "is set to 1035 GB", False),
        ("set to 103", "is ", "5 GB", "is set to 1035 GB", True),
        ("11 degrees", "is ", " or", "is -11 degrees", False),
        ("11 degrees", "is -", " or", "is -11 degrees", True),
        ("-11 degrees", "is ", " or", "is -11 degrees", True),
        ("written in C", "is ", " now", "is written in C++ now", False),
        ("the mode is on", "So ", ".", "So the mode is only now", False),
        ("the mode is on", "", "", "So the mode is only now", True),
        ("the mode is on", "So ", ".", "So **the mode is on**.", True),
        ("set to 103", "is ", " GB", "is **set to 103**GB", True),
        ("set to 103", "is ", " GB", "is 1035, then set to 1035, and set to 103", True),
    ],
)
def test_a_quote_does_not_stand_in_a_longer_number(quote, before, after, now, is_there):
    """A page that says 1035 now does not say 103, unless the quote was cut so before."""
    item = Evidence(doc_id="d", chunk_id="x", quote=quote, prefix=before, suffix=after)

    assert (page(now).place(item) is not None) == is_there
