"""Measures corrected by people's labels."""

from dataclasses import replace

import numpy as np
import pytest

from ragforge.errors import DataError, UsageError
from ragforge.measures.corrected import (
    N_PARTS,
    LabelledPairs,
    corrected_mean,
    merged,
    refuse_sample,
)

PRIORS = np.array([0.25, 0.45, 0.65, 0.8, 0.5])


def population(n: int = 400, seed: int = 1, n_queries: int = 40) -> LabelledPairs:
    """Return pairs that are all labelled, with a judge who is often wrong."""
    generator = np.random.default_rng(seed)
    values = (generator.random(n) < 0.4).astype(float)
    judged = np.clip(np.round(2 * values + generator.normal(0, 1.2, n)), 0, 3).astype(np.intp)
    return LabelledPairs(
        queries=np.arange(n, dtype=np.intp) % n_queries,
        weights=generator.choice([-0.1, 0.1], n),
        judged=judged,
        values=values,
        strata=np.zeros(n, dtype=np.intp),
        parts=generator.integers(0, N_PARTS, n),
        n_queries=n_queries,
        priors=PRIORS,
    )


def drawn(pairs: LabelledPairs, n: int, generator: np.random.Generator) -> LabelledPairs:
    """Return the pairs with labels on a random sample only."""
    values = np.full(len(pairs.values), np.nan)
    chosen = generator.choice(len(values), n, replace=False)
    values[chosen] = pairs.values[chosen]
    return replace(pairs, values=values)


def truth_of(pairs: LabelledPairs) -> float:
    """Return the measure by the labels of all pairs."""
    return float(pairs.weights @ pairs.values) / pairs.n_queries


@pytest.mark.parametrize("method", ["grade means", "ppi++", "no judge", "people only"])
def test_labels_on_all_pairs_give_the_measure_itself(method):
    """Nothing is left to be estimated, and the interval says so."""
    pairs = population()

    found = corrected_mean(pairs, method)

    assert found.value == pytest.approx(truth_of(pairs), abs=1e-12)
    assert found.interval() == pytest.approx((found.value, found.value), abs=1e-9)


@pytest.mark.parametrize("method", ["grade means", "ppi++", "no judge", "people only"])
def test_estimates_lie_around_the_truth(method):
    """A correction that leans to one side would be another bias."""
    pairs, generator = population(), np.random.default_rng(2)

    found = [corrected_mean(drawn(pairs, 100, generator), method).value for _ in range(600)]

    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth_of(pairs)) < 4 * error


def test_a_judge_who_gives_the_highest_grade_to_all_moves_nothing():
    """What the judge says costs width, never truth."""
    pairs, generator = population(), np.random.default_rng(3)
    lenient = replace(pairs, judged=np.full(len(pairs.judged), 3, dtype=np.intp))

    found = [corrected_mean(drawn(lenient, 100, generator)).value for _ in range(600)]

    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - truth_of(pairs)) < 4 * error


def test_intervals_hold_the_truth_as_often_as_they_say():
    """An interval that holds it less often names winners that are none."""
    pairs, generator = population(), np.random.default_rng(4)

    found = [corrected_mean(drawn(pairs, 100, generator)).interval() for _ in range(600)]

    share = np.mean([low <= truth_of(pairs) <= high for low, high in found])
    assert 0.92 <= share <= 0.98


@pytest.mark.parametrize("share_wrong", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("n", [60, 120])
def test_intervals_allow_for_errors_of_a_judge_that_no_label_shows(share_wrong, n):
    """Of a judge who errs in one pair of a hundred they had no width, beside the truth."""
    pairs, generator = population(), np.random.default_rng(4)
    wrong = generator.random(len(pairs.values)) < share_wrong
    good = np.where(pairs.values > 0, 2, 0)
    judged = np.where(wrong, 2 - good, good).astype(np.intp)
    of_judge = replace(pairs, judged=judged, priors=np.array([0.0, 0.0, 1.0, 1.0, 0.5]))

    found = [corrected_mean(drawn(of_judge, n, generator)) for _ in range(200)]

    intervals = [one.interval() for one in found]
    assert np.mean([low <= truth_of(pairs) <= high for low, high in intervals]) >= 0.94
    assert min(one.error for one in found) > 0
    assert min(one.wide_error for one in found) > 0


def test_a_good_judge_makes_the_interval_shorter():
    """That is what the judge is paid for."""
    pairs, generator = population(), np.random.default_rng(5)
    good = replace(pairs, judged=(3 * pairs.values).astype(np.intp))
    sample = drawn(good, 100, generator)

    with_judge = corrected_mean(sample)
    without = corrected_mean(sample, "no judge")

    assert with_judge.error < 0.5 * without.error


def uneven(seed: int = 7) -> LabelledPairs:
    """Return pairs of queries of which some have many relevant texts and others few."""
    pairs, generator = population(seed=seed), np.random.default_rng(seed)
    shares = generator.choice([0.1, 0.9], pairs.n_queries)[pairs.queries]
    values = (generator.random(len(shares)) < shares).astype(float)
    return replace(pairs, values=values, weights=np.full(len(shares), 0.1))


def test_a_judge_that_knows_nothing_is_worth_nothing():
    """Means fitted to five of its grades look near to the labels that they were fitted to."""
    pairs, generator = population(), np.random.default_rng(12)
    blind = replace(pairs, judged=generator.integers(0, 4, len(pairs.judged)))
    samples = [drawn(blind, 60, generator) for _ in range(200)]

    by_judge = np.mean([corrected_mean(sample).error for sample in samples])
    without = np.mean([corrected_mean(sample, "no judge").error for sample in samples])

    assert 1.0 < by_judge / without < 1.05


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_labels_on_all_of_few_pairs_are_exact(n):
    """Fewer than the fitted means have nothing left to spread by, and need nothing."""
    found = corrected_mean(population(n, n_queries=min(n, 3)))

    assert found.error == 0.0


def test_labels_of_a_query_tell_of_its_other_pairs():
    """Queries differ more than grades of a judge tell, and each label says by how much."""
    pairs, generator = uneven(), np.random.default_rng(8)
    # The same labels and grades, of queries that nothing sets apart.
    blurred = replace(pairs, queries=generator.permutation(pairs.queries))
    chosen = np.isnan(drawn(pairs, 200, generator).values)
    samples = [replace(of, values=np.where(chosen, np.nan, of.values)) for of in (pairs, blurred)]

    apart, alike = map(corrected_mean, samples)

    assert apart.error < 0.8 * alike.error


def test_intervals_hold_the_truth_where_queries_differ_much():
    """What is learnt of a query from its labels must not be counted twice."""
    pairs, generator = uneven(), np.random.default_rng(9)

    found = [corrected_mean(drawn(pairs, 120, generator)) for _ in range(600)]

    ends = [mean.interval() for mean in found]
    error = np.std([mean.value for mean in found], ddof=1) / np.sqrt(len(found))
    assert 0.92 <= np.mean([low <= truth_of(pairs) <= high for low, high in ends]) <= 0.98
    assert abs(np.mean([mean.value for mean in found]) - truth_of(pairs)) < 4 * error


def test_a_label_says_nothing_of_its_own_pair():
    """Else an interval would shrink by looking at what it is held against."""
    pairs = replace(uneven(), queries=np.arange(400, dtype=np.intp), n_queries=400)

    sample = drawn(pairs, 100, np.random.default_rng(10))
    alone = replace(sample, queries=np.zeros(400, dtype=np.intp))

    assert corrected_mean(sample).error == pytest.approx(corrected_mean(alone).error, rel=0.05)


def test_tuning_never_takes_the_whole_of_the_judge():
    """Untuned, the judge's share makes intervals wider than no judge at all."""
    pairs = population()
    exact = replace(pairs, judged=(3 * pairs.values).astype(np.intp), priors=np.arange(5) / 3)

    found = corrected_mean(drawn(exact, 100, np.random.default_rng(6)), "ppi++")

    assert found.tuning is not None
    assert 0 < found.tuning < 1


def test_new_queries_are_less_certain_than_these():
    """Labels settle the queries that are there; others may be harder."""
    sample = drawn(population(), 300, np.random.default_rng(7))

    found = corrected_mean(sample)

    assert found.wide_error > found.error


def test_runs_that_agree_everywhere_differ_by_nothing():
    """No pair decides, so no label is asked for."""
    pairs = population()
    nothing = np.zeros(0, dtype=np.intp)
    none = LabelledPairs(
        nothing, np.zeros(0), nothing, np.zeros(0), nothing, nothing, pairs.n_queries, PRIORS
    )

    found = corrected_mean(none)

    assert found.value == 0.0
    assert found.interval() == (0.0, 0.0)


def test_a_stratum_without_labels_joins_its_neighbour():
    """Its pairs would count as nothing otherwise."""
    strata = np.array([0, 0, 1, 1, 2, 2, 2])
    labels = np.array([True, True, False, False, True, True, False])

    assert merged(strata, labels).tolist() == [0, 0, 1, 1, 1, 1, 1]


def test_a_last_stratum_without_labels_joins_the_one_before():
    """There is no neighbour behind it."""
    strata = np.array([0, 0, 0, 1, 1])
    labels = np.array([True, True, False, False, False])

    assert merged(strata, labels).tolist() == [0, 0, 0, 0, 0]


def test_a_sample_of_one_query_says_nothing_of_others():
    """There is no spread between queries to be seen."""
    pairs = population(n=60, n_queries=1)

    found = corrected_mean(drawn(pairs, 30, np.random.default_rng(8)))

    low, high = found.interval("queries like these")
    assert low == -np.inf
    assert high == np.inf


def test_too_few_labels_are_refused():
    """Their spread is a guess."""
    with pytest.raises(UsageError, match="14 labels on the 400 pairs that decide: expected at"):
        refuse_sample(14, 400)


def test_nearly_all_labels_are_refused():
    """The few that are left decide, and intervals of such samples are too short."""
    with pytest.raises(UsageError, match="label the 10 that are left"):
        refuse_sample(390, 400)


def test_weights_of_nothing_are_refused():
    """Such pairs decide nothing and would only look like labels."""
    pairs = population()

    with pytest.raises(DataError, match="weights that are not 0"):
        corrected_mean(replace(pairs, weights=np.zeros(len(pairs.weights))))


def test_a_grade_outside_of_the_scale_is_refused():
    """It would take the mean of another grade."""
    pairs = population()

    with pytest.raises(DataError, match="outside of its scale"):
        corrected_mean(replace(pairs, judged=pairs.judged + 3))


@pytest.mark.parametrize(("n_others", "told"), [(2, ": about 100 in all may do"), (0, "more")])
def test_a_refusal_for_rare_values_tells_how_many_labels_may_do(n_others, told):
    """Two of forty differ, so five of a hundred; nobody knows where none does."""
    values = np.full(400, np.nan)
    values[:40] = 0
    values[:n_others] = 1

    with pytest.raises(UsageError) as refused:
        corrected_mean(replace(population(), values=values))

    assert str(refused.value).endswith(told)
