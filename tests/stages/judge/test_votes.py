from dataclasses import replace

import pytest

from ragforge.errors import CallError
from ragforge.records import Provenance, Vote
from ragforge.stages.judge.pairs import Pair
from ragforge.stages.judge.votes import (
    Ballot,
    NoQuorumError,
    refuse_below_quorum,
    settle,
    strict_grade,
)

PAIR = Pair("q", "What?", "c", "text")
BY = Provenance(kind="llm", model="a+b")


def ballot(grade, model="a", vote=0, odds=None, mean=None):
    return Ballot(
        Vote(model=model, grade=grade, vote=vote, grade_mean=mean),
        reasoning=f"{model} says {grade}",
        evidence=f"words of {model}" if grade >= 2 else "",
        odds=odds,
    )


@pytest.mark.parametrize(
    ("grades", "grade"),
    [
        ([2], 2),
        ([1, 2], 1),
        ([2, 3], 2),
        ([0, 3], 1),
        ([1, 2, 2], 2),
        ([1, 1, 2], 1),
        ([0, 0, 3], 1),
        ([3, 3, 2], 3),
        ([0, 1, 2, 3], 1),
    ],
)
def test_the_grade_is_the_mean_rounded_halves_down(grades, grade):
    """Where judges are split, calling a chunk relevant would flatter the retriever."""
    assert strict_grade([ballot(each, f"m{at}") for at, each in enumerate(grades)]) == grade


def test_models_count_alike_however_often_they_voted():
    """A model that was asked five times is still one opinion."""
    votes = [ballot(3, "a", vote) for vote in range(5)]

    judgment = settle(PAIR, [*votes, ballot(0, "b")], (), BY)

    assert (judgment.grade, judgment.grade_mean) == (1, 1.5)


def test_all_votes_are_kept_with_those_that_failed():
    """A grade that half of a panel gave must be told from one that all gave."""
    lost = Vote(model="c", grade=None, failure="refused")

    judgment = settle(PAIR, [ballot(3, "b"), ballot(2, "a")], [lost], BY)

    assert [(vote.model, vote.grade) for vote in judgment.votes] == [
        ("a", 2),
        ("b", 3),
        ("c", None),
    ]
    assert (judgment.grade, judgment.grade_mean, judgment.entropy_bits) == (2, 2.5, 1.0)


def test_the_words_are_those_of_a_vote_on_the_same_side():
    """Evidence of a grade 3 beside a final grade 1 would contradict it, and the reverse."""
    low = settle(PAIR, [ballot(2, "a"), ballot(0, "b")], (), BY)
    high = settle(PAIR, [ballot(1, "a"), ballot(3, "b")], (), BY)

    assert (low.grade, low.reasoning, low.evidence) == (1, "b says 0", "")
    assert (high.grade, high.reasoning, high.evidence) == (2, "b says 3", "words of b")


def test_a_panel_in_which_a_mock_voted_is_a_mock():
    """One made-up vote moves the mean of all."""
    votes = [ballot(2, "a"), replace(ballot(3, "b"), is_mock=True), ballot(2, "c")]

    assert settle(PAIR, votes, (), BY).provenance == BY.model_copy(update={"kind": "mock"})


def test_one_vote_is_the_judgment_itself():
    """Files of the usual case stay as small as they can be."""
    judgment = settle(PAIR, [ballot(2)], (), BY)

    assert (judgment.grade, judgment.votes, judgment.grade_mean) == (2, (), None)


def test_one_vote_with_odds_has_a_weighted_grade():
    """The grade a model says and the one it leans to are two things."""
    judgment = settle(PAIR, [ballot(2, odds=(0.0, 0.5, 0.5, 0.0), mean=1.5)], (), BY)

    assert (judgment.grade, judgment.grade_mean, judgment.entropy_bits) == (2, 1.5, 1.0)


@pytest.mark.parametrize(
    ("votes", "failed", "settles"), [(3, 1, True), (2, 1, False), (1, 1, False)]
)
def test_half_of_the_votes_are_no_quorum(votes, failed, settles):
    """One survivor of a panel is not a panel."""
    errors = [CallError("refused", "no", "raw", call_keys=(f"k{at}",)) for at in range(failed)]
    ballots = [ballot(2, vote=at) for at in range(votes - failed)]
    lost = [Vote(model="b", grade=None, failure="refused")] * failed
    if settles:
        refuse_below_quorum(ballots, errors, lost)
        return

    with pytest.raises(NoQuorumError, match="no") as caught:
        refuse_below_quorum(ballots, errors, lost)

    assert (caught.value.kind, caught.value.call_keys) == ("refused", ("k0",))
    assert len(caught.value.votes) == (votes if votes > 1 else 0)
