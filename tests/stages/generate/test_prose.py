import pytest

from ragforge.stages.generate.rules import prose_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there.", ["One here.", "Two there."]),
        ("A sentence that is\nwrapped. Next one.", ["A sentence that is\nwrapped.", "Next one."]),
        ("# Title\n\nText below.", ["Text below."]),
        ("- first item\n- second item\n  goes on", ["first item", "second item\n  goes on"]),
        ("1. Open it.\n2. Close it.", ["Open it.", "Close it."]),
        ("Before.\n\n```\ncode = 1\n```\n\nAfter.", ["Before.", "After."]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", []),
        ("Text.\n\n    indented code\n", ["Text."]),
        ("!!! warning\n    Mind the gap.", []),
        ("Title\n=====\n\nText.", ["Title", "Text."]),
        ("Это первое. Второе.", ["Это первое.", "Второе."]),
        (
            "これは文です。次です\uff1f「そう。」と言う。",
            ["これは文です。", "次です\uff1f", "「そう。」と言う。"],
        ),
        ("هذه جملة. وهذه ثانية؟ نعم.", ["هذه جملة.", "وهذه ثانية؟", "نعم."]),
        ("Use e.g. this one, v1.2. then", ["Use e.g. this one, v1.2. then"]),
    ],
)
def test_only_prose_is_cut_into_sentences(text, sentences):
    """Code, tables and headings make no answers; a wrapped sentence is one."""
    assert list(prose_sentences(text)) == sentences


def test_sentences_are_exact_slices():
    """They become evidence, which must be found again character by character."""
    text = "One\nhere.  Two there.\n\n* Three\n  more."

    assert all(sentence in text for sentence in prose_sentences(text))
