"""Grades of answers to queries whose facts somebody edited since."""

import pytest

from ragforge.evaluating.answers.records import facts_digest, read_systems
from ragforge.files.set.opening import create_dataset
from ragforge.records import Answer, AnswerGrade, Fact, Query

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
