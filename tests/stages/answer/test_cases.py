import pytest

from ragforge.records import Answer
from ragforge.stages.answer.cases import Case, abstains, cases, graded_by_rule


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n",
        "I don't know.",
        "I don\u2019t know the answer to that.",
        "Sorry, I could not find this in the documents.",
        "I cannot answer this question based on the provided context.",
        "We were unable to determine the cause.",
        "The documents do not contain information about pricing.",
        "The provided context doesn't mention a deadline.",
        "There is no information about this in the passages.",
        "This is not mentioned in the text.",
        "Not specified.",
        "Unknown",
        "Das weiß ich nicht.",
        "Je ne sais pas.",
        "No lo sé.",
        "我不知道。",
    ],
)
def test_an_answer_that_says_nothing_is_an_abstention(answer):
    """It is right where nothing can be said, and wrong in another way than a false claim."""
    assert abstains(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Blue whales eat krill.",
        "Water damage is not covered.",
        "Refunds are not available after 30 days.",
        "The package does not contain nuts.",
        "No information is stored on disk.",
        "Users can't answer calls while the line is busy.",
        "It is known in every country.",
        "You cannot find it in the settings; use the command line.",
        "I don't know for sure, but " + "the manual says a lot about it " * 10,
    ],
)
def test_an_answer_that_says_something_is_none(answer):
    """A rule that takes a right answer for an abstention hides it from the judge."""
    assert not abstains(answer)


@pytest.fixture
def by_rule(query):
    """Grade an answer by rule."""

    def go(answer, **changes):
        return graded_by_rule(Case(query(**changes), answer, ("text",)))

    return go


@pytest.mark.parametrize(
    ("answerable", "verdict", "score"), [(True, "not_attempted", 0.0), (False, "correct", 1.0)]
)
@pytest.mark.parametrize("answer", ["I don't know.", ""])
def test_to_abstain_is_right_only_where_nothing_can_be_known(
    by_rule, answer, answerable, verdict, score
):
    """A system that invents answers to unanswerable questions must score below an honest one."""
    grade = by_rule(answer, answerable=answerable, expected_answer="krill" if answerable else None)

    assert (grade.verdict, grade.score, grade.has_hallucination) == (verdict, score, False)
    assert grade.provenance.kind == "rule"


def test_an_answer_with_content_is_left_to_a_judge(by_rule):
    """A rule decides only what needs no reading."""
    assert by_rule("Krill.", expected_answer="krill") is None


def test_an_expected_answer_that_reads_like_an_abstention_is_left_to_a_judge(by_rule):
    """`It is not mentioned in the documentation` can be the true answer."""
    expected = "The flag is not mentioned in the documentation."

    assert by_rule(expected, expected_answer=expected) is None


def test_an_empty_answer_needs_no_judge(by_rule):
    """Nothing can make it right."""
    grade = by_rule("", expected_answer="The flag is not mentioned in the documentation.")

    assert grade.verdict == "not_attempted"


def test_only_answers_that_can_be_compared_are_cases(query, chunk):
    """Answers to unknown queries, or to ones without expected answer, cannot be graded."""
    queries = [
        query(query_id="q1", expected_answer="krill"),
        query(query_id="q2"),
        query(query_id="q3", answerable=False),
    ]
    answers = [
        Answer(query_id=name, answer="a", chunk_ids=("c1", "gone"))
        for name in ("q3", "q1", "q2", "unknown")
    ]

    found = list(cases(queries, answers, {"c1": chunk("text")}))

    assert [(case.query.query_id, case.contexts) for case in found] == [
        ("q3", ("text",)),
        ("q1", ("text",)),
    ]
