"""Grades of answers that were edited since, or whose queries were."""

import pytest

from ragforge.evaluating.answers.records import (
    answer_digest,
    expectation_of,
    facts_digest,
    is_of_other,
    read_systems,
)
from ragforge.files.set.opening import create_dataset
from ragforge.records import Answer, AnswerGrade, Fact, FactVerdict, Query
from ragforge.records.judgments import expectation_digest

FACTS = (Fact(fact_id="f1", text="It is blue."),)


@pytest.fixture
def read(tmp_path):
    """Return the records of a system whose one answer was graded by facts."""
    dataset = create_dataset(tmp_path / "set", {})
    query = Query(query_id="q", query="Which?", expected_answer="Blue.", facts=FACTS)
    dataset.write_queries([query])
    dataset.write_answers("rag", [Answer(query_id="q", answer="Blue.")])

    def act(digest, **edits):
        grade = AnswerGrade(
            query_id="q", verdict="correct", score=1.0, has_hallucination=None, facts_sha256=digest
        )
        dataset.write_answer_grades("rag", [grade])
        dataset.write_queries([query.model_copy(update=edits)])
        queries = {one.query_id: one for one in dataset.queries()}
        [records] = read_systems(dataset, [], queries)
        return records

    return act


@pytest.mark.parametrize(
    "facts",
    [
        (Fact(fact_id="f1", text="It is red."),),
        (Fact(fact_id="f1", text="It is blue.", importance="okay"),),
        (),
    ],
)
def test_a_grade_by_former_facts_is_none(read, facts):
    """A gate passed by facts that nobody holds any more."""
    digest = facts_digest(Query(query_id="q", query="Which?", facts=FACTS))

    assert len(read(digest).graded) == 1
    records = read(digest, facts=facts)

    assert (len(records.graded), records.outdated) == (0, {"q"})


def test_grades_that_do_not_say_by_which_facts_count(read):
    """Those made before, and those that are by no facts."""
    assert len(read("", facts=()).graded) == 1


ANSWER = Answer(query_id="q", answer="Blue.", chunk_ids=("c1", "c2"))


@pytest.fixture
def graded(tmp_path):
    """Return the records of a system with a grade of `ANSWER`, or of one that is not known."""
    dataset = create_dataset(tmp_path / "set", {})
    query = Query(query_id="q", query="Which?", expected_answer="Blue.")
    dataset.write_queries([query])

    def act(answers, digest):
        grade = AnswerGrade(
            query_id="q",
            verdict="correct",
            score=1.0,
            has_hallucination=False,
            answered_sha256=digest,
        )
        dataset.write_answer_grades("rag", [grade])
        if answers:
            dataset.write_answers("rag", answers)
        [records] = read_systems(dataset, [], {"q": query})
        return records

    return act


@pytest.mark.parametrize(
    "edits", [{"answer": "I do not know."}, {"chunk_ids": ("c1",)}, {"n_unknown_passages": 1}]
)
def test_a_grade_of_another_answer_or_context_is_none(graded, edits):
    """A gate passed with 1.000 by 30 grades of former answers, where all said they do not know."""
    records = graded([ANSWER.model_copy(update=edits)], answer_digest(ANSWER))

    assert (len(records.graded), records.edited, records.ungraded) == (0, {"q"}, {"q"})
    assert records.outdated_text == (
        "rag: 1 answer, or its context, is another than what was graded, and counts as not "
        "graded; `ragforge answer` grades again"
    )


@pytest.mark.parametrize(
    ("answers", "digest"),
    [
        ([ANSWER.model_copy(update={"latency_s": 2.0, "cost_usd": 0.1})], answer_digest(ANSWER)),
        ([ANSWER.model_copy(update={"answer": "Red."})], ""),
        ([], answer_digest(ANSWER)),
    ],
)
def test_a_grade_counts_where_nothing_says_that_it_is_of_another_answer(graded, answers, digest):
    """Of the same words, of a set of before, and without the answers."""
    records = graded(answers, digest)

    assert (len(records.graded), records.outdated_text) == (1, "")


def query(*, answerable):
    return Query(query_id="q", query="Which?", expected_answer="Blue.", answerable=answerable)


def grade(by, **says):
    """Return a grade by a query, as they were before it was noted which answer they are of."""
    digest = expectation_digest(by.asked, by.expected_answer)
    known = {"verdict": "correct", "score": 1.0, "has_hallucination": None}
    return AnswerGrade(**{"query_id": "q", "expected_sha256": digest, **known, **says})


@pytest.mark.parametrize("answerable", [True, False])
def test_a_grade_where_an_answer_was_expected_is_none_where_a_refusal_is(answerable):
    """A system that invents 30 of 30 kept `correct` 1.000, and one that refuses 0.000."""
    was, now = query(answerable=answerable), query(answerable=not answerable)
    noted = {"expected_sha256": expectation_of(was), "answered_sha256": "0" * 16}

    assert is_of_other(grade(was, **noted), now)
    assert not is_of_other(grade(was, **noted), was)


@pytest.mark.parametrize(
    ("says", "was_answerable"),
    [
        ({"rule": "abstention"}, False),
        ({"rule": "abstention", "verdict": "not_attempted", "score": 0.0}, True),
        ({"rule": "exact match"}, True),
        ({"explanation": "token F1 0.90"}, True),
        ({"facts": (FactVerdict(fact_id="f1", status="supported"),)}, True),
        ({"explanation": "the question is not answerable, but the answer claims"}, False),
    ],
)
def test_a_grade_of_before_counts_where_what_it_shows_is_so(says, was_answerable):
    """Its digest does not say whether a refusal was expected."""
    was, now = query(answerable=was_answerable), query(answerable=not was_answerable)

    assert not is_of_other(grade(was, **says), was)
    assert is_of_other(grade(was, **says), now)


@pytest.mark.parametrize("answerable", [True, False])
def test_a_grade_of_before_that_shows_nothing_counts(answerable):
    """Such as one that came with the answer: nothing says that anything changed."""
    of = query(answerable=answerable)

    assert not is_of_other(grade(of, verdict="not_attempted", score=0.0), of)


def test_the_digest_of_an_answerable_query_stays():
    """Grades by it are in sets."""
    of = query(answerable=True)

    assert expectation_of(of) == expectation_digest(of.asked, of.expected_answer)
