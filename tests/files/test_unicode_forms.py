import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.corpus.quote_locations import FoldedText, fold
from ragforge.files.text import is_normalized, normalize
from ragforge.stages.words import words

FLOOD = "a" + "\u0301\u0327" * 200_000
"""Sorting so many marks takes two minutes."""


@given(st.text(max_size=60), st.sampled_from(["NFC", "NFKC"]))
def test_ordinary_texts_are_normalized_as_unicode_says(text, form):
    """Quotes are compared in these forms; ids follow from them."""
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_a_flood_of_marks_is_cut(form):
    """No limit of time can end one call of the interpreter."""
    found = normalize(form, FLOOD)

    assert len(found) <= 101
    assert is_normalized(form, found)


def test_a_flood_is_not_normal():
    """Whoever asks must not wait either."""
    assert not is_normalized("NFKC", FLOOD)


def test_texts_of_chunks_and_replies_are_folded_in_time():
    """Chunk files and models bring texts that no reader of documents has seen."""
    assert len(fold(FLOOD)) <= 101
    assert list(FoldedText(f"{FLOOD} the fee is ten").locations("the fee is ten")) != []
    assert len(words(FLOOD)) <= 1
