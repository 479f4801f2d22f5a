import pytest

from ragforge.stages.words import content_stems, numbers, sentences, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don\u2019t panic, it's v1.2.", ["don't", "panic", "it's", "v1.2"]),
        ("\ufb01le \uff21\uff22\uff23", ["file", "abc"]),
        ("蓝鲸eat磷虾", ["蓝", "鲸", "eat", "磷", "虾"]),
        ("snake_case", ["snake", "case"]),
        ("", []),
    ],
)
def test_words_are_folded(text, expected):
    """Baselines compare words, not the way they were typed."""
    assert words(text) == expected


def test_stems_leave_out_stop_words_and_endings():
    """`How are retries configured?` and `configure a retry` are about the same."""
    assert content_stems("How are the settings configured?") == ["sett", "configur"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,000 users in 2023.", {"1000", "2023"}),
        ("3.5 or 3,5", {"3.5", "3,5"}),
        ("v1.2.", {"1.2"}),
        ("none", set()),
    ],
)
def test_numbers_are_found_however_they_are_separated(text, expected):
    """A number that no chunk holds is the clearest sign of an invention."""
    assert numbers(text) == expected


def test_sentences_are_stripped_and_never_empty():
    """They become evidence."""
    assert sentences(" One.  Two!\n\n三。 Four ") == ["One.", "Two!", "三。", "Four"]
