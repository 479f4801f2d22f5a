import pytest

from ragforge.evaluating.answers.rates import summarise_answers
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import Rate


@pytest.fixture
def summarised(answered):
    """Summarise answers given as query -> (verdict, context); the verdict "" is no grade."""

    def summarise(given, rankings=None, failed=(), gradable=()):
        records, relevance = answered(given, rankings, failed, gradable)
        return summarise_answers(records, relevance)

    return summarise


def test_means_carry_bounds_for_failed_grades_and_failed_answers(summarised):
    """Failed as 0 and failed as 1 is all that can be said about them."""
    found = summarised({"q1": ("correct", ("good",)), "q2": (None, ("good",))}, failed=["q3"])

    assert found.rates["score"] == Rate(1.0, None, Ends(1 / 3, 1.0), 1, 2)
    assert found.rates["hallucination"] == Rate(0.0, None, Ends(0.0, 2 / 3), 1, 2)
    assert found.n_failed == 2
    assert found.verdicts == {"correct": 1, "partial": 0, "incorrect": 0, "not_attempted": 0}


def test_all_failed_has_no_mean(summarised):
    """A judge that is down must not make a system look worthless."""
    assert summarised({"q1": (None, ())}).rates["score"] == Rate(None, None, Ends(0.0, 1.0), 0, 1)


def test_queries_without_an_answer_are_in_the_bounds_and_not_in_the_mean(summarised):
    """A system that answers the easy questions only must not look perfect."""
    queries = [f"q{n}" for n in range(1, 9)]

    found = summarised({"q1": ("correct", ("good",))}, gradable=queries)

    assert (found.n_unanswered, found.n_gradable) == (7, 8)
    assert found.rates["score"] == Rate(1.0, None, Ends(1 / 8, 1.0), 1, n_absent=7)


def test_answers_that_are_not_graded_yet_are_in_the_bounds_and_are_answers(summarised):
    """Grading that was stopped half-way says nothing about the other half."""
    given = {"q1": ("incorrect", ("good",)), "q2": ("", ("good",))}

    found = summarised(given, gradable=["q1", "q2"])

    assert (found.n_unanswered, found.n_ungraded) == (0, 1)
    assert found.rates["score"] == Rate(0.0, None, Ends(0.0, 0.5), 1, n_absent=1)


def test_failed_answers_are_not_counted_as_no_answer(summarised):
    """A query counted twice would widen the bounds for nothing."""
    found = summarised({"q1": (None, ())}, failed=["q3"], gradable=["q1", "q2", "q3"])

    assert (found.n_failed, found.n_unanswered) == (2, 1)
    assert found.rates["score"] == Rate(None, None, Ends(0.0, 1.0), 0, 2, 1)


def test_answers_to_queries_that_cannot_be_graded_change_nothing(summarised):
    """Nobody can say what a right answer to them is, so none is owed."""
    found = summarised({"q1": ("correct", ("good",)), "q2": ("", ())}, gradable=["q1"])

    assert (found.n_unanswered, found.rates["score"]) == (0, Rate(1.0, None, Ends(1.0, 1.0), 1))
