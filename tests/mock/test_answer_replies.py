import pytest

from ragforge.mock.query_replies import shortened


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("one two", "one two"),
        ("one twofold", "one"),
        ("one two three", "one two"),
        ("onetwothree four", "onetwothree"),
        ("one\ttwofold", "one"),
        ("", ""),
    ],
)
def test_a_text_is_cut_between_words(text, start):
    """Half a word is refused as a quote."""
    assert shortened(text, 7) == start
