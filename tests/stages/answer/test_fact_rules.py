import pytest

from ragforge.stages.answer.facts import StatedFact, broken_rule

PRICE = "What is known of the Alpha?"
EXPECTED = "The Alpha costs 40 euros. It weighs 7 kg."


@pytest.fixture
def broken(query):
    """Check one fact against an expected answer."""

    def go(statement, expected=EXPECTED, question=PRICE):
        fact = StatedFact(statement=statement, importance="vital")
        return broken_rule([fact], query(question, expected_answer=expected))

    return go


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("The Alpha costs 99 euros.", "has the number 99"),
        ("The Alpha costs 4 euros.", "has the number 4"),
        ("Gold is heavy and Mars is red.", "shares no word"),
        ("what is known of the Alpha", "is the question"),
    ],
)
def test_what_the_expected_answer_does_not_say_is_no_fact(broken, statement, message):
    """Every answer of every system would be graded by it."""
    assert message in broken(statement)


@pytest.mark.parametrize(
    ("statement", "expected", "question"),
    [
        ("The Alpha costs 40 euros.", EXPECTED, PRICE),
        ("The Alpha weighs seven kilograms.", EXPECTED, PRICE),
        ("The Alpha weighs 7 kg.", "Seven kg.", PRICE),
        ("It costs 1000 euros.", "1,000 euros", PRICE),
        ("Es kostet 2,50 Euro.", "2.5 Euro", "Was kostet es?"),
        ("It began on 1 March 2024.", "2024-03-01", "When did it begin?"),
        ("Model 3 costs 40 euros.", "40 euros", "What does model 3 cost?"),
        ("The Alpha ships to Spain.", "Yes.", "Does the Alpha ship to Spain?"),
        ("The Alpha ships to Spain.", "It does.", "Does the Alpha ship to Spain?"),
        ("Der Preis wird erstattet.", "Erstattung", "Was geschieht?"),
        (
            "The price is 40 euros.",
            "\u4ef7\u683c\u662f40\u6b27\u5143\u3002",
            "\u591a\u5c11\u94b1\uff1f",
        ),
        ("The price is low.", "\u4ef7\u683c\u5f88\u4f4e\u3002", "\u591a\u5c11\u94b1\uff1f"),
        ("What is known of the Alpha?", "What is known of the Alpha?", PRICE),
    ],
)
def test_what_it_says_in_other_words_is_a_fact(broken, statement, expected, question):
    """A right list that is refused costs a call, and perhaps the query."""
    assert broken(statement, expected, question) is None
