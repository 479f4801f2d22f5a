import pytest

from ragforge.errors import CallError
from ragforge.observe import silent
from ragforge.records import Answer, AnswerGrade, Provenance
from ragforge.stages.answer.stage import (
    Case,
    cases,
    grade_answers,
    graded_by_rule,
    unknown_passages,
)
from ragforge.stages.runner import Workers


def test_only_answers_that_can_be_compared_are_cases(query, chunk):
    """Answers to unknown queries, or to ones without expected answer, cannot be graded."""
    queries = [
        query(query_id="q1", expected_answer="krill"),
        query(query_id="q2"),
        query(query_id="q3", answerable=False),
    ]
    answers = [
        Answer(query_id=name, answer="a", chunk_ids=("c1",))
        for name in ("q3", "q1", "q2", "unknown")
    ]

    found = list(cases(queries, answers, {"c1": chunk("text")}))

    assert [(case.query.query_id, case.contexts) for case in found] == [
        ("q3", ("text",)),
        ("q1", ("text",)),
    ]


@pytest.mark.parametrize(
    ("given", "n_unknown"),
    [
        ({"chunk_ids": ("c1",)}, 0),
        ({"chunk_ids": ("c1", "gone")}, 1),
        ({"chunk_ids": ("gone",)}, 1),
        ({"chunk_ids": ("c1",), "n_unknown_passages": 2}, 2),
    ],
)
def test_an_answer_with_an_unknown_passage_has_no_contexts(query, chunk, given, n_unknown):
    """What an unknown passage says would be held for made up."""
    chunks, answer = {"c1": chunk("text")}, Answer(query_id="q1", answer="a", **given)

    [case] = cases([query(expected_answer="krill")], [answer], chunks)

    assert case.contexts == (() if n_unknown else ("text",))
    assert unknown_passages(answer, chunks) == n_unknown


class ScriptedJudge:
    """Finds every answer correct, or raises."""

    provenance = Provenance(kind="llm", model="scripted")

    def __init__(self, error=None):
        self.error, self.asked = error, []

    async def judge(self, case):
        self.asked.append(case)
        if self.error:
            raise self.error
        return AnswerGrade(
            query_id=case.query.query_id, verdict="correct", score=1.0, has_hallucination=None
        )


@pytest.fixture
def graded(wait, query):
    """Grade one answer and return what was collected."""

    def go(judge, answer):
        case = Case(query(expected_answer="small krill"), answer, ())
        return wait(
            grade_answers(
                [case], judge, system="rag", workers=Workers(2, silent), keep=lambda _: None
            )
        )

    return go


def test_a_failed_answer_has_neither_verdict_nor_score(graded):
    """A verdict the judge did not give must not count as wrong."""
    collected = graded(ScriptedJudge(CallError("refused", "no")), "krill")

    [grade] = collected.results
    assert (grade.verdict, grade.score, grade.has_hallucination) == (None, None, None)
    assert grade.failure == "refused"
    assert [failure.key for failure in collected.failures] == ["rag/q1"]


def test_what_a_rule_decides_is_not_asked(graded):
    """A call that cannot change the verdict is wasted."""
    judge = ScriptedJudge()

    [grade] = graded(judge, "I don't know.").results

    assert grade.verdict == "not_attempted"
    assert judge.asked == []


def test_what_no_rule_decides_is_asked(graded):
    """Rules are for the plain cases."""
    judge = ScriptedJudge()

    [grade] = graded(judge, "krill").results

    assert grade.verdict == "correct"
    assert len(judge.asked) == 1


@pytest.fixture
def by_rule(query):
    """Grade an answer by rule."""

    def go(answer, text="What do whales eat?", **changes):
        return graded_by_rule(Case(query(text, **changes), answer, ("text",)))

    return go


@pytest.mark.parametrize(
    ("answerable", "verdict", "score"), [(True, "not_attempted", 0.0), (False, "correct", 1.0)]
)
@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("I don't know.", "abstention"),
        ("", "empty answer"),
        (" ", "empty answer"),
        ("\u200b", "empty answer"),
        ("\u2060 \ufeff", "empty answer"),
        ("...", "empty answer"),
    ],
)
def test_to_abstain_is_right_only_where_nothing_can_be_known(
    by_rule, answer, rule, answerable, verdict, score
):
    """A system that invents answers to unanswerable questions must score below an honest one."""
    grade = by_rule(answer, answerable=answerable, expected_answer="krill" if answerable else None)

    assert (grade.verdict, grade.score, grade.has_hallucination) == (verdict, score, False)
    assert (grade.rule, grade.provenance.kind) == (rule, "rule")


@pytest.mark.parametrize(
    ("expected", "answer", "rule"),
    [
        ("krill", "The krill.", "exact match"),
        ("1000", "1,000", "equal number"),
        ("14 March 2025", "2025-03-14", "equal date"),
        ("3 km", "3000 m", "equal quantity"),
    ],
)
def test_what_equals_the_expected_answer_is_correct(by_rule, expected, answer, rule):
    """No judge is needed to see that, and whether the context holds it was not checked."""
    grade = by_rule(answer, expected_answer=expected)

    assert (grade.verdict, grade.score, grade.has_hallucination) == ("correct", 1.0, None)
    assert (grade.rule, grade.provenance.kind) == (rule, "rule")


@pytest.mark.parametrize("answer", ["squid", "Blue whales eat krill.", "krill, mostly"])
def test_an_answer_with_other_content_is_left_to_a_judge(by_rule, answer):
    """A rule decides only what needs no reading."""
    assert by_rule(answer, expected_answer="krill") is None


@pytest.mark.parametrize(
    ("context", "has_hallucination"), [("Whales eat small krill.", False), ("Squid.", None)]
)
def test_an_answer_that_stands_in_its_context_is_not_made_up(query, context, has_hallucination):
    """A gate on hallucination counts what nobody checked at its worst, and no judge is asked."""
    case = Case(query(expected_answer="small krill"), "Small krill", ("Orcas.", context))

    grade = graded_by_rule(case)

    assert (grade.rule, grade.has_hallucination) == ("exact match", has_hallucination)


def test_an_unequal_number_is_left_to_a_judge(by_rule):
    """It may be rounded, or count something else: only a reader can tell."""
    assert by_rule("1001", expected_answer="1000") is None


def test_an_answer_to_an_unanswerable_question_is_left_to_a_judge(by_rule):
    """What stands beside such a question is no answer to it."""
    assert by_rule("krill", expected_answer="krill", answerable=False) is None


def test_an_expected_answer_that_reads_like_an_abstention_is_left_to_a_judge(by_rule):
    """`It is not mentioned in the documentation` can be the true answer."""
    answer = "This is not mentioned in the text."

    assert by_rule(answer, expected_answer="Not mentioned in the documentation.") is None


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("It is not mentioned", "not mentioned"),
        ("It is unknown", "Unknown"),
        ("The manufacturer does not say.", "No information is available."),
        ("The policy doesn\u2019t say", "The documents do not say."),
        ("Nobody knows", "I don't know"),
        ("Das wei\u00df niemand.", "Ich wei\u00df es nicht."),
        ("Personne ne le sait.", "Je ne sais pas."),
        ("\u6ca1\u6709\u4eba\u77e5\u9053\u3002", "\u4e0d\u77e5\u9053"),
    ],
)
def test_an_abstention_may_be_what_is_expected(by_rule, expected, answer):
    """A rule that marks a right answer 0 is never looked at again."""
    assert by_rule(answer, expected_answer=expected) is None


@pytest.mark.parametrize("answer", ["???", "***"])
def test_punctuation_may_be_what_is_expected(by_rule, answer):
    """Which sign ends a question is a question too."""
    assert by_rule(answer, expected_answer="?") is None


@pytest.mark.parametrize("answer", ["\U0001f44d", "+", "\u221e"])
def test_signs_are_no_empty_answer(by_rule, answer):
    """They may say all there is to say."""
    assert by_rule(answer, expected_answer="krill") is None


def test_an_expected_abstention_can_be_matched_word_by_word(by_rule):
    """The same words are the same answer, whatever they say."""
    expected = "It is not mentioned in the documentation."

    assert by_rule(expected, expected_answer=expected).rule == "exact match"


def test_an_empty_answer_needs_no_judge(by_rule):
    """Nothing can make it right."""
    grade = by_rule("", expected_answer="The flag is not mentioned in the documentation.")

    assert grade.verdict == "not_attempted"
