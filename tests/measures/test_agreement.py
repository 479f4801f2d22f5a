import math
from itertools import combinations

import numpy as np
import pytest

from ragforge.errors import DataError, UsageError
from ragforge.measures.agreement import (
    ac2,
    alpha,
    at_least,
    auc,
    auc_of_grades,
    bias,
    confusion,
    human_rate,
    judge_rate,
    kappa,
    mean_error,
    precision,
    quadratic_kappa,
    sensitivity,
    specificity,
)

HUMAN = [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
JUDGE = [0, 0, 1, 1, 3, 2, 0, 3, 3, 2]
COUNTS = confusion(HUMAN, JUDGE)
BINARY = at_least(COUNTS, 2)
OF_COUNTS = (kappa, quadratic_kappa, alpha, ac2)
OF_BINARY = (sensitivity, specificity, precision, human_rate, judge_rate)
KRIPPENDORFF = [
    [0, 0, None, 0],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [2, 2, 2, 2],
    [1, 1, 1, 1],
    [0, 1, 2, 3],
    [3, 3, 3, 3],
    [0, 0, 1, 0],
    [1, 1, 1, 1],
    [None, 4, 4, 4],
    [None, None, 0, 0],
    [None, 2, None, None],
]
"""The worked example of Krippendorff 2011, grades counted from 0."""


def test_confusion_has_the_person_in_its_rows():
    """Turned round, sensitivity would be precision."""
    assert confusion([0, 0, 3], [1, 1, 2]).tolist() == [
        [0, 2, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 1, 0],
    ]


def test_kappa_equals_the_count_by_hand():
    """6 of 10 agree; chance is (3*3 + 2*2 + 2*2 + 3*3) / 100."""
    assert kappa(COUNTS) == pytest.approx((0.6 - 0.26) / (1 - 0.26))


def test_quadratic_kappa_equals_the_count_by_hand():
    """Observed squares are 1 + 4 + 4 + 1; the expected ones are the mean of 10 x 10."""
    by_chance = sum((a - b) ** 2 for a in HUMAN for b in JUDGE) / 10

    assert quadratic_kappa(COUNTS) == pytest.approx(1 - 10 / by_chance)


def test_linear_weights_count_steps():
    """Between none and quadratic."""
    by_chance = sum(abs(a - b) for a in HUMAN for b in JUDGE) / 10

    assert kappa(COUNTS, "linear") == pytest.approx(1 - 6 / by_chance)


def met(ratings, n_grades):
    """How often two grades meet in a pair, weighed by its number of graders."""
    matrix = np.zeros((n_grades, n_grades))
    for pair in ratings:
        given = [grade for grade in pair if grade is not None]
        for one, other in combinations(given, 2):
            matrix[one, other] += 1 / (len(given) - 1)
    return matrix


def test_ordinal_alpha_equals_the_published_example():
    """Four graders, some grades missing, one pair with a single grade: 0.815 in the source."""
    assert alpha(met(KRIPPENDORFF, 5)) == pytest.approx(0.815, abs=5e-4)


def test_alpha_of_counts_is_that_of_two_graders():
    """One formula, two ways in."""
    pairs = list(zip(HUMAN, JUDGE, strict=True))

    assert alpha(COUNTS) == pytest.approx(alpha(met(pairs, 4)))


def test_ac2_equals_the_count_by_hand():
    """Weights 1, 5/6, 1/2, 0 by distance; T = 11; both graders' shares are 0.3, 0.2, 0.2, 0.3."""
    observed = (6 + 2 * 5 / 6 + 2 * 1 / 2) / 10
    by_chance = 11 / 12 * (2 * 0.3 * 0.7 + 2 * 0.2 * 0.8)

    assert ac2(COUNTS) == pytest.approx((observed - by_chance) / (1 - by_chance))


def test_threshold_parts_the_scale_once():
    """Below it and from it on, by both."""
    assert BINARY.tolist() == [[4, 1], [1, 4]]


def test_binary_figures_equal_the_counts_by_hand():
    """4 of 5 found, 4 of 5 left out, 4 of 5 found ones right."""
    assert [float(figure(BINARY)) for figure in OF_BINARY] == [0.8, 0.8, 0.8, 0.5, 0.5]
    assert kappa(BINARY) == pytest.approx(0.6)


@pytest.mark.parametrize("threshold", [0, 4])
def test_thresholds_that_part_nothing_are_refused(threshold):
    """Everything relevant, or nothing, is no question."""
    with pytest.raises(UsageError, match=f"expected a grade from 1 to 3, got {threshold}"):
        at_least(COUNTS, threshold)


def test_bias_is_positive_where_the_judge_is_lenient():
    """The sign is the first thing that is read."""
    assert bias(confusion([0, 1], [2, 1])) == 1.0
    assert mean_error(confusion([0, 3], [2, 2])) == 1.5
    assert bias(COUNTS) == pytest.approx(0.0)


def test_auc_counts_ties_half():
    """Relevant 1.0 and 0.5 against 0.5 and 0.0: 3 wins and a tie of 4."""
    scores, groups = [1.0, 0.5, 0.5, 0.0], np.zeros(4, dtype=np.intp)
    is_relevant = np.array([True, True, False, False])

    assert auc(scores, is_relevant, np.ones((1, 1)), groups).tolist() == [3.5 / 4]


def test_auc_of_grades_is_the_auc_of_the_grade_as_score():
    """One formula, two ways in."""
    is_relevant, groups = np.array(HUMAN) >= 2, np.zeros(10, dtype=np.intp)
    [expected] = auc(JUDGE, is_relevant, np.ones((1, 1)), groups)

    assert auc_of_grades(COUNTS, 2) == pytest.approx(expected)


def test_auc_of_a_resample_counts_pairs_as_often_as_their_query():
    """A query drawn twice is two queries, its pairs met with themselves too."""
    scores, is_relevant = [3.0, 1.0, 2.0, 2.5], np.array([True, False, True, False])
    groups, times = np.array([0, 0, 1, 1]), np.array([[2.0, 1.0]])
    again = [0, 1, 0, 1, 2, 3]
    [expected] = auc(
        [scores[i] for i in again], is_relevant[again], np.ones((1, 1)), np.zeros(6, dtype=np.intp)
    )

    assert auc(scores, is_relevant, times, groups).tolist() == [expected]


@pytest.mark.parametrize("figure", OF_COUNTS)
@pytest.mark.parametrize("grades", [[], [0, 0, 0], [2]])
def test_one_grade_throughout_is_no_agreement(figure, grades):
    """A judge that says 0 to a pool of nothing but 0 has shown nothing: never 1.0 by accident."""
    assert math.isnan(figure(confusion(grades, grades)))


@pytest.mark.parametrize("figure", [kappa, quadratic_kappa])
def test_a_judge_of_one_grade_reaches_what_chance_does(figure):
    """Always 0 is the first baseline, and right as often as there are zeros."""
    assert figure(confusion([0, 0, 0, 3], [0, 0, 0, 0])) == 0.0


@pytest.mark.parametrize("figure", [sensitivity, specificity, precision])
def test_shares_of_nothing_have_no_value(figure):
    """Neither 0 nor 1 is right where nothing was to be found."""
    only = at_least(confusion([3], [0]), 2) if figure is not sensitivity else np.zeros((2, 2))

    assert math.isnan(figure(only))


@pytest.mark.parametrize("figure", [human_rate, judge_rate])
def test_rates_of_no_pair_have_no_value(figure):
    """An empty set has no base rate."""
    assert math.isnan(figure(np.zeros((2, 2))))
    assert math.isnan(bias(np.zeros((4, 4))))
    assert math.isnan(mean_error(np.zeros((4, 4))))


def test_auc_without_both_kinds_has_no_value():
    """There is nothing to tell apart."""
    assert math.isnan(auc_of_grades(confusion([0, 1], [0, 3]), 2))
    nothing = auc([], np.array([], dtype=bool), np.ones((2, 0)), np.array([], dtype=np.intp))
    assert np.isnan(nothing).all()


def test_alpha_needs_pairs_with_two_grades():
    """One grade a pair says nothing about agreement."""
    assert math.isnan(alpha(met([[0, None], [None, 3]], 4)))


def test_every_figure_is_computed_for_each_resample():
    """Leading axes are resamples; a loop over 2,000 of them would take seconds."""
    stacked = np.stack([COUNTS, COUNTS.T, 2 * COUNTS])

    for figure in OF_COUNTS[:2]:
        assert figure(stacked).tolist() == pytest.approx(
            [float(figure(part)) for part in (COUNTS, COUNTS.T, 2 * COUNTS)]
        )
    assert ac2(stacked).shape == alpha(stacked).shape == (3,)


def test_agreement_of_a_judge_with_itself_is_one():
    """The upper end of the scale."""
    same = confusion(HUMAN, HUMAN)

    assert [float(figure(same)) for figure in OF_COUNTS] == [1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("human", "judge", "message"),
    [
        ([0], [4], "judge: grade 0: expected a whole number from 0 to 3, got 4"),
        ([0, -1], [0, 0], "human: grade 1: expected a whole number from 0 to 3, got -1"),
        ([0.5], [0], "human: expected whole numbers, got"),
        ([0, None], [0, 0], "human: expected whole numbers, got 0 and the like"),
        ([True], [0], "human: expected whole numbers"),
    ],
)
def test_grades_outside_of_the_scale_are_refused(human, judge, message):
    """A failure is not a grade, and a share is none either."""
    with pytest.raises(DataError, match=message):
        confusion(human, judge)


def test_graders_of_different_pairs_are_refused():
    """Shifted by one, any two graders agree by chance."""
    with pytest.raises(UsageError, match="2 of people and 1 of the judge"):
        confusion([0, 1], [0])


def test_coefficients_equal_scikit_learn():
    """An independent count, where that package happens to be there."""
    theirs = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(3)
    human = generator.integers(0, 4, 500)
    judge = np.clip(human + generator.integers(-1, 3, 500), 0, 3)
    counts = confusion(human, judge)

    for weights, name in (("none", None), ("linear", "linear"), ("quadratic", "quadratic")):
        expected = theirs.cohen_kappa_score(human, judge, weights=name)
        assert kappa(counts, weights) == pytest.approx(expected)
    assert auc_of_grades(counts, 2) == pytest.approx(theirs.roc_auc_score(human >= 2, judge))
