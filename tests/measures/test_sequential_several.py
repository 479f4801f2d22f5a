"""Which of several runs may be the best, by as few judged pairs as that takes."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.paired import t_test
from ragforge.measures.sequential import SHARES
from ragforge.measures.sequential_several import RankedPairs, SeveralDecision

N, TEXTS, DEPTH = 60, 16, 10
DISCOUNTS = np.append(1 / np.log2(np.arange(2, DEPTH + 2)), np.zeros(TEXTS - DEPTH))


def pool(skills, seed):
    """Return the pairs of runs that rank by worth with some skill, and the grades."""
    draw = np.random.default_rng(seed)
    grades = draw.choice(4, (N, TEXTS), p=[0.6, 0.2, 0.1, 0.1])
    noise = draw.normal(size=(N, TEXTS, len(skills)))
    order = (-(grades[:, :, None] * np.array(skills) + noise)).argsort(axis=1).argsort(axis=1)
    ranks = order.reshape(-1, len(skills))
    kept = np.flatnonzero(ranks.min(axis=1) < DEPTH)
    ranks, queries = ranks[kept], np.repeat(np.arange(N), TEXTS)[kept]
    best = ranks.min(axis=1)
    held = (ranks < DEPTH).mean(axis=1)
    features = np.stack([np.ones(len(kept)), 1 / np.log2(best + 2), held], axis=1)
    places = draw.random(len(kept))
    pairs = RankedPairs(queries, DISCOUNTS[ranks], features, places, N)
    return pairs, grades.reshape(-1)[kept].astype(float)


def decide(pairs, values, shares=SHARES):
    """Return the decision, and which pairs were looked at."""
    decision = SeveralDecision(pairs, shares, np.zeros(len(values), dtype=bool))
    while True:
        wanted = decision.wanted()
        seen = np.full(len(values), np.nan)
        seen[wanted] = values[wanted]
        found = decision.look(seen)
        if found is not None:
            return found, wanted


def test_runs_far_behind_are_dropped_for_a_part_of_the_pool():
    """Five pools would be judged to see it otherwise."""
    pairs, values = pool([2.0, 2.0, 0.5, 0.2, 0.0], seed=1)

    found, wanted = decide(pairs, values)

    assert set(found.may_be_best) == {0, 1}
    assert {each.run for each in found.runs if each.beaten_by is not None} == {2, 3, 4}
    assert found.n_judged == len(wanted) < 0.75 * len(values)


def test_the_last_run_left_is_the_winner():
    """Where one is clearly best there is nothing more to tell."""
    found, _ = decide(*pool([3.0, 0.3, 0.2, 0.1], seed=2))

    assert found.may_be_best == (0,)
    assert all(each.high < 0 for each in found.runs[1:])


def test_all_pairs_give_the_differences_of_the_whole_pool():
    """Where nothing is left to be drawn nothing is estimated."""
    pairs, values = pool([1.0, 0.8, 0.6], seed=3)

    found, _ = decide(pairs, values, shares=(1.0,))

    scores = [
        np.bincount(pairs.queries, weights=pairs.discounts[:, run] * values, minlength=N)
        for run in range(3)
    ]
    best = found.runs[0].run
    for each in found.runs[1:]:
        test = t_test(scores[best], scores[each.run])
        assert each.difference == pytest.approx(test.mean_difference, abs=1e-12)
        # One pair told apart leaves one of three that may be equal.
        assert (each.beaten_by is not None) == (test.p < 0.048) or test.p > 0.048 / 3


def test_runs_that_are_alike_are_seldom_dropped():
    """One chance in twenty is shared by all pairs of runs."""
    dropped = sum(len(decide(*pool([0.5] * 5, seed=seed))[0].may_be_best) < 5 for seed in range(60))

    assert dropped <= 7  # 60 at 5 % give more in 1 of 100


def test_what_is_drawn_is_drawn_again():
    """A sample that lies within the next can be gone on with, and is paid for once."""
    pairs, values = pool([1.0, 0.9, 0.2], seed=4)
    decision = SeveralDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))
    first = decision.wanted()
    seen = np.full(len(values), np.nan)
    seen[first] = values[first]
    decision.look(seen)

    assert set(first) <= set(decision.wanted())


def test_what_only_a_dropped_run_has_is_not_asked_for():
    """Its place is told already."""
    pairs, values = pool([2.0, 2.0, 0.0], seed=5)

    found, wanted = decide(pairs, values)

    alone = np.flatnonzero((pairs.discounts[:, 2] > 0) & (pairs.discounts[:, :2].max(axis=1) == 0))
    assert found.runs[-1].beaten_by is not None
    assert len(np.intersect1d(alone, wanted)) < 0.8 * len(alone)


def test_one_run_is_refused():
    """There is nothing to hold it against."""
    pairs, values = pool([1.0], seed=6)

    with pytest.raises(UsageError, match="at least 2"):
        SeveralDecision(pairs, SHARES, np.zeros(len(values), dtype=bool))
