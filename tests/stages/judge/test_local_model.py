import numpy as np
import pytest

from ragforge.stages.judge.local_model import MiniLMJudge
from ragforge.stages.judge.pairs import Pair


class Cosine:
    """Gives vectors of which the cosine is known."""

    def __init__(self, cosine):
        self.cosine = cosine

    def vectors(self, texts):
        return np.array([[1, 0], [self.cosine, np.sqrt(1 - self.cosine**2)]], np.float32)


@pytest.mark.parametrize(
    ("cosine", "grade"),
    [(0.9, 3), (0.69, 3), (0.67, 2), (0.65, 2), (0.63, 1), (0.55, 1), (0.53, 0), (-0.2, 0)],
)
def test_the_grade_is_the_cosine_cut_by_thresholds(wait, cosine, grade):
    """The thresholds are part of the judge's name: others are another judge."""
    text = "A sofa is blue. Money is given back."
    judgment = wait(MiniLMJudge(Cosine(cosine)).judge(Pair("q", "Is money back?", "c", text)))

    assert (judgment.grade, judgment.contains_answer) == (grade, grade >= 2)
    assert judgment.evidence == ("Money is given back." if grade >= 2 else "")


def test_its_grades_are_those_of_a_baseline_of_its_own():
    """They must name no winner, and never pass for shared words or a language model."""
    by = MiniLMJudge(Cosine(0)).provenance

    assert (by.kind, by.model) == ("baseline", "offline-minilm-1")
