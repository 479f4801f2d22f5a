import pytest

from ragforge.records import Chunk
from ragforge.stages.complete.growth import Growth, Ranked, ranked_items
from ragforge.stages.complete.probes import Item, ProbeRanks

RANKED = Ranked(
    "q",
    frozenset({"s"}),
    {
        "s": {"bm25:source": 1, "bm25:query": 9},
        "a": {"bm25:query": 1, "bm25:source": 12},
        "b": {"bm25:query": 7},
        "c": {"bm25:query": 11, "neighbours": 2},
        "d": {"bm25:query": 12},
    },
)
GROWTH = Growth(first=10, most=22)


def test_a_pool_is_what_any_probe_ranks_high_enough():
    """A chunk that one probe alone puts on top is what probes are there for."""
    assert RANKED.pool(10) == ["a", "b", "c", "s"]
    assert RANKED.pool(15, above=10) == ["d"]


def test_entries_leave_out_ranks_below_the_depth():
    """Probes can be compared only where all looked equally deep."""
    found = {entry.chunk_id: entry.probes for entry in RANKED.entries(10)}

    assert found["a"] == {"bm25:query": 1}
    assert found["c"] == {"neighbours": 2}
    assert list(found["s"]) == ["bm25:query", "bm25:source"]


def test_all_found_is_sorted_by_item():
    """What one query's probes found is no other's."""
    items = [
        Item("q", "?", "", (Chunk(chunk_id="s", doc_id="d", text="t"),)),
        Item("r", "?", "", ()),
    ]
    found = [ProbeRanks("q", "bm25:query", {"a": 1}), ProbeRanks("q", "twins", {"a": 2})]

    one, other = ranked_items(items, found)

    assert (one.sources, one.ranks) == ({"s"}, {"a": {"bm25:query": 1, "twins": 2}})
    assert (other.sources, other.ranks) == (set(), {})


@pytest.mark.parametrize(
    ("relevant", "depth", "deeper"),
    [
        ("b", 10, 15),
        ("a", 10, None),
        ("s", 10, None),
        ("", 10, None),
        ("d", 15, 20),
        ("b", 15, None),
        ("d", 22, None),
    ],
)
def test_a_pool_grows_where_its_last_ranks_held_something_new(relevant, depth, deeper):
    """What stands at the top, or was known before, is no sign that there is more below."""
    assert GROWTH.next_depth(RANKED, depth, lambda chunk_id: chunk_id == relevant) == deeper


def test_the_last_block_ends_where_pools_may_end():
    """No pair beyond the limit is paid for."""
    deep = Ranked("q", frozenset(), {"x": {"p": 20}})

    assert GROWTH.next_depth(deep, 20, lambda chunk_id: True) == 22
    assert GROWTH.depths() == [10, 15, 20, 22]


@pytest.mark.parametrize(("first", "most", "depths"), [(10, 5, [5]), (1, 3, [1, 2, 3])])
def test_any_depths_can_be_set(first, most, depths):
    """A first depth beyond the limit is the limit."""
    assert Growth(first, most).depths() == depths
