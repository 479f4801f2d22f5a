import numpy as np
import pytest

from ragforge.files.scan.collecting import ranks_of
from ragforge.files.scan.rows import Rows

N_ROWS = 9000


def a_query(scores):
    """Rows of one query; ranks do not look at the text they were found in."""
    nowhere = np.zeros(0, np.int64)
    return Rows(np.zeros(0, np.uint8), ["q"], np.zeros(1, np.int64), nowhere, nowhere, scores)


def ranks(rows, words, wanted):
    return ranks_of(rows, words, wanted, np.zeros(len(wanted), np.int64)).tolist()


@pytest.mark.parametrize("n_levels", [1, 2, 500])
@pytest.mark.parametrize("n_words", [1, 3])
def test_thousands_of_tied_rows_have_the_ranks_that_a_few_at_a_time_have(n_levels, n_words):
    """Many are sorted and few compared, so how many are judged must not show in a rank."""
    generator = np.random.default_rng(5)
    scores = generator.integers(n_levels, size=N_ROWS) - 0.5
    # Ids that differ in their last word alone show whether all words decide, in their order.
    words = generator.integers(3, size=(N_ROWS, n_words)).astype(np.uint64)
    words[:, -1] = generator.permutation(N_ROWS)
    rows, wanted = a_query(scores), np.arange(N_ROWS)

    few = [ranks(rows, words, some) for some in np.array_split(wanted, N_ROWS // 30)]

    assert ranks(rows, words, wanted) == [rank for some in few for rank in some]


def test_zeros_of_both_signs_tie_when_sorted():
    """They compare equal, so the id decides, however many there are."""
    scores = np.array([0.0, -0.0] * 50)
    words = np.array([[number << 56] for number in range(100)], np.uint64)

    assert ranks(a_query(scores), words, np.arange(100)) == list(range(100, 0, -1))
