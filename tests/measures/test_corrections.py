import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.errors import UsageError
from ragforge.measures.comparing import benjamini_hochberg, holm

families = st.lists(st.floats(0, 1), max_size=20)


def test_holm_by_hand():
    """Ascending, times 4, 3, 2 and 1; the third is lifted to the second."""
    assert holm([0.03, 0.01, 0.02, 0.025]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_benjamini_hochberg_equals_scipy():
    """scipy.stats.false_discovery_control of scipy 1.17.1."""
    found = benjamini_hochberg([0.01, 0.04, 0.03, 0.005, 0.8])

    assert found == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.8], rel=1e-12)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
@pytest.mark.parametrize("p_values", [[], [0.04], [0.0, 0.0], [1.0, 1.0, 1.0]])
def test_small_families_stay_as_they_are(adjust, p_values):
    """One test needs no correction, and certainty stays certain."""
    assert adjust(p_values) == p_values


@given(families, st.sampled_from([holm, benjamini_hochberg]))
def test_adjusted_values_keep_the_order_and_rise(p_values, adjust):
    """A measure must not overtake another one by being corrected."""
    adjusted = adjust(p_values)

    in_order = [a for _, a in sorted(zip(p_values, adjusted, strict=True))]
    assert in_order == sorted(in_order)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))


@given(families)
def test_holm_is_between_benjamini_hochberg_and_bonferroni(p_values):
    """It bounds more than the former and rejects more than the latter."""
    rows = zip(p_values, benjamini_hochberg(p_values), holm(p_values), strict=True)

    assert all(bh <= h + 1e-15 <= min(1, len(p_values) * p) + 1e-14 for p, bh, h in rows)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_what_is_no_p_value_is_refused(adjust, p):
    """NaN has no place in an order."""
    with pytest.raises(UsageError, match="p value 1: expected a number from 0 to 1"):
        adjust([0.5, p])
