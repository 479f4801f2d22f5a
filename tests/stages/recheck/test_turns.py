"""The baseline confirms nothing where words that turn a sentence came or went."""

import pytest

from ragforge.stages.recheck.lexical import LexicalRecheck
from ragforge.stages.recheck.subject import Passage, Subject

PLAN = "Single sign-on is part of the enterprise plan only."
REFUND = "Refunds are paid within 14 days."


@pytest.fixture
def verdict(wait):
    """Check whether a text still gives what a quote did."""

    def go(quote, text, expected, around=("", "")):
        asked = Subject(
            "q", "What?", expected, "answer", "en", (quote,), (), (Passage(text),), (around,)
        )
        return wait(LexicalRecheck().judge(asked)).verdict

    return go


@pytest.mark.parametrize(
    ("quote", "now", "expected"),
    [
        (PLAN, "Single sign-on is not part of the enterprise plan only.", "enterprise plan"),
        (PLAN, "Single sign-on is part of the enterprise plan.", "enterprise plan"),
        (PLAN, "Single sign-on isn't part of the enterprise plan only.", "enterprise plan"),
        (REFUND, "Refunds are no longer paid within 14 days.", "14 days"),
        (REFUND, "Until 2023 refunds were paid within 14 days.", "14 days"),
        (REFUND, "Refunds are paid within 14 days, of 30 days.", "14 days"),
        ("Gezahlt wird in 14 Tagen.", "Gezahlt wird nicht in 14 Tagen.", "14 Tagen"),
        ("On paie en 14 jours.", "On ne paie jamais en 14 jours.", "14 jours"),
        ("Se paga en 14 días.", "Nunca se paga en 14 días.", "14 días"),
    ],
)
def test_other_words_that_turn_the_meaning_prove_nothing(verdict, quote, now, expected):
    """A set must not rest on a sentence that says the opposite."""
    assert verdict(quote, now, expected) == "none"


@pytest.mark.parametrize(
    "now",
    [
        f"Until 2023 the following held, it does not any more: {REFUND}",
        f"The rest holds no longer. {REFUND}",
        f"Deprecated:\n\n{REFUND}",
    ],
)
def test_words_before_a_quote_may_take_it_back(verdict, now):
    """The quote itself stands verbatim in all of them."""
    assert verdict(REFUND, now, "14 days") == "none"


@pytest.mark.parametrize(
    ("now", "around"),
    [
        (f"We are fair. {REFUND} Do not worry.", ("", "")),
        (f"Do not worry. {REFUND}", ("Do not worry. ", "")),
        ("By card, refunds are paid within 14 days.", ("", "")),
    ],
)
def test_what_says_the_same_is_confirmed(verdict, now, around):
    """A set without a model is to be refreshed too."""
    assert verdict(REFUND, now, "14 days", around) == "same"
