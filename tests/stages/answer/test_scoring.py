import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.records import Claim, Fact
from ragforge.stages.answer.llm import (
    CheckedFact,
    explain,
    score_of,
    strict_score_of,
    verdict_of,
)

STATUSES = {"s": "supported", "p": "partial", "m": "missing", "c": "contradicted"}


def said(vital, okay=""):
    """Facts with these statuses, each given by its first letter."""
    return [
        CheckedFact(
            Fact(fact_id=f"f{n}", text=f"fact {n}", importance=importance), STATUSES[letter]
        )
        for n, (letter, importance) in enumerate(
            [*((letter, "vital") for letter in vital), *((letter, "okay") for letter in okay)], 1
        )
    ]


@pytest.mark.parametrize(
    ("vital", "okay", "score", "strict"),
    [
        ("s", "", 1.0, 1.0),
        ("m", "", 0.0, 0.0),
        ("c", "", 0.0, 0.0),
        ("p", "", 0.5, 0.0),
        ("sm", "", 0.5, 0.5),
        ("sp", "", 0.75, 0.5),
        ("s", "m", 1 / 1.5, 1 / 1.5),
        ("m", "s", 0.5 / 1.5, 0.5 / 1.5),
        ("ss", "pm", 2.25 / 3, 2 / 3),
        ("sc", "ss", 2 / 3, 2 / 3),
        ("", "sm", 0.5, 0.5),
        ("", "", None, None),
    ],
)
def test_the_score_is_the_weighted_share_of_facts_that_are_said(vital, okay, score, strict):
    """Worked by hand; without facts nothing was checked, and unchecked is not right."""
    facts = said(vital, okay)

    assert score_of(facts) == pytest.approx(score)
    assert strict_score_of(facts) == pytest.approx(strict)


@pytest.mark.parametrize(
    ("vital", "okay", "says_more", "verdict"),
    [
        ("ss", "", False, "correct"),
        ("ss", "m", True, "correct"),
        ("ss", "c", True, "partial"),
        ("sp", "", False, "partial"),
        ("sm", "", False, "partial"),
        ("pp", "", False, "partial"),
        ("sc", "", True, "incorrect"),
        ("cm", "", False, "incorrect"),
        ("mm", "", True, "incorrect"),
        ("mm", "s", False, "incorrect"),
        ("mm", "m", False, "not_attempted"),
        ("m", "", False, "not_attempted"),
        ("", "ss", False, "correct"),
        ("", "sm", False, "partial"),
        ("", "m", False, "not_attempted"),
        ("", "", False, None),
        ("", "", True, None),
    ],
)
def test_the_verdict_follows_from_the_vital_facts(vital, okay, says_more, verdict):
    """One contradiction outweighs all that is right; what is said beside the point is an error."""
    assert verdict_of(said(vital, okay), says_more=says_more) == verdict


some_facts = st.builds(said, st.text("spmc", min_size=1, max_size=8), st.text("spmc", max_size=4))


@given(some_facts)
def test_the_strict_score_is_never_above_the_score(facts):
    """Half a fact must not count for more where halves count for nothing."""
    assert 0.0 <= strict_score_of(facts) <= score_of(facts) <= 1.0


@given(some_facts, st.booleans())
def test_a_correct_answer_says_all_vital_facts(facts, says_more):
    """A judge that leaves facts out must not be able to make an answer correct."""
    statuses = {item.status for item in facts if item.fact.importance == "vital"}
    contradicts = any(item.status == "contradicted" for item in facts)

    correct = verdict_of(facts, says_more=says_more) == "correct"
    assert correct == (statuses == {"supported"} and not contradicts)


@given(some_facts)
def test_a_full_score_is_a_correct_answer(facts):
    """Score and verdict are read side by side."""
    assert score_of(facts) < 1.0 or verdict_of(facts, says_more=False) == "correct"


def test_the_explanation_names_what_is_wrong():
    """A person must see what to check without reading the records."""
    claims = [
        Claim(text="in May", is_supported=False),
        Claim(text="at sea", is_supported=True, quote="at sea"),
    ]

    assert explain(said("smc", "p"), claims) == (
        "says 1 of 3 vital facts and 0 of 1 okay facts; contradicted: 'fact 3'; "
        "missing: 'fact 2'; said in part: 'fact 4'; not in the chunks: 'in May'"
    )
    assert explain(said("s"), []) == "says 1 of 1 vital facts"
