"""Which of two runs is better, by all that such a claim rests on."""

import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.comparing import Power, RunPair, all_pairs, compare_pairs, couples, holm
from ragforge.measures.intervals import mean_interval
from ragforge.measures.paired import randomisation_test, t_test
from ragforge.measures.power import effect_size, shown_difference

A = [0.1, 0.4, 0.3, 0.5, 0.2, 0.6, 0.3, 0.1]
B = [0.5, 0.7, 0.6, 0.9, 0.5, 0.9, 0.8, 0.5]
SAME = [0.2, 0.3, 0.4, 0.4, 0.3, 0.5, 0.2, 0.2]


def pair(values_a, values_b, measure="nDCG@10", lower_is_better=False):
    return RunPair("a", "b", measure, values_a, values_b, lower_is_better)


def compared(values_a, values_b, **options):
    [found] = compare_pairs([pair(values_a, values_b, **options)])
    return found


def test_hand_computed_comparison():
    """The numbers that everybody reads first must be right to the digit."""
    found = compared([0.2, 0.4, 0.6], [0.5, 0.4, 0.9])

    assert (found.n, found.mean_a, found.mean_b, found.diff, found.percent) == pytest.approx(
        (3, 0.4, 0.6, 0.2, 50)
    )


def test_tests_are_those_of_paired():
    """One p value must not differ from command to command."""
    found = compared(A, B)
    test = randomisation_test(A, B, seed=0)

    assert (found.p, found.p_t, found.wins, found.ties, found.losses) == (
        test.p,
        t_test(A, B).p,
        test.wins,
        test.ties,
        test.losses,
    )


def test_effect_and_power_are_those_of_power():
    """What the queries could show is stated at the level of this comparison."""
    found = compared(A, B)
    sd = float(np.std(np.subtract(B, A), ddof=1))
    shown = shown_difference(np.subtract(B, A), 0.05)

    assert found.effect == effect_size(A, B)
    assert (found.power.sd, found.power.detectable) == pytest.approx((sd, shown.difference))
    assert found.power.n_for_half == shown.n_for_half


def test_interval_covers_bootstrap_and_student():
    """Either alone is too short somewhere: the bootstrap with few queries, Student with skew."""
    found = compared(A, B)
    each = [mean_interval(np.subtract(B, A), 0.95, method) for method in ("bca", "student")]

    assert (found.interval.low, found.interval.high) == pytest.approx(
        (min(item.low for item in each), max(item.high for item in each))
    )


def test_an_interval_holds_no_difference_that_cannot_be():
    """Student's t of three queries goes on without an end."""
    bounded = compared([0.0, 0.1, 0.0], [1.0, 0.9, 0.3]).interval
    open_ = compared([0.0, 0.1, 0.0], [1.0, 0.9, 0.3], measure="DCG@10").interval

    assert bounded.high == 1.0
    assert open_.high > 1.0


def test_p_values_are_corrected_over_the_whole_family():
    """Many comparisons find something by chance unless all of them are counted."""
    found = compare_pairs([pair(A, B), pair(A, SAME, "RR"), pair(SAME, B, "P@5")])

    assert [item.p_corrected for item in found] == holm([item.p for item in found])


def test_levels_follow_holm_until_it_stops():
    """The interval of a comparison has to speak of the same chance as its p value."""
    found = compare_pairs([pair(A, B), pair(A, SAME, "RR"), pair(A, A, "P@5")])

    assert [item.level for item in found] == pytest.approx([1 - 0.05 / 3, 1 - 0.05 / 2, 0.975])


@pytest.mark.parametrize(
    ("lower_is_better", "winner", "wins", "losses"), [(False, "B", 8, 0), (True, "A", 0, 8)]
)
def test_winner_is_the_better_one(lower_is_better, winner, wins, losses):
    """More hallucination is no win."""
    found = compared(A, B, lower_is_better=lower_is_better)

    assert (found.winner, found.wins, found.losses) == (winner, wins, losses)


def test_one_query_is_a_tie_without_interval():
    """One query tells nothing about others, however far apart the runs are."""
    found = compared([0.0], [1.0])

    assert (found.winner, found.interval, found.power, found.p) == ("TIE", None, None, 1.0)


def test_no_query_is_a_tie_without_numbers():
    """Where nothing can be compared nothing may look like a result."""
    found = compared([], [])

    assert (found.winner, found.mean_a, found.diff, found.p) == ("TIE", None, None, 1.0)


def test_equal_runs_are_ties_throughout():
    """By hand: up to 1 - 0.025 ** (1 / 8) of the queries may differ, by anything."""
    found = compared(A, A)
    unseen = 1 - 0.025 ** (1 / 8)

    assert (found.winner, found.ties, found.p) == ("TIE", 8, 1.0)
    assert (found.interval.low, found.interval.high) == pytest.approx((-unseen, unseen))


def test_differences_without_spread_have_no_power():
    """A least difference of 0.000 would say that nothing can hide from so many queries."""
    assert compared(A, A).power == Power(0.0, None, None)


def test_a_few_equal_differences_name_no_winner():
    """Six queries that all lose half a point are seen where half of all queries are so."""
    found = compared([0.5] * 6, [0.0] * 6)

    assert (found.winner, found.p) == ("TIE", 0.03125)
    assert found.interval.low < 0 < found.interval.high


def test_many_equal_differences_name_a_winner():
    """What nobody saw among hundreds is too rare to turn the mean."""
    assert compared([0.5] * 300, [0.4] * 300).winner == "A"


def test_rare_large_gains_behind_small_losses_are_reckoned_with():
    """Losses of about 0.05 in 43 queries hide that one in twenty may gain nearly a point."""
    losses = [0.05 + place / 10_000 for place in range(43)]

    assert compared([0.5] * 43, [0.5 - loss for loss in losses]).winner == "TIE"


def test_equal_differences_of_values_without_bounds_have_no_interval():
    """Nothing tells how far other queries lie where the measure sets no limit."""
    found = compared([0.5, 0.5, 0.5], [0.75, 0.75, 0.75], measure="DCG@10")

    assert (found.interval, found.winner) == (None, "TIE")


def test_intervals_at_a_higher_level_reach_further_out():
    """The corrected interval must not rule out what the one alone allows."""
    b = [value + 0.3 + place / 1000 for place, value in enumerate(SAME)]
    found = compare_pairs([pair(SAME, b), pair(A, B), pair(A, SAME)])[0]

    assert found.interval.low <= found.interval_alone.low
    assert found.interval.high >= found.interval_alone.high


def test_float_noise_is_a_tie():
    """The same hits added in another order are no win."""
    found = compared([0.1 + 0.2] * 3, [0.3] * 3)

    assert (found.ties, found.diff) == (3, 0.0)


def test_percent_of_nothing_is_none():
    """A rise from 0 is no number of percent."""
    assert compared([0.0, 0.0], [0.5, 0.5]).percent is None


@pytest.mark.slow
def test_many_comparisons_can_still_find_a_difference():
    """With 10,000 sign flips p stops at 0.0001, which 600 comparisons would never let pass."""
    rng = np.random.default_rng(0)
    low = rng.random(60)
    clear = low + 0.5 + rng.random(60) / 10
    others = [pair(low, rng.permutation(low), f"P@{n}") for n in range(1, 600)]
    found = compare_pairs([pair(low, clear), *others])

    assert found[0].winner == "B"


def test_level_stays_where_quantiles_hold():
    """A tiny alpha must not end in a message about an argument nobody gave."""
    [found] = compare_pairs([pair(A, B)], alpha=1e-9)

    assert (found.winner, found.level) == ("TIE", 0.999999)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_alpha_outside_of_its_range_is_refused(alpha):
    """A level of 0 or 1 decides nothing."""
    with pytest.raises(UsageError, match="alpha: expected a number between 0 and 1"):
        compare_pairs([pair(A, B)], alpha=alpha)


def test_values_that_are_not_aligned_are_refused():
    """Queries must be paired with themselves."""
    with pytest.raises(UsageError, match="expected values of the same queries"):
        compare_pairs([pair(A, B[:-1])])


def test_nan_is_refused():
    """A failure must not come in as a number."""
    with pytest.raises(DataError, match="expected a finite number"):
        compare_pairs([pair([0.1, float("nan")], [0.1, 0.2])])


def test_nothing_compared_gives_nothing():
    """An empty family is no error."""
    assert compare_pairs([]) == []


VALUES = st.integers(0, 20).map(lambda n: n / 20)


@st.composite
def columns(draw):
    """Draw the values of two runs over the same queries."""
    rows = draw(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30))
    return [row[0] for row in rows], [row[1] for row in rows]


@pytest.mark.slow
@given(columns())
def test_swapping_the_runs_mirrors_everything(values):
    """Who is called A must not decide who wins."""
    a, b = values
    there, back = compared(a, b), compared(b, a)

    assert (there.p, there.p_corrected, there.wins, there.losses) == (
        back.p,
        back.p_corrected,
        back.losses,
        back.wins,
    )
    assert (there.diff, there.interval.low, there.interval.high) == pytest.approx(
        (-back.diff, -back.interval.high, -back.interval.low), abs=1e-9
    )
    assert back.winner == {"A": "B", "B": "A", "TIE": "TIE"}[there.winner]


@pytest.mark.slow
@given(columns(), st.randoms(use_true_random=False))
def test_order_of_the_queries_makes_no_difference(values, rng):
    """A file sorted otherwise is the same run."""
    rows = list(zip(*values, strict=True))
    rng.shuffle(rows)
    shuffled = compared([row[0] for row in rows], [row[1] for row in rows])
    found = compared(*values)

    assert (shuffled.p, shuffled.winner) == (found.p, found.winner)
    assert (shuffled.interval.low, shuffled.interval.high) == pytest.approx(
        (found.interval.low, found.interval.high), abs=1e-12
    )


@given(columns())
def test_interval_that_contains_0_is_a_tie(values):
    """Interval and verdict are read side by side and must not disagree."""
    found = compared(*values)
    assume(found.interval.low <= 0 <= found.interval.high)

    assert found.winner == "TIE"


@given(columns())
def test_interval_holds_the_difference(values):
    """The difference found is the best guess of all."""
    found = compared(*values)

    assert found.interval.low - 1e-12 <= found.diff <= found.interval.high + 1e-12


def test_pairs_are_over_the_queries_that_both_have():
    """A query without a value in one run can be held against nothing."""
    values = {"a": {"RR": {"q2": 0.5, "q1": 1.0}}, "b": {"RR": {"q3": 0.1, "q2": 0.2}}}

    assert all_pairs(values, ["RR"]) == [RunPair("a", "b", "RR", [0.5], [0.2], False)]


def test_measures_of_which_less_is_better_are_marked():
    """The mark decides who wins."""
    values = {"a": {"x": {}, "y": {}}, "b": {"x": {}, "y": {}}}
    marks = [item.lower_is_better for item in all_pairs(values, ["x", "y"], lower_is_better={"y"})]

    assert marks == [False, True]


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [(None, [("x", "y"), ("x", "z"), ("y", "z")]), ("y", [("y", "x"), ("y", "z")])],
)
def test_a_baseline_is_held_against_each_other_run(baseline, expected):
    """Fewer comparisons leave each more power."""
    assert couples(["x", "y", "z"], baseline) == expected


def test_no_difference_is_promised_that_the_measure_cannot_have():
    """Three queries with differences 1, 0 and -1 would show one of 3.3; RR has none above 1."""
    power = compared([0.0, 0.5, 1.0], [1.0, 0.5, 0.0]).power

    assert (power.sd, power.detectable, power.n_for_half) == (1.0, None, None)


def test_where_one_unseen_query_could_outweigh_all_it_takes_more_than_the_spread_tells():
    """Of values near 0, a difference of 0.01 is far beyond their spread and still a TIE."""
    chance = random.Random(1)
    a = [chance.uniform(0.01, 0.04) for _ in range(60)]
    b = [value - chance.uniform(0.0, 0.02) for value in a]
    found = compared(a, [max(value, 0.0) for value in b], measure="TokenP@10")

    assert (found.winner, found.p < 0.001) == ("TIE", True)
    assert found.power.is_lower_bound
    assert found.power.detectable == pytest.approx(found.interval.high - found.diff)
    assert found.power.detectable > abs(found.diff)
    assert found.power.n_for_half is None


def test_the_order_of_runs_moves_no_interval():
    """Many comparisons share the least p that flips can show; Holm holds them one by one."""
    chance = random.Random(2)
    base = [chance.uniform(0.2, 0.5) for _ in range(30)]
    runs = {
        name: [value + gain + chance.uniform(0.0, 0.2) for value in base]
        for name, gain in (("w", 0.0), ("x", 0.1), ("y", 0.2), ("z", 0.4))
    }

    def intervals(names):
        pairs = [RunPair(a, b, "nDCG@10", runs[a], runs[b]) for a, b in couples(names)]
        found = compare_pairs(pairs)
        assert len({item.p for item in found}) < len(found)
        return {
            frozenset((item.a, item.b)): (
                sorted(map(abs, (item.interval.low, item.interval.high))),
                item.level,
            )
            for item in found
        }

    first = intervals("wxyz")

    for names in ("zyxw", "ywzx", "xzwy"):
        for couple, (ends, level) in intervals(names).items():
            assert ends == pytest.approx(first[couple][0], abs=1e-12)
            assert level == first[couple][1]
