import pytest

from ragforge.errors import CallError
from ragforge.observe import silent
from ragforge.records import AnswerGrade, Provenance
from ragforge.stages.answer.cases import Case
from ragforge.stages.answer.stage import grade_answers
from ragforge.stages.runner import Workers


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
