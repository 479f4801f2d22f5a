import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.grader_agreement import AUC_OF_SCORE, FailureBounds, Grader, agree

QUERIES = ["a", "a", "a", "b", "b", "c", "c", "c"]
HUMAN = [0, 2, 3, 0, 3, 1, 0, 2]
GOOD = Grader("good", [0, 2, 3, 0, 2, 1, 1, 2], [0.1, 2.2, 2.9, 0.4, 2.4, 0.9, 0.7, 2.0])
ZERO = Grader("always 0", [0] * 8)


def test_graders_stand_beside_each_other_on_the_same_pairs():
    """A kappa without the baseline's says little."""
    found = agree(QUERIES, HUMAN, [GOOD, ZERO])

    assert (found.n_pairs, found.n_queries, found.human_counts) == (8, 3, (3, 1, 2, 2))
    assert [each.name for each in found.graders] == ["good", "always 0"]
    assert found.graders[0].figures["kappa at threshold"].value == 1.0
    assert found.graders[1].figures["kappa at threshold"].value == 0.0
    assert found.graders[1].figures["precision"].value is None


def test_who_gives_one_grade_has_a_kappa_by_definition_alone():
    """Queries drawn anew cannot move it, so that an interval would tell of nothing."""
    _, zero = agree(QUERIES, HUMAN, [GOOD, Grader("always 0", [0] * 8, [0.5] * 8)]).graders

    for name, value in (("kappa", 0.0), ("kappa at threshold", 0.0), (AUC_OF_SCORE, 0.5)):
        assert (zero.figures[name].value, zero.figures[name].low) == (value, None)
    assert zero.figures["bias"].low is not None
    assert zero.only_grade == 0


def test_difference_is_taken_within_each_draw_of_queries():
    """Two overlapping intervals do not tell whether one judge is better."""
    first, second = agree(QUERIES, HUMAN, [GOOD, ZERO]).graders

    gained = second.beyond_first["quadratic kappa"]
    assert gained.value == first.figures["quadratic kappa"].value
    assert gained.low is not None
    assert gained.low > 0
    assert first.beyond_first == {}


def test_scores_have_their_own_auc():
    """A mean of votes orders pairs of one grade."""
    good, zero = agree(QUERIES, HUMAN, [GOOD, ZERO]).graders

    assert good.figures[AUC_OF_SCORE].value == 1.0
    assert AUC_OF_SCORE not in zero.figures


def test_counts_are_whole_and_add_up():
    """The confusion is what a reader checks the rest with."""
    [good] = agree(QUERIES, HUMAN, [GOOD]).graders

    assert good.counts == ((2, 1, 0, 0), (0, 1, 0, 0), (0, 0, 2, 0), (0, 0, 1, 1))


def test_failures_bound_the_kappas():
    """A judge that fails on the hard pairs is flattered by the rest."""
    found = agree(QUERIES, HUMAN, [GOOD], failed=[3, 0])
    alone = found.graders[0].figures["kappa at threshold"].value

    assert found.n_failed == 2
    assert found.failure_bounds["kappa at threshold"] == FailureBounds(0.6, 1.0)
    assert alone == 1.0
    assert agree(QUERIES, HUMAN, [GOOD]).failure_bounds == {}


def test_no_pair_at_all_has_no_figure():
    """All judging may have failed."""
    found = agree([], [], [Grader("none", [], [])], failed=[2])

    assert (found.n_pairs, found.n_queries, found.n_failed) == (0, 0, 1)
    assert {figure.value for figure in found.graders[0].figures.values()} == {None}


def test_a_grader_of_other_pairs_is_refused():
    """Aligned wrongly, every figure is noise."""
    with pytest.raises(UsageError, match="short: expected 8 grades, got 1"):
        agree(QUERIES, HUMAN, [Grader("short", [0])])


def graded_queries():
    """Return people's grades and a judge's, shape (60, 30) each.

    The judge is right in most queries, and in some it guesses.
    """
    generator = np.random.default_rng(0)
    rates, right = generator.beta(0.7, 3, (60, 1)), generator.beta(6, 1.5, (60, 1))
    relevant = generator.random((60, 30)) < rates
    human = 2 * relevant + (generator.random((60, 30)) < 0.4)
    guessed = generator.integers(0, 4, (60, 30))
    return human, np.where(generator.random((60, 30)) < right, human, guessed)


def auc_of(human, judge, n_resamples):
    ids = np.repeat([f"{place:02}" for place in range(len(human))], human.shape[1])
    grader = Grader("judge", judge.ravel().tolist())
    found = agree(ids.tolist(), human.ravel().tolist(), [grader], n_resamples=n_resamples)
    return found.graders[0].figures["AUC of the grade"]


def test_intervals_of_few_queries_hold_an_auc():
    """Percentiles of ten queries, moved outwards, held it in 89 % of these draws."""
    human, judge = graded_queries()
    true = auc_of(human, judge, 1).value
    generator = np.random.default_rng(1)
    drawn = [generator.integers(0, 60, 10) for _ in range(150)]

    found = [auc_of(human[at], judge[at], 200) for at in drawn]

    assert np.mean([each.low <= true <= each.high for each in found]) >= 0.94
