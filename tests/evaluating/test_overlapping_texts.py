"""Tests of which texts have much of each other."""

import pytest

from ragforge.evaluating.overlapping_texts import has_most_of, holds, letters_to_compare, overlap

SENTENCE = letters_to_compare("The office opens at nine and takes visitors until five.")
OTHER = letters_to_compare("Parking beside the hall costs eleven crowns a day.")


def test_letters_are_those_that_a_reader_sees():
    """Markup, marks and case tell no texts apart."""
    assert letters_to_compare("<em>The</em> Café &amp; bar.") == "thecafebar"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OTHER + SENTENCE, True),
        (SENTENCE[: len(SENTENCE) // 2 + 1] + OTHER, True),
        (OTHER + SENTENCE[len(SENTENCE) // 2 - 1 :], True),
        (OTHER + SENTENCE[10:35] + OTHER, True),
        (SENTENCE[: len(SENTENCE) // 2], False),
        (SENTENCE[:22] + OTHER + SENTENCE[23:], False),
        (OTHER, False),
    ],
)
def test_more_than_half_in_one_stretch_is_most_of_a_text(text, expected):
    """What two texts of one form share is in several stretches."""
    assert has_most_of(text, SENTENCE) == expected


def test_a_page_and_a_sentence_of_it_overlap():
    """Whichever is asked about."""
    page = OTHER * 3 + SENTENCE

    assert holds(page, SENTENCE) == holds(SENTENCE, page) == overlap(SENTENCE, page)
    assert overlap(page, SENTENCE)


def test_most_of_a_text_is_not_all_of_it():
    """Texts of one form differ in a word."""
    assert not holds(SENTENCE.replace("nine", "ten") + OTHER, SENTENCE)


def test_a_few_letters_are_no_part_of_a_text():
    """They stand in many by chance."""
    assert not has_most_of(SENTENCE, "takes")
