from math import inf, nan, pi

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import UsageError
from ragforge.measures.distributions import (
    noncentral_t_sf,
    normal_cdf,
    normal_quantile,
    normal_sf,
    root,
    student_quantile,
    student_sf,
)

relaxed = settings(deadline=None)
degrees = st.sampled_from([1, 2, 3.5, 9, 29, 199, 999, 6979])


# scipy.stats.t.sf(t, df) of scipy 1.17.1.
@pytest.mark.parametrize(
    ("t", "df", "expected"),
    [
        (2, 9, 0.038276411885350504),
        (1.96, 999, 0.025136731366905023),
        (0.5, 1, 0.35241638234956674),
        (12, 3, 0.0006225079003946681),
        (30, 99, 8.504249558641059e-52),
        (5, 99999, 2.871350887705353e-07),
        (-1.3, 4.5, 0.871901956027983),
    ],
)
def test_student_tails_equal_scipy(t, df, expected):
    """P values are these tails, and nobody should have to install scipy for them."""
    assert student_sf(t, df) == pytest.approx(expected, rel=2e-11)


# scipy.stats.t.ppf(p, df) of scipy 1.17.1.
@pytest.mark.parametrize(
    ("p", "df", "expected"),
    [
        (0.975, 9, 2.262157162798205),
        (0.025, 199, -1.9719565442517537),
        (0.995, 2, 9.924843200918287),
        (1e-12, 30, -11.397217523311413),
        (0.5, 7, 0.0),
    ],
)
def test_student_quantiles_equal_scipy(p, df, expected):
    """Intervals are as wide as these."""
    assert student_quantile(p, df) == pytest.approx(expected, rel=1e-12)


# scipy.stats.nct.sf(t, df, shift) of scipy 1.17.1.
@pytest.mark.parametrize(
    ("t", "df", "shift", "expected"),
    [
        (2, 9, 1.5, 0.34412408600145034),
        (1.97, 199, 2.8, 0.7962925901740405),
        (-1, 4, 1, 0.9672267046679722),
        (12.7, 1, 5, 0.3053008191234823),
    ],
)
def test_noncentral_tails_equal_scipy(t, df, shift, expected):
    """Power is read off this distribution."""
    assert noncentral_t_sf(t, df, shift) == pytest.approx(expected, abs=1e-12)


def test_one_degree_of_freedom_is_the_cauchy_distribution():
    """Its tail is known in closed form: 1 / (pi t) far out, and a quarter beyond 1."""
    assert student_sf(1.0, 1) == pytest.approx(0.25, rel=1e-14)
    assert student_sf(1e200, 1) == pytest.approx(1e-200 / pi, rel=1e-12)


def test_infinite_arguments_have_no_tail_or_all():
    """A limit is no reason to return NaN."""
    assert (student_sf(inf, 3), student_sf(-inf, 3)) == (0.0, 1.0)


@relaxed
@given(st.floats(1e-12, 1 - 1e-12), degrees)
def test_student_quantile_inverts_the_cdf(p, df):
    """Interval and test must agree on what is significant."""
    assert student_sf(-student_quantile(p, df), df) == pytest.approx(p, rel=1e-10)


@relaxed
@given(st.floats(-50, 50), degrees)
def test_tails_of_both_sides_make_one(t, df):
    """A two-sided p value doubles one of them."""
    assert student_sf(t, df) + student_sf(-t, df) == pytest.approx(1, abs=1e-14)


@relaxed
@given(st.floats(-8, 8), st.sampled_from([2, 9, 199]))
def test_without_a_shift_the_noncentral_t_is_students(t, df):
    """The two are computed in different ways, so each checks the other."""
    assert noncentral_t_sf(t, df, 0.0) == pytest.approx(student_sf(t, df), abs=1e-13)


@relaxed
@given(st.floats(1e-200, 0.5))
def test_normal_quantile_inverts_the_cdf(p):
    """Far tails too: BCa goes there."""
    assert normal_cdf(normal_quantile(p)) == pytest.approx(p, rel=1e-9)


def test_the_upper_normal_tail_does_not_cancel():
    """1 - cdf would be 0 from 8.3 standard deviations on."""
    assert normal_sf(10.0) == pytest.approx(7.619853024160527e-24, rel=1e-12)


@pytest.mark.parametrize(("low", "high"), [(0.0, 5.0), (2.0, 2.0), (1.9, 1e6)])
def test_root_finds_the_crossing(low, high):
    """Quantiles and detectable differences are found with it."""
    assert root(lambda x: x**3 - 8, low, high) == pytest.approx(2, rel=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: student_sf(1.0, 0),
        lambda: student_sf(nan, 3),
        lambda: student_quantile(1.0, 3),
        lambda: normal_quantile(0.0),
        lambda: noncentral_t_sf(inf, 3, 1.0),
    ],
)
def test_what_has_no_answer_is_refused(call):
    """NaN would come out as a p value."""
    with pytest.raises(UsageError, match="expected"):
        call()
