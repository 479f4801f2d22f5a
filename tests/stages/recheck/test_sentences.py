"""Proofs are kept as whole sentences."""

import pytest

from ragforge.corpus.quote_locations import Location
from ragforge.stages.recheck.subject import sentence_places, touching, widened

TEXT = "  One is here. Two is there!\n\nThree, a line\nfour."


def told(place):
    return TEXT[place.start : place.end]


def test_sentences_and_lines_have_places():
    """Blanks around them belong to none."""
    assert [told(place) for place in sentence_places(TEXT)] == [
        "One is here.",
        "Two is there!",
        "Three, a line",
        "four.",
    ]


@pytest.mark.parametrize(
    ("quote", "whole"),
    [
        ("is here", "One is here."),
        ("here. Two", "One is here. Two is there!"),
        ("four.", "four."),
    ],
)
def test_a_few_words_are_kept_as_their_sentences(quote, whole):
    """A bare "5 seconds" would stand in too many places to be found again."""
    at = TEXT.index(quote)

    assert told(widened(Location(at, at + len(quote)), TEXT)) == whole


def test_a_long_sentence_is_not_kept_whole():
    """Evidence that is a page proves anything."""
    text = f"{'word ' * 100}5 seconds {'word ' * 100}"
    place = Location(500, 509)

    assert widened(place, text) == place


def test_a_place_between_sentences_stays():
    """There is nothing to widen it to."""
    assert touching(Location(0, 1), TEXT) == Location(0, 1)
