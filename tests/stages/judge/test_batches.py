import pytest

from ragforge.errors import BudgetError, CallError
from ragforge.observe import silent
from ragforge.records import Failure, Judgment, Provenance
from ragforge.stages.judge.batches import (
    OneByOne,
    SameText,
    batches,
    for_all,
    judge_batches,
    unjudged,
)
from ragforge.stages.judge.pairs import Pair, PairId, open_pairs
from ragforge.stages.runner import Collected, Workers

BY = Provenance(kind="llm", model="m")


def pairs(*named):
    """Pairs of one query: chunk ids with their texts."""
    return [Pair("q", "What?", chunk_id, text) for chunk_id, text in named]


def ids(found):
    return [[[pair.chunk_id for pair in alike.pairs] for alike in batch.texts] for batch in found]


def test_equal_texts_are_judged_once():
    """A grade that differs between two copies of a text is a judge's mood, paid twice."""
    found = batches(pairs(("a", "one"), ("b", "two"), ("c", "one")), 1)

    assert ids(found) == [[["a", "c"]], [["b"]]]


def test_texts_that_look_alike_to_the_judge_are_equal():
    """Characters that are never shown cannot make a difference."""
    assert ids(batches(pairs(("a", "one"), ("b", "o\u202ene")), 1)) == [[["a", "b"]]]


def test_queries_do_not_share_a_slate():
    """The same text may answer one query and not the other."""
    other = Pair("r", "Why?", "a", "one")

    assert ids(batches([*pairs(("a", "one")), other], 8)) == [[["a"]], [["a"]]]


def test_a_batch_holds_as_many_texts_as_are_wanted():
    """Copies of a text cost nothing and fill no place."""
    texts = [(f"c{at}", f"text {at // 2}") for at in range(20)]

    assert [len(batch.texts) for batch in batches(pairs(*texts), 4)] == [4, 4, 2]


def test_what_is_left_of_a_run_comes_in_the_same_batches():
    """Other batches would be other questions, and bought again."""
    every = pairs(*((f"c{at}", f"text {at}") for at in range(20)))
    first, second, *rest = batches(every, 4)
    done = {pair.chunk_id for pair in first.pairs}

    left = list(batches([pair for pair in every if pair.chunk_id not in done], 4))

    assert ids(left) == ids([second, *rest])


def test_a_pair_that_failed_before_is_kept_out_of_batches():
    """It was asked for alone then; in a batch it would change what the others are asked."""
    found = batches(pairs(("a", "1"), ("b", "2"), ("c", "3")), 8, lambda pair: pair.chunk_id == "b")

    assert sorted(map(sorted, ids(found))) == [[["a"], ["c"]], [["b"]]]


def test_a_grade_is_marked_where_it_is_a_copy():
    """Whoever reads the file must see that nobody judged this chunk itself."""
    alike = SameText(tuple(pairs(("a", "blue whales"), ("b", "blue\u202e whales"))))
    judgment = Judgment(query_id="q", chunk_id="a", grade=3, evidence="blue whales")

    _, copy = for_all(judgment, alike)

    assert (copy.chunk_id, copy.grade, copy.copied_from) == ("b", 3, "a")
    assert copy.evidence == "blue\u202e whales"


def test_all_pairs_of_a_failed_text_have_a_failure():
    """A pair without a grade that nobody counts would go unnoticed."""
    alike = SameText(tuple(pairs(("a", "one"), ("b", "one"))))

    judged = unjudged(BY, alike, CallError("refused", "no"))

    assert [(one.chunk_id, one.grade, one.copied_from) for one in judged.judgments] == [
        ("a", None, ""),
        ("b", None, "a"),
    ]
    assert [one.key for one in judged.failures] == ["q/a", "q/b"]


@pytest.mark.parametrize("copies", [1, 3])
def test_a_judge_is_asked_once_for_each_text(wait, copies):
    """That is what equal texts are put together for."""
    asked = []

    class Judge:
        provenance = BY

        async def judge(self, pair):
            asked.append(pair.chunk_id)
            return Judgment(query_id=pair.query_id, chunk_id=pair.chunk_id, grade=1)

    [batch] = batches(pairs(*((f"c{at}", "one") for at in range(copies))), 1)
    judged = wait(OneByOne(Judge()).judge(batch))

    assert asked == ["c0"]
    assert len(judged.judgments) == copies


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


def pairs_of(*chunk_ids):
    return [Pair("q", "Why?", chunk_id, f"text {chunk_id}") for chunk_id in chunk_ids]


@pytest.fixture
def judged(wait):
    """Judge pairs_of and return what was kept, also at a stop."""

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

    [collected] = judged(pairs_of("a", "b"), judge)

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

    collected, raised = judged(pairs_of("a", "b", "c"), ScriptedJudge(a=3, b=error, c=1))

    assert [one.chunk_id for one in collected.results] == ["a"]
    assert raised is error


def test_pairs_with_a_grade_are_not_judged_again():
    """Failed pairs_of are tried again by the next run; graded ones are done."""

    def graded(old):
        return old.grade is not None

    known = [
        Judgment(query_id="q", chunk_id="a", grade=0),
        Judgment(query_id="q", chunk_id="b", grade=None, failure="invalid"),
        Judgment(query_id="other", chunk_id="c", grade=3),
    ]

    asked = [PairId("q", chunk_id) for chunk_id in "abc"]

    assert open_pairs(asked, known, graded) == [("q", "b"), ("q", "c")]
