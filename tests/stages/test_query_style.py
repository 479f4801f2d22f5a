import pytest

from ragforge.stages.query_style import QueryStyle, is_question, style_of


def test_style_counts_each_query_once():
    """A question asked a thousand times is still one way to ask."""
    queries = [
        "reset password",
        "reset password",
        "How do I log in?",
        "tell me how to pay by card please",
    ]

    assert style_of(queries) == QueryStyle(3, 5.0, 3.5, 6.5, 1 / 3, 1 / 3)


def test_style_of_one_query_is_its_own():
    """Quartiles need two values."""
    assert style_of(["reset password"]) == QueryStyle(1, 2.0, 2.0, 2.0, 0.0, 1.0)


def test_style_of_nothing_is_nothing():
    """No target is better than one of noise."""
    assert style_of([]).n == 0


@pytest.mark.parametrize(
    "query",
    [
        "what is a client",
        "httpx timeout?",
        "Wie geht das",
        "pourquoi ça marche",
        "怎么重置密码",
        "料金はいくらですか",
        "What's new in 0.28",
    ],
)
def test_questions_are_told_by_mark_or_first_word(query):
    """Users leave the mark out."""
    assert is_question(query)


@pytest.mark.parametrize(
    "query", ["httpx timeout", "what", "reset password", "かばん 値段", "can-opener manual"]
)
def test_keywords_are_no_questions(query):
    """A set of questions only would not look like this traffic."""
    assert not is_question(query)
