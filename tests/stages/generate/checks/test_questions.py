import pytest
from checker import Checker, anchored, shown, verdict, verdicts

from ragforge.stages.generate.checks.questions import (
    QuestionVerdict,
    broken_rule,
    distinct_readings,
    known_answer,
)

QUESTION = "How is the limit set?"


def said(**changes):
    fields = verdict({"id": "a", "question": QUESTION}, **changes)
    return QuestionVerdict.model_validate(fields)


@pytest.mark.parametrize(
    ("readings", "count"),
    [
        (["the limit of the pool", "the limit of retries"], 2),
        (["the limit of the pool", "The limit of the POOL."], 1),
        (["the limit of the pool", QUESTION], 1),
        ([QUESTION, "how is the limit set"], 0),
        (["the limit of the pool", "", "--"], 1),
    ],
)
def test_readings_count_once_and_by_what_they_add(readings, count):
    """A model that repeats itself has found no second meaning."""
    assert len(distinct_readings(said(readings=readings), QUESTION)) == count


@pytest.mark.parametrize("readings", [["the pool"], ["the pool", "the pool"], [QUESTION, "pools"]])
def test_one_reading_in_two_lines_is_not_ambiguous(readings):
    """The gate asks for two different things that can be meant."""

    def say(request):
        entries = shown(request, "questions")
        return {"questions": [verdict(each, readings=readings) for each in entries]}

    checked = Checker({"questions_check": say})(anchored(type="ambiguous", question=QUESTION))

    assert verdicts(checked) == {"ambiguity": "fail"}


@pytest.mark.parametrize("missing", ["", " ", "None", "none.", "Nothing", "N/A", "-", "null"])
def test_nothing_is_missing_however_it_is_said(missing):
    """Models fill in what may stay empty."""
    assert broken_rule(said(missing=missing)) is None


@pytest.mark.parametrize("answer", ["unknown", "Unknown.", "I don't know.", "N/A"])
def test_who_says_that_it_does_not_know_knows_no_answer(answer):
    """A comparison would be paid for nothing."""
    assert known_answer(said(answer=answer), QUESTION) == ""


def test_none_may_be_an_answer():
    """It is the default of many a setting."""
    assert known_answer(said(answer="None"), QUESTION) == "None"


def test_keywords_are_shown_as_such():
    """They need not be a sentence to be clear."""
    checker = Checker()
    checker(anchored(0, type="keyword"), anchored(1))

    entries = shown(checker.model.asked[0], "questions")
    assert [entry["kind"] for entry in entries] == ["keywords", "question"]


def test_what_is_ambiguous_is_not_told():
    """A model that is told finds as many meanings as it is to find."""
    checker = Checker()
    checker(anchored(0, type="ambiguous"), anchored(1, type="false_premise"))

    assert {entry["kind"] for entry in shown(checker.model.asked[0], "questions")} == {"question"}
