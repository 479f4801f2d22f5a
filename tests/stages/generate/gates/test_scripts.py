# ruff: noqa: RUF001 -- signs of one script look like those of another; these are meant.

import pytest

from ragforge.stages.generate.gates.shape import disguised_word


@pytest.mark.parametrize("word", ["sоcket", "tоkеn", "Сlient", "paгe", "сокeт", "drοp"])
def test_a_word_in_two_scripts_is_found(word):
    """It looks like the word, and no search for the word finds it."""
    assert disguised_word(f"a {word} here") == word


@pytest.mark.parametrize(
    "text",
    [
        "Когда AsyncClientы закрывают сокет?",
        "httpx-клиент по умолчанию",
        "the time Δt in μs and kΩ",
        "the word сокет in Russian",
        "α-carotene and βcells",
        "naïve café",
        "キーboard",
    ],
)
def test_signs_endings_and_whole_words_are_let_through(text):
    """Units, names with an ending and words of two languages side by side are honest."""
    assert disguised_word(text) == ""
