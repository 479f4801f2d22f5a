"""nDCG corrected by people's labels, and the model that supplies its divisor."""

from dataclasses import replace

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.corrected import CorrectedMean
from ragforge.measures.corrected_ndcg import (
    Divisors,
    RunDiscounts,
    divisors,
    ideal_dcg,
    ndcg_difference,
    ndcg_level,
    refuse_labels,
    refuse_misfit,
)
from ragforge.measures.grade_model import GradedPool, fit_grades

N_QUERIES = 40


def pool(share: float = 0.3, seed: int = 1) -> tuple[GradedPool, np.ndarray]:
    """Return a pool of which people graded a share, and all grades."""
    generator = np.random.default_rng(seed)
    queries = np.repeat(np.arange(N_QUERIES), 50).astype(np.intp)
    effect = generator.normal(0, 0.8, N_QUERIES)[queries]
    judged = generator.integers(0, 4, len(queries))
    logits = np.array([-0.5, -1.0, -1.5])[:, None] + 0.9 * judged / 3 + effect
    above = generator.random(logits.shape) < 1 / (1 + np.exp(-logits))
    grades = np.cumprod(above, axis=0).sum(axis=0).astype(np.intp)
    known = np.where(generator.random(len(queries)) < share, grades, -1)
    features = np.eye(4)[judged][:, 1:]
    return GradedPool(queries, features, known, N_QUERIES, 4), grades


def mean(value: float, error: float) -> CorrectedMean:
    """Return a corrected DCG."""
    return CorrectedMean("grade means", value, error, 100.0, error, 39.0, np.full(40, value))


def test_the_ideal_ranking_takes_the_highest_grades_up_to_the_cutoff():
    """Its DCG is that of 3, 3, 1 at the first three ranks, and of 2 alone."""
    queries = np.array([0, 0, 0, 0, 1], dtype=np.intp)
    grades = np.array([1, 3, 0, 3, 2], dtype=np.intp)

    found = ideal_dcg(queries, grades, 2, 4, 3)

    assert found.tolist() == pytest.approx([3 + 3 / np.log2(3) + 1 / 2, 2.0])


def test_draws_keep_what_people_graded():
    """A model may fill holes and nothing else."""
    known, _ = pool()

    drawn = fit_grades(known).draw(np.random.default_rng(2))

    is_known = known.grades >= 0
    assert drawn[is_known].tolist() == known.grades[is_known].tolist()


def test_draws_have_the_grades_of_the_pairs_that_nobody_graded():
    """A divisor from too many high grades would be too large."""
    known, grades = pool()
    model, generator = fit_grades(known), np.random.default_rng(3)

    drawn = np.mean([model.draw(generator) for _ in range(40)], axis=0)

    hidden = known.grades < 0
    assert abs(drawn[hidden].mean() - grades[hidden].mean()) < 0.08


def test_draws_follow_queries_that_differ():
    """Where labels show many relevant texts of a query, the others are likelier too."""
    known, grades = pool()
    model, generator = fit_grades(known), np.random.default_rng(4)

    drawn = np.mean([model.draw(generator) for _ in range(40)], axis=0)

    by_query = [np.bincount(known.queries, weights=each) for each in (drawn, grades)]
    assert np.corrcoef(by_query)[0, 1] > 0.7


def test_a_pool_that_is_graded_as_a_whole_gives_the_divisor_itself():
    """Nothing is drawn, so nothing varies."""
    known, grades = pool(share=2.0)
    weights = np.zeros(len(grades))
    weights[::50] = 1.0
    ideal = ideal_dcg(known.queries, grades, N_QUERIES, 4, 10)
    dcg = np.bincount(known.queries, weights=weights * grades)

    by = divisors(
        fit_grades(known), RunDiscounts(weights, weights), 10, np.random.default_rng(5), n_draws=3
    )

    assert by.a.tolist() == pytest.approx([dcg.mean() / (dcg / ideal).mean()] * 3)


def test_a_difference_is_that_of_the_levels():
    """Where the difference of DCG is that of both levels, so is that of nDCG."""
    by = of_divisors([4.0, 4.2], [5.0, 5.2])

    found = ndcg_difference(mean(2.0, 0.1), mean(1.5, 0.1), mean(0.5, 0.05), by, mean(0.19, 0.01))

    assert found.value == pytest.approx(2.0 / 4.1 - 1.5 / 5.1)


def test_the_error_of_a_difference_has_that_of_the_divisors():
    """A model that does not know its divisors must not look sure."""
    a, b, difference = mean(2.0, 0.1), mean(1.5, 0.1), mean(0.5, 0.05)
    divided = mean(2.0 / 4.1 - 1.5 / 5.1, 0.01)
    sure, unsure = of_divisors([4.1, 4.1], [5.1, 5.1]), of_divisors([3.1, 5.1], [5.1, 5.1])

    errors = [ndcg_difference(a, b, difference, by, divided).error for by in (sure, unsure)]

    assert errors[1] > 2 * errors[0]


def test_the_error_of_a_difference_has_what_another_way_to_divide_makes_of_it():
    """A common divisor had c behind a by 0.036 [0.005, 0.068], and it was ahead by 0.134."""
    by, apart = of_divisors([4.1, 4.1], [4.1, 4.1]), mean(0.5, 0.05)

    found = ndcg_difference(mean(2.0, 0.1), mean(1.5, 0.1), apart, by, mean(-0.1, 0.05))

    assert found.error > found.value + 0.1


@pytest.mark.parametrize("spread", [0.001, 0.5])
def test_queries_like_these_are_never_surer_than_these(spread):
    """The interval by which a winner is named was narrower than that over the queries it saw."""
    by = of_divisors([4.1, 4.2], [4.1, 4.2])
    difference = replace(mean(0.5, 0.05), wide_error=spread)

    found = ndcg_difference(mean(2.0, 0.1), mean(1.5, 0.1), difference, by, mean(0.12, 0.01))

    assert found.wide_error >= max(found.error, spread / 4.6)


def test_runs_that_differ_in_queries_with_one_relevant_text_are_refused():
    """One finds more of ten, one finds the only one first: DCG and nDCG name different runs."""
    rich, n = np.arange(60) < 20, 25
    queries = np.repeat(np.arange(60), n).astype(np.intp)
    place = np.tile(np.arange(n), 60)
    grades = np.where(place < np.where(rich, 10, 1)[queries], 3, 0)
    a = np.where(rich[queries], place < 8, (place > 0) & (place < 9)).astype(float)
    b = np.where(rich[queries], (place > 5) & (place < 13), place < 8).astype(float)
    known = np.where(np.random.default_rng(1).random(len(grades)) < 0.25, grades, -1)
    model = fit_grades(GradedPool(queries, np.ones((len(grades), 1)), known, 60, 4))

    with pytest.raises(UsageError, match="compare by DCG@10 or P@10, which need no ideal"):
        refuse_misfit(model, RunDiscounts(a, b), 10, np.random.default_rng(2))


def test_labels_that_the_model_could_have_made_are_taken():
    """A check that refuses what fits would leave nothing to compare by."""
    known, grades = pool()
    generator = np.random.default_rng(7)
    of_runs = [(generator.random(len(grades)) < 0.1 + 0.05 * grades).astype(float) for _ in "ab"]

    refuse_misfit(fit_grades(known), RunDiscounts(*of_runs), 10, generator)


def of_divisors(a: list[float], b: list[float]) -> Divisors:
    """Return divisors by draw, of queries that have one ideal."""
    return Divisors(np.array(a), np.array(b), 4.6, np.full(40, 1 / 4.6), np.zeros(len(a)))


def test_a_level_allows_for_what_the_model_gets_wrong():
    """Its divisor is a model's, even where DCG is known exactly."""
    found = ndcg_level(mean(2.0, 0.0), np.array([4.0, 4.0]))

    assert found.value == 0.5
    assert found.error == pytest.approx(0.05 * 0.5)


def test_samples_too_small_for_the_model_are_refused():
    """Coverage was never seen to hold there."""
    known, _ = pool(share=0.04)

    with pytest.raises(UsageError, match="expected at least 100 labels"):
        refuse_labels(known, np.ones(len(known.grades), dtype=bool))
