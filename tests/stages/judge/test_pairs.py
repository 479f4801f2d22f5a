import pytest

from ragforge.records import Hit, Ranking
from ragforge.stages.judge.pairs import Pair, pool, unknown_chunks


def ranking(query_id, *chunk_ids):
    hits = tuple(Hit(chunk_id=name, score=-place) for place, name in enumerate(chunk_ids))
    return Ranking(query_id=query_id, ranking=hits)


@pytest.fixture
def chunks(chunk):
    return {name: chunk(f"text of {name}", name) for name in "abcd"}


def test_the_pool_is_the_union_of_the_top_ranks(query, chunks):
    """A system is judged fairly only if its own top ranks were judged."""
    runs = [[ranking("q1", "c", "a", "d")], [ranking("q1", "a", "b", "d")]]

    pairs = pool([query()], runs, chunks, depth=2)

    assert [pair.key for pair in pairs] == ["q1/a", "q1/b", "q1/c"]


def test_a_pair_carries_its_texts(query, chunks):
    """They are all that a judge gets to see."""
    [pair] = pool([query("Why?")], [[ranking("q1", "a")]], chunks, depth=1)

    assert pair == Pair("q1", "Why?", "a", "text of a")


def test_queries_that_are_not_asked_for_are_left_out(query, chunks):
    """A run may cover a larger set."""
    runs = [[ranking("q1", "a"), ranking("other", "b")]]

    assert [pair.key for pair in pool([query()], runs, chunks, depth=5)] == ["q1/a"]


def test_unknown_chunks_are_left_out_and_told(query, chunks):
    """A run over another corpus must be noticed."""
    runs = [[ranking("q1", "a", "gone")]]

    assert [pair.chunk_id for pair in pool([query()], runs, chunks, depth=5)] == ["a"]
    assert list(unknown_chunks(runs, chunks)) == ["gone"]


def test_the_order_of_runs_changes_nothing(query, chunks):
    """Equal inputs give equal files."""
    runs = [[ranking("q1", "a", "b")], [ranking("q1", "c", "d")]]

    assert pool([query()], runs, chunks, 2) == pool([query()], runs[::-1], chunks, 2)
