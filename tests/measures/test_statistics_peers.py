import numpy as np
import pytest
from measures.resampling import resampled_ends

from ragforge.measures.comparing import benjamini_hochberg
from ragforge.measures.distributions import noncentral_t_sf, student_quantile, student_sf
from ragforge.measures.intervals import mean_interval
from ragforge.measures.paired import randomisation_test, signed_rank_test, t_test
from ragforge.measures.rank_correlation import kendall_tau

GENERATOR = np.random.default_rng(7)
BASELINE = GENERATOR.beta(0.8, 0.6, 300)
CANDIDATE = np.clip(BASELINE + GENERATOR.normal(0.01, 0.1, 300), 0, 1)
FEW = slice(0, 14)


@pytest.fixture(scope="module")
def stats():
    """scipy.stats, which is no dependency of ours."""
    return pytest.importorskip("scipy.stats")


def mean_of_differences(a, b, axis):
    return np.mean(b - a, axis=axis)


def test_distributions_equal_scipy(stats):
    """Over degrees of freedom and tails that golden values cannot cover."""
    grid = [(t, df) for df in (1, 2, 7.5, 40, 999, 6979) for t in (0.01, 0.7, 1.96, 4, 20)]

    assert [student_sf(t, df) for t, df in grid] == pytest.approx(
        [stats.t.sf(t, df) for t, df in grid], rel=1e-11
    )
    assert [student_quantile(1 / (9 + t), df) for t, df in grid] == pytest.approx(
        [stats.t.ppf(1 / (9 + t), df) for t, df in grid], rel=1e-11
    )
    assert [noncentral_t_sf(t, df, 2.8) for t, df in grid] == pytest.approx(
        [stats.nct.sf(t, df, 2.8) for t, df in grid], abs=1e-11
    )


def test_paired_t_equals_scipy(stats):
    """The most used test."""
    theirs = stats.ttest_rel(CANDIDATE, BASELINE)
    ours = t_test(BASELINE, CANDIDATE)

    assert (ours.statistic, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)


@pytest.mark.parametrize("zeros", ["wilcox", "pratt"])
def test_signed_ranks_equal_scipy(stats, zeros):
    """Ties are those of rounded values, which both see alike."""
    differences = np.round(CANDIDATE - BASELINE, 2)
    theirs = stats.wilcoxon(differences, zero_method=zeros, method="asymptotic")
    ours = signed_rank_test(np.zeros(300), differences, zeros)

    assert (ours.statistic, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-10)


def test_exact_signed_ranks_equal_scipy(stats):
    """Without ties scipy is exact too."""
    theirs = stats.wilcoxon(CANDIDATE[FEW] - BASELINE[FEW], method="exact")

    assert signed_rank_test(BASELINE[FEW], CANDIDATE[FEW]).p == pytest.approx(theirs.pvalue)


def test_exact_randomisation_equals_scipy(stats):
    """Both try all patterns of fourteen signs."""
    theirs = stats.permutation_test(
        (BASELINE[FEW], CANDIDATE[FEW]),
        mean_of_differences,
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )

    ours = randomisation_test(BASELINE[FEW], CANDIDATE[FEW], seed=1)

    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [("bca", "BCa"), ("percentile", "percentile")])
def test_resampled_intervals_equal_scipy(stats, ours, theirs):
    """The same seed draws the same resamples."""
    expected = stats.bootstrap(
        (BASELINE,), np.mean, n_resamples=2000, method=theirs, rng=np.random.default_rng(3)
    ).confidence_interval

    found = resampled_ends(BASELINE, 3, method=ours, n_resamples=2000)

    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_student_interval_equals_scipy(stats):
    """The plain one."""
    expected = stats.t.interval(0.9, 299, BASELINE.mean(), stats.sem(BASELINE))

    found = mean_interval(BASELINE, 0.9, "student")

    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)


def test_tau_and_corrections_equal_scipy(stats):
    """With many ties."""
    a, b = np.round(BASELINE, 1), np.round(CANDIDATE, 1)

    assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
    assert benjamini_hochberg(list(BASELINE)) == pytest.approx(
        stats.false_discovery_control(BASELINE), rel=1e-12
    )
