from itertools import permutations, product
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.errors import DataError, UsageError
from ragforge.measures.rank_correlation import kendall_tau, rank_biased_overlap

relaxed = settings(deadline=None)

scorings = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=20)
rankings = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
scored = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 2), max_size=4)


def untied(scores):
    """Return every ranking that breaks the ties."""
    levels = sorted(set(scores.values()), reverse=True)
    groups = [permutations([i for i, s in scores.items() if s == level]) for level in levels]
    return [[item for group in choice for item in group] for choice in product(*groups)]


def test_tau_equals_scipy():
    """scipy.stats.kendalltau of scipy 1.17.1."""
    found = kendall_tau([1, 2, 3, 3, 5, 6], [2, 1, 3, 4, 4, 9])

    assert found == pytest.approx(0.7857142857142858, rel=1e-15)


def test_tau_by_hand():
    """Of the three pairs one is turned round: (2 - 1) / 3."""
    assert kendall_tau([0.1, 0.2, 0.3], [0.2, 0.1, 0.3]) == pytest.approx(1 / 3)


@given(scorings)
def test_tau_equals_counting_pairs(rows):
    """The definition, tried out."""
    signs = [((a > c) - (a < c), (b > d) - (b < d)) for (a, b) in rows for (c, d) in rows]
    left, right = sum(x * x for x, _ in signs), sum(y * y for _, y in signs)
    expected = sum(x * y for x, y in signs) / (left * right) ** 0.5 if left and right else None

    assert kendall_tau(*map(list, zip(*rows, strict=True)) if rows else ([], [])) == (
        None if expected is None else pytest.approx(expected, abs=1e-14)
    )


@given(st.lists(st.integers(0, 9), min_size=2).filter(lambda scores: len(set(scores)) > 1))
def test_an_order_agrees_with_itself(scores):
    """Exactly: 1 must print as 1."""
    assert kendall_tau(scores, scores) == 1.0
    assert kendall_tau(scores, [-score for score in scores]) == -1.0


@pytest.mark.parametrize("scores", [[], [1], [2, 2, 2]])
def test_without_an_order_there_is_no_tau(scores):
    """0 would say that two orders have nothing in common."""
    assert kendall_tau(scores, list(range(len(scores)))) is None


def test_tau_refuses_what_it_cannot_compare():
    """As the tests do."""
    with pytest.raises(UsageError, match="got 1 and 2"):
        kendall_tau([1], [1, 2])
    with pytest.raises(DataError, match="b: value 0"):
        kendall_tau([1], [nan])


def test_overlap_by_hand():
    """With p of 0.5: depth 1 shares nothing, depths 2 and 3 share all."""
    found = rank_biased_overlap(["a", "b", "c"], ["b", "a", "c"], p=0.5)

    # The factor (1 - p) / p is 1; then come the depths 2 and 3, and what lies beyond.
    assert found == pytest.approx(0.25 + 0.125 + 0.125)


def test_overlap_of_uneven_rankings_by_hand():
    """Equation 32 of the paper with s = 1, l = 3, X = 1, 1, 1 and p = 0.5."""
    found = rank_biased_overlap(["a"], ["a", "b", "c"], p=0.5)

    # All that the short ranking has is shared, so all that it lacks is taken to be.
    assert found == pytest.approx(1.0)


def test_overlap_extrapolates_the_agreement_of_the_shorter():
    """Half of what the short one has is shared: X = 0, 1, 1 and an agreement of 1 / 2."""
    found = rank_biased_overlap(["a", "b"], ["c", "a", "d"], p=0.5)

    terms = 0.25 * (1 / 2) + 0.125 * (1 / 3 + (1 / 2) * (1 / 3))
    assert found == pytest.approx(terms + 0.125 * (1 / 2))


@relaxed
@given(scored, scored, st.sampled_from([0.3, 0.9]))
def test_overlap_with_ties_is_the_mean_over_breaking_them(a, b, p):
    """A retriever that scores two chunks alike has said nothing about their order."""
    values = [rank_biased_overlap(x, y, p) for x in untied(a) for y in untied(b)]

    found = rank_biased_overlap(a, b, p)

    assert found == (pytest.approx(sum(values) / len(values), abs=1e-12) if a or b else None)


@given(rankings, rankings, st.floats(0.05, 0.99))
def test_overlap_is_symmetric_and_between_zero_and_one(a, b, p):
    """Neither ranking is the true one."""
    found = rank_biased_overlap(a, b, p)

    assert found == rank_biased_overlap(b, a, p)
    assert found is None or 0 <= found <= 1


@given(rankings.filter(bool), st.floats(0.05, 0.99))
def test_equal_rankings_overlap_fully(ranking, p):
    """However short they are."""
    assert rank_biased_overlap(ranking, ranking, p) == pytest.approx(1, abs=1e-12)


def test_overlap_of_empty_rankings_is_defined():
    """Nothing retrieved by one shares nothing; by both it cannot be said."""
    assert rank_biased_overlap([], ["a"]) == 0.0
    assert rank_biased_overlap([], {}) is None


def test_scores_and_their_order_are_the_same_ranking():
    """The two forms of a ranking."""
    assert rank_biased_overlap({"a": 3.0, "b": 2.0}, ["b", "c"]) == rank_biased_overlap(
        ["a", "b"], ["b", "c"]
    )


@pytest.mark.parametrize(
    ("a", "p", "error", "message"),
    [
        (["x", "x"], 0.9, DataError, "a: 'x' is listed more than once"),
        ({"x": nan}, 0.9, DataError, "a: 'x': score: expected a number"),
        (["x"], 1.0, UsageError, "p: expected a number between 0 and 1"),
    ],
)
def test_rankings_that_are_none_are_refused(a, p, error, message):
    """A list with an id twice has no ranks."""
    with pytest.raises(error, match=message):
        rank_biased_overlap(a, ["x"], p)
