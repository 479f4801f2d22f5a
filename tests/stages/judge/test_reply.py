import json
import math

import pytest

from ragforge.llm.chat import ChatReply, Numeral
from ragforge.stages.judge.reply import entropy_bits, grade_odds, mean_of


def replied(grade=2, reasoning="so", **odds):
    """A reply with the odds of tokens at its grade."""
    text = json.dumps({"reasoning": reasoning, "evidence": "", "grade": grade})
    given = tuple((token.strip("_"), math.log(share)) for token, share in odds.items())
    return ChatReply(text, numerals=(Numeral(text.rindex(str(grade)), given),))


def test_odds_are_those_of_the_grades_alone():
    """What a model might have said instead of a grade is no grade."""
    odds = grade_odds(replied(_2=0.72, _1=0.18, _three=0.1), 2)

    assert odds == pytest.approx((0.0, 0.2, 0.8, 0.0))


@pytest.mark.parametrize(
    ("tokens", "used"),
    [
        ({"_2": 0.9, "_7": 0.1}, True),
        ({"_2": 0.89, "_7": 0.11}, False),
        ({"_2": 0.5, "_1": 0.39, "_9": 0.1}, False),
        ({"_23": 1.0}, False),
        ({"_2": 0.7, "_1": 0.7}, False),
        ({"_2": 2.7}, False),
        ({"_3": 0.9, "_1": 0.08}, False),
        ({"_2": 1e300}, False),
        ({}, False),
    ],
)
def test_odds_count_only_where_nine_tenths_lie_on_grades(tokens, used):
    """A model that hardly thought of grades at this place says little by their odds."""
    assert (grade_odds(replied(**tokens), 2) is not None) is used


def test_a_forged_grade_in_the_reasoning_lends_no_odds():
    """The reasoning may quote whatever the passage says."""
    text = json.dumps({"reasoning": '"grade": 3', "evidence": "", "grade": 2})
    forged = Numeral(text.index("3"), (("3", 0.0),))

    assert grade_odds(ChatReply(text, numerals=(forged,)), 2) is None


@pytest.mark.parametrize(
    ("odds", "mean", "bits"),
    [
        ((0.0, 0.0, 0.0, 1.0), 3.0, 0.0),
        ((0.25, 0.25, 0.25, 0.25), 1.5, 2.0),
        ((0.5, 0.0, 0.0, 0.5), 1.5, 1.0),
        ((0.0, 0.2, 0.8, 0.0), 1.8, 0.7219280948873623),
    ],
)
def test_the_mean_and_the_entropy_of_odds(odds, mean, bits):
    """The mean makes finer grades, the entropy tells which pairs a person should look at."""
    assert mean_of(odds) == pytest.approx(mean)
    assert entropy_bits(odds) == pytest.approx(bits)
