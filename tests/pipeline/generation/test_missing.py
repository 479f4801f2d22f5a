from collections import Counter

import pytest

from ragforge.config import GenerateSettings
from ragforge.pipeline.generation.rounds import missing_cells
from ragforge.stages.generate.quotas import make_cells


def plan(n, **settings):
    return make_cells(GenerateSettings(n=n, **settings), 0)


def types(cells):
    return Counter(cell.type for cell in cells)


def test_all_are_missing_at_first():
    """A set that is new fills nothing."""
    assert missing_cells(plan(10), []) == plan(10)


def test_none_is_missing_where_all_are_filled():
    """The same number again adds nothing."""
    assert missing_cells(plan(10), plan(10)) == []


@pytest.mark.parametrize("before", [1, 3, 6, 9, 40])
def test_a_grown_set_has_the_types_of_its_plan(before):
    """What was there counts for the shares, so that they come near those that were asked for."""
    whole = plan(100)
    missing = missing_cells(whole, plan(before))

    assert len(missing) == 100 - before
    assert types([*missing, *plan(before)]) == types(whole)


def test_a_language_comes_about_as_often_as_its_share():
    """A set for two markets that grows in one of them only is no set for two."""
    both = ("de=50", "en=50")
    missing = missing_cells(plan(40, language=both), plan(20, language=both))

    assert Counter(cell.language for cell in missing)["de"] == pytest.approx(10, abs=1)


def test_what_the_plan_does_not_want_counts_as_well():
    """The number that was asked for is the number that is delivered."""
    missing = missing_cells(plan(10, types=("why=100",)), plan(4, types=("list=100",)))

    assert missing == plan(10, types=("why=100",))[:6]
