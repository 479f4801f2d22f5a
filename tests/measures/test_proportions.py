import pytest

from ragforge.measures.rates import wilson_interval


def test_the_interval_is_wilsons():
    """The figures are those of Newcombe 1998, Statistics in Medicine 17(8), table I."""
    found = wilson_interval(81, 263)

    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_rows_of_newcombe_come_out(k, n, low, high):
    """A published table is a check that no code of this house can share an error with."""
    found = wilson_interval(k, n)

    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_all_of_all_reaches_one():
    """Rounding must not leave the end of the scale out."""
    assert wilson_interval(7, 7).high == 1.0


def test_nothing_has_no_interval():
    """A share of nothing is not 0."""
    assert wilson_interval(0, 0) is None


def test_more_than_all_is_refused():
    """A counting error must not become an interval."""
    with pytest.raises(ValueError, match="expected 0 to 3, got 4"):
        wilson_interval(4, 3)
