import json
import math

import pytest

from ragforge.corpus.quote_locations import Location
from ragforge.llm.chat import ChatReply, Numeral
from ragforge.stages.judge.reply import (
    RelevanceReply,
    broken_rule,
    evidence_in,
    find_evidence,
    grade_odds,
)
from ragforge.stages.judge.votes import entropy_bits, mean_of


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


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ("42", "The answer is 42."),
        ("3.11", "It needs Python 3.11 or later."),
        ("\u4ef7\u683c", "\u4ef7\u683c\u662f40\u6b27\u5143\u3002"),
        ("\u3067\u3059", "\u3053\u308c\u306f\u672c\u3067\u3059"),
        ("\u0e41\u0e21\u0e27", "\u0e41\u0e21\u0e27\u0e01\u0e34\u0e19\u0e1b\u0e25\u0e32"),
    ],
)
def test_short_evidence_that_says_something_is_taken(evidence, text):
    """Many an answer is one number, and not all scripts part their words."""
    reply = RelevanceReply(reasoning="", evidence=evidence, contains_answer=True, grade=3)

    assert broken_rule(reply, text) is None
    assert evidence_in(reply, text) == evidence


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ("00", "It holds 1000 litres."),
        ("3.1", "It needs Python 3.11 or later."),
        ("T", "The answer is 42."),
        (".", "The answer is 42."),
        ("The", "The answer is 42."),
        ("\u4ef7", "\u4ef7\u683c\u662f40\u6b27\u5143\u3002"),
    ],
)
def test_evidence_that_proves_nothing_is_told_as_such(evidence, text):
    """Any passage holds such a quote, so that it would stand behind any grade."""
    reply = RelevanceReply(reasoning="", evidence=evidence, contains_answer=True, grade=3)

    assert "whole words that say something" in broken_rule(reply, text)


def test_evidence_that_a_grammar_cut_within_a_word_is_taken_up_to_it():
    """The model quoted in good faith; the bound on what it may write is ours."""
    text = "abcdefghi " * 200

    assert find_evidence(text[:1004], text) == Location(0, 999)
    assert find_evidence(text[:504], text) is None


SCRAPS = (
    "The redis port is 6379 by default. T. Then T . 00 and 00. It may be set in z http www. "
    "In the 5 rows 1 2 3 stand, at 14:00 or 42 % of 30 days, for $5 or 5 % of 7 kg. Yes."
)
TOKENS = (
    "AT&T doesn't say, e.g. redis.com, if it's plan-B of C++ or C#, ?d=1. It is max_retries "
    "by default.The l'eau of 30-40 euros."
)


@pytest.mark.parametrize(
    "evidence",
    ["T", "T.", "00", "00.", "T . 00", "5", "1 2 3", "www", "http", "z http", "In the 5", "the"],
)
def test_scraps_are_no_evidence_wherever_they_stand(evidence):
    """A judge that quotes them has not shown that it read the passage, not even as a sentence."""
    assert find_evidence(evidence, SCRAPS) is None


@pytest.mark.parametrize(
    "evidence",
    [
        "6379",
        "42 %",
        "30 days",
        "14:00",
        "$5",
        "5 %",
        "7 kg",
        "Yes.",
        "by default",
        "by default.",
        "be set",
        "port is 6379",
    ],
)
def test_short_words_and_amounts_are_evidence(evidence):
    """Many an answer is short, and a refusal of a good quote costs a call."""
    assert find_evidence(evidence, SCRAPS) is not None


@pytest.mark.parametrize(
    "evidence",
    ["T", "AT", "g", "e.g.", "doesn", "com", "redis", "C", "C+", "B", "plan", "1", "it's"],
)
def test_parts_of_joined_tokens_are_no_evidence(evidence):
    """What apostrophes, dots and other signs join is one word to its reader."""
    assert find_evidence(evidence, TOKENS) is None


@pytest.mark.parametrize(
    "evidence",
    [
        "AT&T",
        "doesn't",
        "redis.com",
        "plan-B",
        "C++",
        "C#",
        "max_retries",
        "by default",
        "The l'eau",
        "eau",
        "40 euros",
    ],
)
def test_whole_joined_tokens_are_evidence(evidence):
    """Names and versions are written with signs, and some signs part words after all."""
    assert find_evidence(evidence, TOKENS) is not None


@pytest.mark.parametrize(
    ("evidence", "text", "is_taken"),
    [
        ("der", "Der Port ist 6379 und der Name der Datei ist frei.", False),
        ("mit der", "Der Port ist 6379 und kommt mit der Datei.", False),
        ("mit Datei", "Der Port ist 6379 und kommt mit Datei.", True),
        ("MIT", "Die Lizenz ist MIT und nicht frei.", True),
        ("war", "The war was over by then, and that is all.", True),
        ("HTTP", "It speaks HTTP to the port.", True),
        ("U.S.", "It is sold in the U.S. only.", True),
        ("yang", "Itu adalah berkas yang ada di sini.", False),
    ],
)
def test_function_words_of_the_language_of_a_passage_are_no_evidence(evidence, text, is_taken):
    """What says nothing in one language is a name or a noun in another."""
    assert (find_evidence(evidence, text) is not None) is is_taken
