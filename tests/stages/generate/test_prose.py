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
        ("Title\n=====\n\nText.", ["Text."]),
        ("Это первое. Второе.", ["Это первое.", "Второе."]),
        (
            "これは文です。次です\uff1f「そう。」と言う。",
            ["これは文です。", "次です\uff1f", "「そう。」と言う。"],
        ),
        ("هذه جملة. وهذه ثانية؟ نعم.", ["هذه جملة.", "وهذه ثانية؟", "نعم."]),
        ("Plan | What it has\nFree | One lock.\n\nA | b is one.", ["A | b is one."]),
        ("Set it, i.e. `A`. So, e.g. B vs. C.", ["Set it, i.e. `A`.", "So, e.g. B vs. C."]),
        ("Use e.g. this one, v1.2. then", ["Use e.g. this one, v1.2. then"]),
    ],
)
def test_only_prose_is_cut_into_sentences(text, sentences):
    """Code, tables and headings make no answers; a wrapped sentence is one."""
    assert list(prose_sentences(text)) == sentences


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("How threads share state\n~~~~~~~~~~~~~~~~~~~~~~~\n\nIt does.", ["It does."]),
        ('How threads share\n"""""""""""\n\nIt does.', ["It does."]),
        ("Name | What it says\n--- | ---\na | Of it.\n\nIt does.", ["It does."]),
        ("Call it::\n\n  lock = make_lock(of)\n\nIt does.", ["Call it::", "It does."]),
        (".. code-block:: python\n\n   a = {\n       'b': 1,\n   }\n\nIt does.", ["It does."]),
        ("It does.\n\n- One of them.\n---\n\nSo.\n", ["It does.", "One of them.", "So."]),
        ("It does.\n~~~\na = 1\n~~~\nSo.", ["It does.", "So."]),
        ("Given `a | b`, it does.\n| a | b |", ["Given `a | b`, it does."]),
        ("It does.\n***\nSo.", ["It does.", "So."]),
        ("It does.\n:::\nSo.", ["It does.", "So."]),
        ("It does\n*******\nSo.", ["So."]),
    ],
)
def test_titles_tables_and_code_are_no_sentences(text, said):
    """The title of a section answers no question about it."""
    assert list(prose_sentences(text)) == said


def test_sentences_are_exact_slices():
    """They become evidence, which must be found again character by character."""
    text = "One\nhere.  Two there.\n\n* Three\n  more."

    assert all(sentence in text for sentence in prose_sentences(text))
