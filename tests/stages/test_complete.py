import asyncio

import pytest
from fakes import Recorder

from ragforge.errors import CallError, DataError, EndpointError
from ragforge.observe import silent
from ragforge.records import Chunk
from ragforge.stages.complete import (
    Growth,
    Item,
    ProbeRanks,
    Ranked,
    beside,
    look,
    probes_of,
    ranked_items,
)
from ragforge.stages.runner import Workers
from ragforge.testing import FixedRetriever


def chunk(chunk_id, text="text"):
    return Chunk(chunk_id=chunk_id, doc_id="d", text=text)


ITEM = Item("q", "How long?", "Thirty days.", (chunk("s1", "first"), chunk("s2", "second")))
FOUND = {
    "How long?": ["a", "s1"],
    "How long?\nThirty days.": ["s1", "b"],
    "first": ["s1", "c", "d"],
    "second": ["s2", "d", "e"],
}


class Failing:
    """A retriever that fails on whatever it is asked."""

    def __init__(self, error):
        self.error = error

    async def retrieve(self, query, k):
        raise self.error


def looked(retrievers, items=(ITEM,), most=3, observer=silent):
    probes = probes_of(items, retrievers)
    return asyncio.run(look(probes, retrievers, most=most, workers=Workers(2, observer)))


def test_each_retriever_looks_for_query_answer_and_source():
    """Each finds what the others do not."""
    found = looked({"bm25": FixedRetriever(FOUND)})

    assert {one.probe: one.ranks for one in found.results} == {
        "bm25:query": {"a": 1, "s1": 2},
        "bm25:answer": {"s1": 1, "b": 2},
        "bm25:source": {"s1": 1, "s2": 1, "c": 2, "d": 2, "e": 3},
    }


def test_what_a_query_lacks_is_not_looked_for():
    """An unanswerable query has no answer that could lead to a chunk."""
    [probe] = probes_of([Item("q", "How long?", "", ())], ["bm25"])

    assert (probe.name, probe.texts) == ("bm25:query", ("How long?",))


@pytest.mark.parametrize("error", [CallError("error", "gone"), DataError("bad row"), ValueError()])
def test_a_probe_that_fails_leaves_the_others(error):
    """A query is not lost because one way of looking for its chunks failed."""
    recorder = Recorder()

    found = looked({"bm25": FixedRetriever(FOUND), "dense": Failing(error)}, observer=recorder)

    assert {one.probe for one in found.results} == {"bm25:query", "bm25:answer", "bm25:source"}
    assert sorted(one.key for one in found.failures) == [
        "dense:answer/q",
        "dense:query/q",
        "dense:source/q",
    ]


def test_an_endpoint_that_is_gone_stops_the_run():
    """Pools without what was asked for would pass for complete ones."""
    with pytest.raises(EndpointError, match="no such model"):
        looked({"dense": Failing(EndpointError("no such model"))})


class Beside:
    """Of a survey what is asked for here."""

    def neighbours(self, chunk_id):
        return {"s1": ["n0", "s2"], "s2": ["s1", "n3"]}[chunk_id]

    def near_duplicates(self, chunk_id):
        return {"s1": ["t1", "t2", "t3", "t4"], "s2": []}[chunk_id]


def test_neighbours_and_twins_of_all_sources_are_found():
    """An answer often goes on in the next chunk, or stands in another version of the page."""
    neighbours, twins = beside(ITEM, Beside(), most=3)

    assert (neighbours.probe, neighbours.ranks) == ("neighbours", {"n0": 1, "n3": 2})
    assert (twins.probe, twins.ranks) == ("twins", {"t1": 1, "t2": 2, "t3": 3})


def test_a_query_without_a_source_has_nothing_beside_it():
    """A query from a log comes without any chunk."""
    assert list(beside(Item("q", "How long?", "", ()), Beside(), most=3)) == []


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
