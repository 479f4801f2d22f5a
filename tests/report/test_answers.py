import pytest

from ragforge.records import Answer
from ragforge.report.answers import (
    NO_ANSWER,
    NO_CONTEXT,
    NO_RELEVANT,
    NOT_GRADED,
    NOT_JUDGED,
    Relevance,
    SystemRecords,
    summarise_answers,
)
from ragforge.report.estimate import Estimate

GRADES = {
    "q1": {"good": 3, "bad": 0},
    "q2": {"good": 3, "bad": 1, "failed": None},
    "q3": {"bad": 0},
}


@pytest.fixture
def summarised(make_grade):
    """Summarise answers given as query -> (verdict, context); the verdict "" is no grade."""

    def summarise(given, rankings=None, failed=(), gradable=()):
        records = SystemRecords(
            "sys",
            {
                q: Answer(query_id=q, answer="a", chunk_ids=chunks)
                for q, (_, chunks) in given.items()
            },
            {q: make_grade(q, verdict) for q, (verdict, _) in given.items() if verdict != ""},
            frozenset(failed),
            frozenset(gradable),
        )
        return summarise_answers(records, Relevance(GRADES, 2, rankings or {}))

    return summarise


@pytest.mark.parametrize(
    ("context", "verdict", "reading"),
    [
        ("good", "correct", "works"),
        ("good", "incorrect", "the model"),
        ("good", "partial", "the model"),
        ("bad", "correct", "lucky"),
        ("bad", "not_attempted", "fix retrieval first"),
    ],
)
def test_grid_says_what_to_fix(summarised, context, verdict, reading):
    """The reader wants to know whether to work on retrieval or on the model."""
    [grid] = summarised({"q1": (verdict, (context,))}).diagnoses

    assert {cell.reading: cell.query_ids for cell in grid.cells if cell.query_ids} == {
        reading: ("q1",)
    }


@pytest.mark.parametrize(
    ("query_id", "context", "verdict", "reason"),
    [
        ("q1", "good", None, NOT_GRADED),
        ("q2", "failed", "correct", NOT_JUDGED),
        ("q2", "never judged", "correct", NOT_JUDGED),
        ("q3", "bad", "correct", NO_RELEVANT),
    ],
)
def test_what_is_not_known_is_in_no_field(summarised, query_id, context, verdict, reason):
    """A missing judgment is not a bad retrieval, and a missing grade is not a bad answer."""
    [grid] = summarised({query_id: (verdict, (context,))}).diagnoses

    assert [(item.reason, item.query_ids) for item in grid.undecided] == [(reason, (query_id,))]
    assert [cell.query_ids for cell in grid.cells] == [(), (), (), ()]


def test_answers_without_chunks_are_held_against_the_top_5_of_each_run(summarised):
    """Without the context, the run it was made from is the best stand-in."""
    rankings = {"deep": {"q1": ("bad",) * 5 + ("good",)}, "top": {"q1": ("good",)}, "none": {}}

    grids = summarised({"q1": ("correct", ())}, rankings).diagnoses

    assert [grid.run for grid in grids] == ["deep", "top", "none"]
    assert [cell.reading for grid in grids for cell in grid.cells if cell.query_ids] == [
        "lucky",
        "works",
    ]
    assert [item.reason for item in grids[2].undecided] == [NO_CONTEXT]


def test_means_carry_bounds_for_failed_grades_and_failed_answers(summarised):
    """Failed as 0 and failed as 1 is all that can be said about them."""
    found = summarised({"q1": ("correct", ("good",)), "q2": (None, ("good",))}, failed=["q3"])

    assert found.score == Estimate(1.0, 1, 2, 1 / 3, 1.0)
    assert found.hallucination == Estimate(0.0, 1, 2, 0.0, 2 / 3)
    assert found.n_failed == 2
    assert found.verdicts == {"correct": 1, "partial": 0, "incorrect": 0, "not_attempted": 0}


def test_all_failed_has_no_mean(summarised):
    """A judge that is down must not make a system look worthless."""
    assert summarised({"q1": (None, ())}).score == Estimate(None, 0, 1, 0.0, 1.0)


def test_queries_without_an_answer_are_in_the_bounds_and_not_in_the_mean(summarised):
    """A system that answers the easy questions only must not look perfect."""
    queries = [f"q{n}" for n in range(1, 9)]

    found = summarised({"q1": ("correct", ("good",))}, gradable=queries)

    assert (found.n_unanswered, found.n_gradable) == (7, 8)
    assert found.score == Estimate(1.0, 1, 0, 1 / 8, 1.0, n_absent=7)


def test_answers_that_are_not_graded_yet_are_in_the_bounds_and_are_answers(summarised):
    """Grading that was stopped half-way says nothing about the other half."""
    given = {"q1": ("incorrect", ("good",)), "q2": ("", ("good",))}

    found = summarised(given, gradable=["q1", "q2"])

    assert (found.n_unanswered, found.n_ungraded) == (0, 1)
    assert found.score == Estimate(0.0, 1, 0, 0.0, 0.5, n_absent=1)


def test_failed_answers_are_not_counted_as_no_answer(summarised):
    """A query counted twice would widen the bounds for nothing."""
    found = summarised({"q1": (None, ())}, failed=["q3"], gradable=["q1", "q2", "q3"])

    assert (found.n_failed, found.n_unanswered) == (2, 1)
    assert found.score == Estimate(None, 0, 2, 0.0, 1.0, n_absent=1)


def test_answers_to_queries_that_cannot_be_graded_change_nothing(summarised):
    """Nobody can say what a right answer to them is, so none is owed."""
    found = summarised({"q1": ("correct", ("good",)), "q2": ("", ())}, gradable=["q1"])

    assert (found.n_unanswered, found.score) == (0, Estimate(1.0, 1, 0, 1.0, 1.0))


def test_grid_names_the_queries_without_an_answer(summarised):
    """The reader wants to know which questions were left out."""
    [grid] = summarised({"q1": ("correct", ("good",))}, gradable=["q1", "q2"]).diagnoses

    assert [(item.reason, item.query_ids) for item in grid.undecided] == [(NO_ANSWER, ("q2",))]
