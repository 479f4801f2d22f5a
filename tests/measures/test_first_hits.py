"""Two runs that are read down to their first hits."""

import numpy as np
import pytest

from ragforge.errors import UsageError
from ragforge.measures.first_hits import FirstHits

N = 40


def read(lists, truth, *, by_rank=True, failed=()):
    """Return the decision and who made it, with some pairs that cannot be judged."""
    reading = FirstHits(lists, np.full(len(truth), np.nan), by_rank=by_rank)
    values = reading.values.copy()
    while True:
        for at in reading.wanted():
            values[at] = np.nan if at in failed else truth[at]
        found = reading.look(values)
        if found is not None:
            return found, reading


def drawn(seed):
    """Return two rankings of ten of sixteen pairs a query, and which are hits."""
    draw = np.random.default_rng(seed)
    lists = [
        tuple((draw.permutation(16)[:10] + 16 * query).tolist() for _ in range(2))
        for query in range(N)
    ]
    return lists, (draw.random(16 * N) < 0.25).astype(float)


def worth(ranked, truth, by_rank):
    """Return the reciprocal rank of a ranking, or whether it has a hit."""
    first = next((rank for rank, at in enumerate(ranked, 1) if truth[at]), None)
    return 0.0 if first is None else (1 / first if by_rank else 1.0)


@pytest.mark.parametrize("by_rank", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_difference_is_that_of_all_judgments(seed, by_rank):
    """What is not read does not count."""
    lists, truth = drawn(seed)
    found, reading = read(lists, truth, by_rank=by_rank)
    diffs = [worth(b, truth, by_rank) - worth(a, truth, by_rank) for a, b in lists]

    assert found.look.difference == pytest.approx(np.mean(diffs), abs=1e-12)
    assert found.look.n_judged == reading.n_judged < 0.6 * len(truth)


def test_runs_that_are_alike_are_not_judged():
    """Their difference is 0 whatever the grades are."""
    lists = [([3 * q, 3 * q + 1, 3 * q + 2],) * 2 for q in range(N)]
    found, reading = read(lists, np.ones(3 * N))

    assert (found.outcome, reading.n_judged) == ("tie", 0)


def test_success_of_the_same_texts_in_another_order_is_not_judged():
    """Either both have a hit or none has."""
    lists = [([2 * q, 2 * q + 1], [2 * q + 1, 2 * q]) for q in range(N)]
    _, reading = read(lists, np.ones(2 * N), by_rank=False)

    assert reading.n_judged == 0


def test_a_query_whose_pair_failed_is_left_out():
    """A failure is never a value."""
    lists = [([2 * q], [2 * q + 1]) for q in range(N)]
    truth = np.tile([0.0, 1.0], N)
    found, reading = read(lists, truth, failed={0})

    assert reading.failed == [0]
    assert found.look.difference == 1.0


def test_few_queries_are_refused():
    """Their spread tells nothing."""
    with pytest.raises(UsageError, match="at least 10"):
        FirstHits([([0], [1])], np.full(2, np.nan), by_rank=True)
