from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.paired import (
    PairedTest,
    enumerated_p,
    lattice_p,
    randomisation_test,
    sampled_p,
    signed_rank_test,
    signed_ranks,
    t_test,
)

relaxed = settings(deadline=None, max_examples=60)

BASELINE = [0.31, 0.52, 0.48, 0.90, 0.15, 0.66, 0.73, 0.05, 0.58, 0.81, 0.27, 0.44]
CANDIDATE = [0.40, 0.50, 0.61, 0.97, 0.30, 0.63, 0.79, 0.16, 0.70, 0.80, 0.45, 0.49]
FAR = [n * 37 % 101 / 100 for n in range(200)]
OTHER = [(n * 53 + 11) % 97 / 100 for n in range(200)]

fifths = st.integers(0, 5).map(lambda n: n / 5)
reals = st.floats(0, 1).map(lambda x: round(x, 9))
pairs = st.lists(st.tuples(fifths, fifths), min_size=1, max_size=60) | st.lists(
    st.tuples(reals, reals), min_size=1, max_size=60
)


def randomise(baseline, candidate):
    return randomisation_test(baseline, candidate, seed=5, n_permutations=500)


def pratt(baseline, candidate):
    return signed_rank_test(baseline, candidate, "pratt")


TESTS = [t_test, signed_rank_test, pratt, randomise]
tests = st.sampled_from(TESTS)


def flipped(sizes, observed):
    """Return the share of sign patterns whose sum is as far out as the observed one."""
    sums = [
        abs(sum(s * x for s, x in zip(signs, sizes, strict=True)))
        for signs in product([-1, 1], repeat=len(sizes))
    ]
    return sum(s >= abs(observed) - 1e-9 for s in sums) / len(sums)


# scipy 1.17.1: ttest_rel, wilcoxon(method="exact") and permutation_test(permutation_type="samples",
# n_resamples=inf) of CANDIDATE and BASELINE.
@pytest.mark.parametrize(
    ("test", "p"),
    [
        (t_test, 0.002920792903318115),
        (signed_rank_test, 0.0068359375),
        (randomise, 0.00537109375),
    ],
)
def test_p_values_equal_scipy(test, p):
    """Nobody should have to install scipy for a p value."""
    assert test(BASELINE, CANDIDATE).p == pytest.approx(p, rel=1e-12)


# scipy.stats.wilcoxon(round(OTHER - FAR, 2), zero_method=…, method="asymptotic") of scipy 1.17.1.
@pytest.mark.parametrize(
    ("zeros", "statistic", "p"),
    [("wilcox", 9375.0, 0.4796292341911631), ("pratt", 9470.0, 0.4794994679796696)],
)
def test_signed_ranks_of_many_queries_equal_scipy(zeros, statistic, p):
    """Ties and zeros both correct the variance; float noise must not break the ties."""
    found = signed_rank_test(FAR, OTHER, zeros)

    assert (found.statistic, found.p) == pytest.approx((statistic, p), rel=1e-12)


def test_t_by_hand():
    """Differences 1, 2, 3: mean 2, standard deviation 1, so t is 2 times the root of 3."""
    found = t_test([0, 0, 0], [1, 2, 3])

    assert found == PairedTest(
        "paired t", pytest.approx(12**0.5), pytest.approx(0.07417990022744853), 2.0, 3, 3, 0, 0
    )


def test_randomisation_by_hand():
    """Of the eight sums of ±1 ±2 ±3 only 6 and -6 are as far out as 6."""
    found = randomisation_test([0, 0, 0], [1, 2, 3], seed=1)

    assert found == PairedTest("randomisation, exact", 2.0, 0.25, 2.0, 3, 3, 0, 0)


def test_signed_ranks_by_hand():
    """Sizes 1, 1, 2 have the ranks 1.5, 1.5, 3; with a zero before them all go one up."""
    differences = np.array([-1.0, 2.0, 0.0, 1.0])

    plain, with_zero = signed_ranks(differences), signed_ranks(differences, "pratt")

    assert (plain.positive, plain.negative, plain.ranks.tolist()) == (4.5, 1.5, [1.5, 1.5, 3.0])
    assert (with_zero.positive, with_zero.negative) == (6.5, 2.5)


def test_wins_ties_and_losses_are_counted():
    """They say in words of queries what the mean says in points."""
    found = t_test([0.5, 0.3, 0.2, 0.9], [0.5, 0.1 + 0.2, 0.4, 0.1])

    assert (found.wins, found.ties, found.losses) == (1, 2, 1)


def test_successes_get_the_binomial_test():
    """60 wins against 40 losses: scipy.stats.binomtest(40, 100).pvalue of scipy 1.17.1."""
    baseline, candidate = [0] * 60 + [1] * 40, [1] * 60 + [0] * 40

    found = randomisation_test(baseline, candidate, seed=1)

    assert found.method == "randomisation, exact"
    assert found.p == pytest.approx(0.05688793364098089, rel=1e-11)


def test_exact_ranks_with_ties_equal_enumeration():
    """Tables of the statistic assume that no sizes are tied; grades tie them all the time."""
    candidate = [0.2, 0.4, 0.4, -0.2, 0.6, 0.2, -0.4, 0.8]
    ranks = [2, 5, 5, 2, 7, 2, 5, 8]

    found = signed_rank_test([0.0] * 8, candidate)

    assert found.p == flipped(ranks, sum(ranks) - 2 * (2 + 5))


@relaxed
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.data())
def test_three_ways_of_flipping_agree(sizes, data):
    """Counting, enumeration and sampling are three programs for one number."""
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=9, max_size=9))
    observed = sum(s * x for s, x in zip(signs, sizes, strict=False))
    expected = flipped(sizes, observed)
    array = np.array(sizes)

    assert lattice_p(array, observed) == pytest.approx(expected, rel=1e-12)
    assert enumerated_p(array * 0.1, observed * 0.1) == pytest.approx(expected, rel=1e-12)
    # Five standard deviations of 2,000 coins.
    assert sampled_p(array * 0.1, observed * 0.1, 2000, 1) == pytest.approx(expected, abs=0.056)


def test_sampled_p_approaches_the_exact_one():
    """300 queries on a lattice, where the exact value is known too."""
    generator = np.random.default_rng(4)
    cells = generator.integers(-5, 6, 300)
    sizes, observed = np.abs(cells), int(cells.sum())

    found = sampled_p(sizes / 5, observed / 5, 400_000, 1)

    assert found == pytest.approx(lattice_p(sizes, observed), rel=0.02)


def test_sampled_p_is_never_zero():
    """No number of random patterns proves that none is as far out: Phipson and Smyth 2010."""
    generator = np.random.default_rng(4)
    candidate = generator.random(500)

    found = randomisation_test(np.zeros(500), candidate, seed=1, n_permutations=999)

    assert (found.method, found.p) == ("randomisation, 999 sign flips", 0.001)


def test_seed_decides_the_sampled_p():
    """The stream of PCG64 is kept by numpy, so the value below holds on every machine."""
    generator = np.random.PCG64(8).random_raw(200) / 2**64
    baseline, candidate = generator[:100], generator[100:]

    found = [randomisation_test(baseline, candidate, seed=seed).p for seed in (1, 1, 2)]

    assert found == [0.12688731126887312, 0.12688731126887312, 0.12708729127087293]


def test_null_p_values_are_uniform():
    """Of 400 tests without a difference about 20 are significant at 5 %; four deviations more."""
    generator = np.random.default_rng(12)

    for test in TESTS:
        p_values = [test(*generator.beta(0.8, 0.6, (2, 40))).p for _ in range(400)]
        assert 4 <= sum(p <= 0.05 for p in p_values) <= 38


@relaxed
@given(pairs, tests)
def test_swapping_the_runs_mirrors_the_result(rows, test):
    """Which run is called the baseline is no evidence."""
    baseline, candidate = zip(*rows, strict=True)

    there, back = test(baseline, candidate), test(candidate, baseline)

    assert back.p == there.p
    assert back.mean_difference == -there.mean_difference
    assert (back.wins, back.ties, back.losses) == (there.losses, there.ties, there.wins)


@relaxed
@given(pairs, tests, st.randoms(use_true_random=False))
def test_order_of_queries_makes_no_difference(rows, test, random):
    """Not even with random patterns."""
    shuffled = random.sample(rows, len(rows))

    assert test(*zip(*shuffled, strict=True)) == test(*zip(*rows, strict=True))


@relaxed
@given(pairs, tests, st.sampled_from([0.25, 8.0]))
def test_scaling_changes_no_p_value(rows, test, factor):
    """Percent or share."""
    baseline, candidate = np.array(rows).T

    expected = test(baseline, candidate).p
    assert test(baseline * factor, candidate * factor).p == pytest.approx(expected, rel=1e-9)


@relaxed
@given(pairs, tests)
def test_p_values_lie_between_zero_and_one(rows, test):
    """And wins, ties and losses are all queries."""
    found = test(*zip(*rows, strict=True))

    assert 0 <= found.p <= 1
    assert found.wins + found.ties + found.losses == found.n == len(rows)


@relaxed
@given(st.lists(st.tuples(fifths, fifths), min_size=1, max_size=10))
def test_randomisation_equals_enumeration(rows):
    """The definition, tried out."""
    baseline, candidate = zip(*rows, strict=True)
    cells = [round(5 * (b - a)) for a, b in rows]

    expected = flipped(cells, sum(cells))
    assert randomise(baseline, candidate).p == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5, 0.0], [0.1] * 300])
def test_no_difference_is_no_evidence(test, values):
    """A run compared with itself must not crash, and its p value is 1."""
    found = test(values, values)

    assert (found.p, found.wins, found.ties, found.losses) == (1.0, 0, len(values), 0)
    assert found.mean_difference == (0.0 if values else None)


@pytest.mark.parametrize(
    ("test", "p"), [(t_test, 1.0), (signed_rank_test, 1.0), (pratt, 1.0), (randomise, 1.0)]
)
def test_one_query_is_no_evidence(test, p):
    """Either sign was as likely."""
    assert test([0.0], [0.7]).p == p


@pytest.mark.parametrize(
    ("test", "p"), [(t_test, 0.0), (signed_rank_test, 0.125), (pratt, 0.125), (randomise, 0.125)]
)
def test_equal_differences_have_defined_p_values(test, p):
    """The t statistic has no finite value there; the others count sign patterns."""
    assert test([0.1, 0.2, 0.3, 0.4], [0.4, 0.5, 0.6, 0.7]).p == p


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("scale", [1e-300, 1e99])
def test_extreme_values_raise_no_warning(test, scale):
    """Warnings are errors here."""
    baseline, candidate = np.array([BASELINE, CANDIDATE]) * scale

    assert test(baseline, candidate).p == pytest.approx(test(BASELINE, CANDIDATE).p, rel=1e-9)


@pytest.mark.parametrize("test", TESTS)
def test_bad_values_are_refused(test):
    """A NaN would make the p value NaN, and other queries would be paired."""
    with pytest.raises(DataError, match="candidate: value 0"):
        test([0.5, 0.5], [float("nan"), 0.5])
    with pytest.raises(UsageError, match="expected values of the same queries, got 1"):
        test([0.5], [0.5, 0.5])


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 1, "n_permutations": 0}])
def test_random_patterns_need_a_seed_and_a_number(wrong):
    """The message names what is allowed."""
    with pytest.raises(UsageError, match="expected"):
        randomisation_test(np.zeros(99), np.random.default_rng(1).random(99), **wrong)


def test_zeros_are_treated_in_a_known_way():
    """A typing mistake must not choose the other."""
    with pytest.raises(UsageError, match="there are: wilcox, pratt"):
        signed_rank_test([0], [1], "prat")


def test_sums_that_are_tied_but_for_float_noise_count_as_so_far_out():
    """Reciprocal ranks are fractions; a peer that misses ties gives another p for the same runs."""
    draw = np.random.default_rng(0)
    for _ in range(60):
        n = int(draw.integers(5, 19))
        ranks = draw.integers(1, 8, (2, n))
        cells = 420 // ranks[1] - 420 // ranks[0]
        exact = lattice_p(np.abs(cells).astype(np.int64), int(cells.sum()))

        found = randomisation_test(1 / ranks[0], 1 / ranks[1], seed=0)

        assert found.p == pytest.approx(exact, abs=1e-12)


def test_runs_are_paired_by_query_where_values_are_by_query():
    """Of two runs that failed on one query each, values in order were of other queries."""
    baseline, candidate = {"q1": 0.2, "q3": 1.0}, {"q2": 0.2, "q3": 0.4}

    found = t_test(baseline, candidate)

    assert (found.n, found.mean_difference, found.losses) == (1, -0.6, 1)
    with pytest.raises(UsageError, match="by query for both, or for neither"):
        t_test(baseline, [0.2, 0.4])
