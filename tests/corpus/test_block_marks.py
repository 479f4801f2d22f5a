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
        ("1. a\n1. b\n\n   more\n\n1. c", "1. a\n2. b\n\n   more\n\n3. c"),
        ("1. a\n    1. b\n    1. c\n1. d", "1. a\n    1. b\n    2. c\n2. d"),
        ("- a\n\n  1) b\nmore\n  1) c\n- d", "- a\n\n  1) b\nmore\n  2) c\n- d"),
        ("1. a\n   ```\n   x\n   ```\n1. b", "1. a\n   ```\n   x\n   ```\n2. b"),
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
        ("1. a\n1. b", "1. a\n3. b"),
        ("1. a\n1. b\n4. c", "1. a\n2. b\n4. c"),
        ("1. a\n\ntext\n\n1. b", "1. a\n\ntext\n\n2. b"),
        ("1. a\n# T\n1. b", "1. a\n# T\n2. b"),
        ("1. a\n- x\n1. b", "1. a\n- x\n2. b"),
        ("1. a\n1) b", "1. a\n2) b"),
        ("1. a\n\n        1. x\n        1. y", "1. a\n\n        1. x\n        2. y"),
        ("1. a\n```\nx\n```\n1. b", "1. a\n```\nx\n```\n2. b"),
        ("1. a 1. b", "1. a 2. b"),
    ],
)
def test_what_a_reader_sees_is_told_apart(one, other):
    """A grade of one text is none of another."""
    assert read(one) != read(other)
