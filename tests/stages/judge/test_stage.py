import pytest

from ragforge.errors import BudgetError, CallError
from ragforge.observe import silent
from ragforge.records import Failure, Judgment, Provenance
from ragforge.stages.judge.batches import OneByOne, batches
from ragforge.stages.judge.pairs import Pair, PairId
from ragforge.stages.judge.stage import judge_batches, open_pairs
from ragforge.stages.runner import Collected, Workers


class ScriptedJudge:
    """Grades by chunk, or raises what the chunk is mapped to."""

    provenance = Provenance(kind="llm", model="scripted")

    def __init__(self, **grades):
        self.grades = grades

    async def judge(self, pair):
        grade = self.grades[pair.chunk_id]
        if isinstance(grade, Exception):
            raise grade
        return Judgment(query_id=pair.query_id, chunk_id=pair.chunk_id, grade=grade)


def pairs(*chunk_ids):
    return [Pair("q", "Why?", chunk_id, f"text {chunk_id}") for chunk_id in chunk_ids]


@pytest.fixture
def judged(wait):
    """Judge pairs and return what was kept, also at a stop."""

    def go(units, judge):
        collected = Collected()
        kept = [collected]
        try:
            work = judge_batches(
                batches(units, 1), OneByOne(judge), Workers(1, silent), collected, total=None
            )
            wait(work)
        except BudgetError as error:
            kept.append(error)
        return kept

    return go


def test_a_failed_pair_stays_without_a_grade(judged):
    """A grade the judge did not give must not lower the mean."""
    judge = ScriptedJudge(a=3, b=CallError("truncated", "cut off", "{"))

    [collected] = judged(pairs("a", "b"), judge)

    assert {one.provenance for one in collected.results if one.failure} == {
        ScriptedJudge.provenance
    }
    assert [(one.chunk_id, one.grade, one.failure) for one in collected.results] == [
        ("a", 3, None),
        ("b", None, "truncated"),
    ]
    assert collected.failures == [
        Failure(what="judge", key="q/b", kind="truncated", message="cut off", raw="{")
    ]


def test_a_stop_keeps_what_was_judged(judged):
    """The user paid for it."""
    error = BudgetError("--max-calls 1 is reached")

    collected, raised = judged(pairs("a", "b", "c"), ScriptedJudge(a=3, b=error, c=1))

    assert [one.chunk_id for one in collected.results] == ["a"]
    assert raised is error


def test_pairs_with_a_grade_are_not_judged_again():
    """Failed pairs are tried again by the next run; graded ones are done."""

    def graded(old):
        return old.grade is not None

    known = [
        Judgment(query_id="q", chunk_id="a", grade=0),
        Judgment(query_id="q", chunk_id="b", grade=None, failure="invalid"),
        Judgment(query_id="other", chunk_id="c", grade=3),
    ]

    asked = [PairId("q", chunk_id) for chunk_id in "abc"]

    assert open_pairs(asked, known, graded) == [("q", "b"), ("q", "c")]
