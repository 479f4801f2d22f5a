"""Letters of runs that were, and were not, told apart."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.measures.comparing import letters

NAMES = [f"r{n}" for n in range(6)]
PAIRS = list(combinations(NAMES, 2))


@pytest.mark.parametrize(
    ("means", "differing", "expected"),
    [
        ({}, [], {}),
        ({"x": 0.5}, [], {"x": "a"}),
        ({"x": 0.5, "y": 0.4}, [], {"x": "a", "y": "a"}),
        ({"x": 0.4, "y": 0.5}, [("x", "y")], {"x": "b", "y": "a"}),
        # Of three, only the outer two were told apart: the middle one shares with both.
        ({"x": 3.0, "y": 2.0, "z": 1.0}, [("x", "z")], {"x": "a", "y": "ab", "z": "b"}),
        (
            {"x": 3.0, "y": 2.0, "z": 1.0},
            [("x", "z"), ("x", "y"), ("y", "z")],
            {"x": "a", "y": "b", "z": "c"},
        ),
        ({"x": None, "y": 0.0}, [("x", "y")], {"x": "b", "y": "a"}),
    ],
)
def test_hand_made_tables(means, differing, expected):
    """Letters are read as in any statistics text, the best run first."""
    assert letters(means, differing) == expected


@given(st.sets(st.sampled_from(PAIRS)), st.permutations(range(6)))
def test_runs_share_a_letter_where_and_only_where_no_difference_was_found(differing, means):
    """A table that says more or less than the comparisons would mislead."""
    found = letters(dict(zip(NAMES, map(float, means), strict=True)), differing)

    assert {pair for pair in PAIRS if not set(found[pair[0]]) & set(found[pair[1]])} == differing


@given(st.sets(st.sampled_from(PAIRS)), st.permutations(range(6)))
def test_every_run_has_letters_and_the_best_the_first(differing, means):
    """A run without a letter would look as if it had not been compared."""
    of = dict(zip(NAMES, map(float, means), strict=True))
    found = letters(of, differing)

    assert (found[max(of, key=of.__getitem__)][0], all(found.values())) == ("a", True)


def test_order_of_the_pairs_makes_no_difference():
    """The same comparisons give the same table."""
    means = dict(zip(NAMES, (0.6, 0.5, 0.4, 0.3, 0.2, 0.1), strict=True))
    differing = [("r0", "r4"), ("r0", "r5"), ("r1", "r5")]

    assert letters(means, differing) == letters(means, differing[::-1])


def test_beyond_the_alphabet_come_numbers():
    """Many runs that are all apart must still be told apart."""
    names = [f"r{n}" for n in range(54)]
    found = letters({name: -n for n, name in enumerate(names)}, combinations(names, 2))

    assert (found["r0"], found["r51"], found["r53"]) == ("a", "Z", "(54)")
