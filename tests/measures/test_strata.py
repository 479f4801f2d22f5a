"""Which queries a sample holds, and what each of them stands for."""

import pytest

from ragforge.errors import UsageError
from ragforge.measures.strata import (
    Design,
    Stratified,
    allocate,
    draw,
    merged_strata,
    weighted_median,
)

STRATA = {f"q{n:03}": "ab"[n % 4 == 0] for n in range(100)}
"""75 queries of a, 25 of b."""


def test_places_go_to_strata_in_proportion():
    """A sample is to look like its set: 10 of 100 with shares of 70, 20 and 10 %."""
    assert allocate({"a": 70, "b": 20, "c": 10}, 20) == {"a": 14, "b": 4, "c": 2}


def test_a_small_stratum_gets_two_places():
    """One query alone shows no spread; in proportion it would get none."""
    assert allocate({"a": 98, "b": 2}, 10) == {"a": 8, "b": 2}


def test_a_stratum_of_one_query_gets_one_place():
    """There is no second query to draw."""
    assert allocate({"a": 9, "b": 1}, 4) == {"a": 3, "b": 1}


@pytest.mark.parametrize("n", range(6, 99))
def test_a_larger_sample_takes_no_fewer_of_any_stratum(n):
    """Else what was paid for in the smaller sample would not be in the larger one."""
    sizes = {"a": 61, "b": 25, "c": 14}
    less, more = allocate(sizes, n), allocate(sizes, n + 1)

    assert all(less[name] <= more[name] for name in sizes)


def test_too_small_a_sample_is_refused():
    """Two of each of two strata are four."""
    with pytest.raises(UsageError, match="at least 4 for 2 strata"):
        allocate({"a": 5, "b": 5}, 3)


def test_the_smallest_strata_are_merged_until_a_sample_has_two_of_each():
    """Of 40, 3, 2 and 1 a sample of 4 has two of the largest and two of the rest."""
    assert merged_strata({"a": 40, "b": 3, "c": 2, "d": 1}, 4) == {"b", "c", "d"}


def test_the_same_seed_draws_the_same_queries():
    """Retrieval and measuring draw on their own."""
    assert draw(STRATA, 20, seed=7) == draw(dict(reversed(STRATA.items())), 20, seed=7)


def test_another_seed_draws_others():
    """Else the seed would be for show."""
    assert draw(STRATA, 20, seed=7) != draw(STRATA, 20, seed=8)


def test_a_sample_lies_within_a_larger_one():
    """What was asked for the sample of 20 need not be asked again for that of 40."""
    assert draw(STRATA, 20, seed=7) < draw(STRATA, 40, seed=7)


def test_new_queries_move_few_of_those_drawn():
    """Ten more of 100 take the places of some, and not of all."""
    before, now = draw(STRATA, 20, seed=7), draw({**STRATA, "new": "a"}, 20, seed=7)

    assert len(before - now) <= 1


def test_a_sample_of_as_many_as_there_are_is_the_set():
    """Nothing is drawn twice."""
    assert draw(STRATA, 100, seed=7) == STRATA.keys()


def test_each_query_stands_for_its_share_of_the_stratum():
    """One of 3 drawn of 6 stands for 2 of 10, one of 1 drawn of 4 for 4 of 10."""
    drawn = Stratified(("a", "a", "a", "b"), {"a": 6, "b": 4})

    assert drawn.weights == pytest.approx([0.2, 0.2, 0.2, 0.4])


def test_the_mean_is_that_of_the_set():
    """90 % of the set at 1 and 10 % at 0.5 are 0.95; the plain mean of the values is 0.75."""
    design = Design({**{f"a{n}": "a" for n in range(90)}, **{f"b{n}": "b" for n in range(10)}})

    mean = design.mean({"a1": 1.0, "a2": 1.0, "b1": 0.0, "b2": 1.0})

    assert mean == pytest.approx(0.95)


def test_a_stratum_without_a_value_is_in_no_mean():
    """Nothing is known of it: its share goes to the others, and it is named."""
    design = Design({"a1": "a", "a2": "a", "b1": "b", "b2": "b"})

    assert (design.mean({"a1": 0.5}), design.unseen(["a1"])) == (0.5, ["b"])


def test_a_slice_stands_for_that_slice_of_the_set():
    """Of 4 easy queries 3 are of a, and 1 of b: 3/4 of 1.0 and 1/4 of 0."""
    design = Design({f"a{n}": "a" for n in range(8)} | {f"b{n}": "b" for n in range(2)})
    easy = design.within(["a0", "a1", "a2", "b0"])

    assert easy.mean({"a0": 1.0, "b0": 0.0}) == 0.75


def test_the_median_of_a_sample_is_that_of_what_it_stands_for():
    """Two values of three quarters of the set go before four of the last quarter."""
    weights = [0.375, 0.375, *[0.0625] * 4]

    assert weighted_median([1, 2, 7, 7, 8, 9], weights) == 2
    assert weighted_median([9, 7, 8, 7, 2, 1], weights) == 7
