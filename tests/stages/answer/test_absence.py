import pytest

from ragforge.stages.answer.rules import speaks_of_absence


@pytest.mark.parametrize(
    "text",
    [
        "It is unknown.",
        "The policy doesn\u2019t say.",
        "NOBODY knows.",
        "There is a lack of data.",
        "The manual is silent on this.",
        "Das ist unbekannt.",
        "Es gibt keine Angaben.",
        "Personne ne le sait.",
        "Nadie lo sabe.",
        "\u041d\u0435\u0438\u0437\u0432\u0435\u0441\u0442\u043d\u043e.",
        "\u6ca1\u6709\u8bf4\u660e\u3002",
        "\u8a18\u8f09\u304c\u3042\u308a\u307e\u305b\u3093\u3002",
        "\uc54c \uc218 \uc5c6\uc2b5\ub2c8\ub2e4.",
    ],
)
def test_what_is_not_is_noticed_in_many_languages(text):
    """An abstention can be the right answer to such a question."""
    assert speaks_of_absence(text)


@pytest.mark.parametrize(
    "text",
    ["krill", "A fee of ten percent.", "On the nose of the knight.", "Ten note cards.", ""],
)
def test_most_answers_say_what_is(text):
    """Else no abstention would be decided without a call."""
    assert not speaks_of_absence(text)
