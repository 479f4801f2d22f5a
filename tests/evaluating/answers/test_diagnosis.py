import pytest

from ragforge.evaluating.answers.diagnosis import (
    NO_ANSWER,
    NO_CONTEXT,
    NO_RELEVANT,
    NOT_GRADED,
    NOT_JUDGED,
    diagnoses,
)
from ragforge.measures.intervals import Ends


@pytest.fixture
def diagnosed(answered):
    """Diagnose answers given as query -> (verdict, context); the verdict "" is no grade."""

    def diagnose(given, rankings=None, failed=(), gradable=()):
        records, relevance = answered(given, rankings, failed, gradable)
        return diagnoses(records, relevance)

    return diagnose


@pytest.mark.parametrize(
    ("context", "verdict", "reading"),
    [
        ("good", "correct", "working"),
        ("good", "incorrect", "the model"),
        ("good", "partial", "the model"),
        ("bad", "correct", "lucky"),
        ("bad", "not_attempted", "fix retrieval first"),
    ],
)
def test_grid_says_what_to_fix(diagnosed, context, verdict, reading):
    """The reader wants to know whether to work on retrieval or on the model."""
    [grid] = diagnosed({"q1": (verdict, (context,))})

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
def test_what_is_not_known_is_in_no_field(diagnosed, query_id, context, verdict, reason):
    """A missing judgment is not a bad retrieval, and a missing grade is not a bad answer."""
    [grid] = diagnosed({query_id: (verdict, (context,))})

    assert [(item.reason, item.query_ids) for item in grid.undecided] == [(reason, (query_id,))]
    assert [cell.query_ids for cell in grid.cells] == [(), (), (), ()]


def test_answers_without_chunks_are_held_against_the_top_5_of_each_run(diagnosed):
    """Without the context, the run it was made from is the best stand-in."""
    rankings = {"deep": {"q1": ("bad",) * 5 + ("good",)}, "top": {"q1": ("good",)}, "none": {}}

    grids = diagnosed({"q1": ("correct", ())}, rankings)

    assert [grid.run for grid in grids] == ["deep", "top", "none"]
    assert [cell.reading for grid in grids for cell in grid.cells if cell.query_ids] == [
        "lucky",
        "working",
    ]
    assert [item.reason for item in grids[2].undecided] == [NO_CONTEXT]


def test_grid_names_the_queries_without_an_answer(diagnosed):
    """The reader wants to know which questions were left out."""
    [grid] = diagnosed({"q1": ("correct", ("good",))}, gradable=["q1", "q2"])

    assert [(item.reason, item.query_ids) for item in grid.undecided] == [(NO_ANSWER, ("q2",))]


def test_shares_are_of_the_queries_that_fit_a_field(diagnosed):
    """One of two works, and the third may work as well: 1 / 3 to 2 / 3."""
    given = {
        "q1": ("correct", ("good",)),
        "q2": ("incorrect", ("good",)),
        "q3": ("correct", ("bad",)),
    }

    [grid] = diagnosed(given)

    working, model, lucky, _ = [cell.share for cell in grid.cells]
    assert (working.mean, model.mean, lucky.mean) == (0.5, 0.5, 0.0)
    assert (working.bounds, working.n, working.n_absent) == (Ends(1 / 3, 2 / 3), 2, 1)


def test_shares_of_nothing_decided_are_unknown(diagnosed):
    """0 % in every field would read as a finding."""
    [grid] = diagnosed({"q3": ("correct", ("bad",))})

    assert [cell.share.mean for cell in grid.cells] == [None] * 4
