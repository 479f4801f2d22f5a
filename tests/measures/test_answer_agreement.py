"""How a judge of answers agrees with people."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.answer_agreement import (
    preference_agreement,
    score_agreement,
    verdict_agreement,
)

IDS = ["q1", "q1", "q2", "q2", "q3", "q3"]


def test_kappa_and_recall_of_verdicts_are_those_of_the_counts():
    """Worked by hand: 4 of 6 alike; expected by chance 12 of 36."""
    found = verdict_agreement(IDS, [0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 2, 1], 4)

    assert found.counts == ((2, 0, 0, 0), (1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 0, 0))
    assert found.same.value == pytest.approx(4 / 6)
    assert found.kappa.value == pytest.approx((4 / 6 - 12 / 36) / (1 - 12 / 36))
    assert [each.value for each in found.recall] == [1.0, 0.5, 0.5, None]


def test_pearson_and_spearman_are_those_of_all_answers():
    """They are what the field reports of answer judges."""
    human, judge = [0.0, 0.5, 1.0, 1.0, 0.0, 0.5], [0.1, 0.4, 0.9, 1.0, 0.3, 0.2]

    found = score_agreement(IDS, human, judge)

    assert found.pearson.value == pytest.approx(np.corrcoef(human, judge)[0, 1])
    ranks = [1.5, 3.5, 5.5, 5.5, 1.5, 3.5], [1, 4, 5, 6, 3, 2]
    assert found.spearman.value == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert found.bias.value == pytest.approx(np.mean(judge) - np.mean(human))


def test_a_judge_that_gives_one_score_to_all_has_no_correlation():
    """Undefined is not 0."""
    found = score_agreement(IDS, [0, 1, 0, 1, 0, 1], [1, 1, 1, 1, 1, 1])

    assert found.pearson.value is None


def test_ties_of_a_judge_count_half_of_what_people_decided():
    """A judge that never decides is as good as a coin."""
    found = preference_agreement(IDS, [1, -1, 1, 0, 1, -1], [0.2, -0.1, 0, 0.5, -0.3, -0.4])

    assert found.same_sign.value == pytest.approx(3.5 / 5)
    assert found.n_ties == 1
    assert found.n_judge_ties == 1


def test_values_of_other_answers_are_refused():
    """Rows that slipped by one would correlate with nothing."""
    with pytest.raises(UsageError, match="of the same answers"):
        score_agreement(IDS, [1.0], [1.0])


def test_a_judge_that_is_never_off_here_may_be_elsewhere():
    """Three queries without a miss are no proof that there is none: no interval has no width."""
    found = score_agreement(IDS, [0.0, 0.5, 1.0, 1.0, 0.0, 0.5], [0.0, 0.5, 1.0, 1.0, 0.0, 0.5])

    assert found.bias.low < 0.0 < found.bias.high
    assert found.bias.low >= -1.0
