"""Marks that formatters write in several ways."""

import pytest

from ragforge.corpus.block_marks import with_one_form
from ragforge.corpus.chunking import text_sha256


def read(text):
    return text_sha256(with_one_form(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("* one\n    * two", "- one\n    - two"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "| a   | b     |\n| --- | :---: |\n| 1   | 2     |"),
        ("Title\n=====\n\nPart\n---\n\nText", "# Title\n\n## Part\n\nText"),
        ("## Part ##\n\nText", "## Part\n\nText"),
        ("~~~py\nx\n~~~", "```py\nx\n```"),
        ("a\n\n***\n\nb", "a\n\n---\n\nb"),
    ],
)
def test_marks_of_one_meaning_read_the_same(one, other):
    """A formatter that a site takes up must not have its pairs judged anew."""
    assert read(one) == read(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("* 5 days", "* 6 days"),
        ("+ 5 days", "- 5 days"),
        ("1. one", "2. one"),
        ("| a | 1 |", "| a | 2 |"),
        ("| a | - |", "| a | 0 |"),
        ("```\n* x\n```", "```\n- x\n```"),
        ("* x\n```\n* y", "- x\n```\n- y"),
        ("# C #", "# C# #"),
        ("Text -- 5", "Text 5"),
        ("Part\n===", "Part\n---"),
        ("- x\n---", "- x"),
    ],
)
def test_what_a_reader_sees_is_told_apart(one, other):
    """A grade of one text is none of another."""
    assert read(one) != read(other)
