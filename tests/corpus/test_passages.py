import pytest

from ragforge.corpus.quality import (
    headings_only,
    reading_fault,
    size_fault,
    token_count,
    word_count,
)


@pytest.mark.parametrize(
    ("text", "words"), [("one two  three", 3), ("", 0), ("知識は力である", 4), ("عشرة في المئة", 3)]
)
def test_words_are_counted_in_every_script(text, words):
    """A Chinese page has no blanks and is not one word."""
    assert word_count(text) == words


def test_tokens_depend_on_the_script():
    """A model reads a quarter as many Chinese characters as English ones."""
    assert token_count("a" * 400) == 100
    assert token_count("知" * 400) == 400


def test_large_chunk_says_what_is_lost():
    """The rest is cut off without a word by the embedding model."""
    assert "about 600 tokens: models that read 512" in size_fault("word " * 480, 2000)
    assert size_fault("word " * 400, 2000) == ""
    assert size_fault("word " * 100, 200) == "500 characters"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("caf\ufffd au lait", "1 character lost in decoding"),
        ("CafÃ© crÃ¨me brÃ»lÃ©e", "UTF-8 read in another encoding"),
        ("(cid:12)(cid:33)(cid:7) x", "glyphs without letters"),
        ("T h e r e t u r n s a r e f r e e", "letters set apart"),
        ("@@## $$%% ^^&& !!?? <<>> ;;,, a", "mostly symbols"),
    ],
)
def test_text_that_cannot_be_read_is_told(text, fault):
    """It is indexed all the same, and nobody looks."""
    assert reading_fault(text).startswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "Plain words.", "for i in range(10): x[i] += {1: 2}[i]", "知識は力である。" * 5, "€ 5",
        "Ãrea e Ção", "| a | b |\n|---|---|\n| one | two |", "قيمة الرسوم", "?",
    ],
)  # fmt: skip
def test_text_that_can_be_read_is_not(text):
    """Code, tables and other scripts are no rubbish."""
    assert reading_fault(text) == ""


@pytest.mark.parametrize("text", ["# One", "# One\n\n## Two", "Title\n=====\n", "## A\nB\n---"])
def test_headings_without_text_are_told(text):
    """They match queries and answer none."""
    assert headings_only(text)


@pytest.mark.parametrize("text", ["# One\n\nText.", "Text", "#hashtag"])
def test_headings_with_text_are_whole(text):
    """That is what a chunk looks like."""
    assert not headings_only(text)
