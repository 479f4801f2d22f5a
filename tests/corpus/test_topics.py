import numpy as np
import pytest

from ragforge.corpus.topics import n_topics, topic_words, topics

SUBJECTS = 4


def columns_of(n_chunks, subjects=SUBJECTS, words=8, *, scale=1.0):
    """Give each subject words of its own; chunk i is of subject i modulo their number."""
    rows = np.arange(n_chunks)
    return [
        (mine := rows[rows % subjects == word % subjects], np.full(len(mine), scale * (1 + word)))
        for word in range(subjects * words)
    ]


@pytest.mark.parametrize(
    ("n_chunks", "expected"),
    [(0, 1), (1, 1), (29, 1), (30, 3), (1000, 10), (100_000, 46), (10**6, 64), (10**8, 64)],
)
def test_number_of_topics_grows_slowly(n_chunks, expected):
    """A plan has few strata, or each would hold one query."""
    assert n_topics(n_chunks) == expected


def test_chunks_of_one_subject_share_a_topic():
    """Topics spread the queries over what the corpus is about."""
    labels = topics(columns_of(200), 200, seed=0)

    assert [len(set(labels[subject::SUBJECTS].tolist())) for subject in range(SUBJECTS)] == [1] * 4
    assert len(set(labels.tolist())) == SUBJECTS


def test_the_largest_topic_is_number_0():
    """Numbers mean the same in every report."""
    rows = np.arange(90)
    large, small = rows[rows % 3 > 0], rows[rows % 3 == 0]

    labels = topics([(large, np.ones(60)), (small, np.ones(30))], 90, seed=3)

    assert (set(labels[large].tolist()), set(labels[small].tolist())) == ({0}, {1})


def test_rounding_of_weights_changes_nothing():
    """Processors and libraries differ in the last digit."""
    noisy = [
        (rows, weights * (1 + 1e-7 * np.sin(rows))) for rows, weights in columns_of(500, words=3)
    ]

    assert topics(noisy, 500, seed=1).tolist() == topics(columns_of(500, words=3), 500, 1).tolist()


def test_a_sample_labels_the_rest(monkeypatch):
    """A million chunks are clustered by some thousands of them."""
    monkeypatch.setattr("ragforge.corpus.topics._SAMPLE", 100)
    monkeypatch.setattr("ragforge.corpus.topics._ROWS_AT_ONCE", 64)
    monkeypatch.setattr("ragforge.corpus.topics._VALUES_AT_ONCE", 7)

    labels = topics(columns_of(1000), 1000, seed=0)

    assert [len(set(labels[subject::SUBJECTS].tolist())) for subject in range(SUBJECTS)] == [1] * 4
    assert len(set(labels.tolist())) == SUBJECTS


def test_the_seed_decides():
    """Other seeds may give other topics; one seed gives the same."""
    draw = np.random.default_rng(0)
    columns = [(np.flatnonzero(draw.random(300) < 0.1), np.ones(300)) for _ in range(60)]
    columns = [(rows, weights[: len(rows)]) for rows, weights in columns]

    found = [topics(columns, 300, seed).tolist() for seed in (1, 1, 2)]

    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("columns", [[], [(np.zeros(0, np.int64), np.zeros(0))]])
def test_chunks_without_telling_words_are_of_one_topic(columns):
    """Equal documents, or all different ones, are one stratum."""
    assert set(topics(columns, 50, seed=0).tolist()) == {0}


def test_words_that_tell_are_neither_everywhere_nor_alone():
    """A word of all chunks parts none, nor does a word of one."""
    frequencies = np.array([1, 100, 11, 10, 2, 1, 5])

    assert topic_words(frequencies, 100) == [3, 4, 6]


def test_the_commonest_of_the_telling_words_are_taken(monkeypatch):
    """The work is bounded whatever the vocabulary."""
    monkeypatch.setattr("ragforge.corpus.topics._MOST_WORDS", 2)

    assert topic_words(np.array([2, 9, 3, 9, 4]), 100) == [1, 3]


def test_the_clusters_of_a_draw_are_these():
    """Every machine, and every version of numpy, must find the same."""
    rows = np.arange(60, dtype=np.uint64)
    columns = [
        (np.flatnonzero((rows * factor) % 11 < 3), 1 + (rows[(rows * factor) % 11 < 3] % 4))
        for factor in (1, 2, 3, 5, 7, 9)
    ]

    found = "".join(map(str, topics(columns, 60, seed=0)))

    assert found == "011120302000111203020001112030200011120302000111203020001112"
