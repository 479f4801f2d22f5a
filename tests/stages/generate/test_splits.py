import pytest

from ragforge.records import Pin, Query
from ragforge.stages.generate.splits import Connections, assign_splits


def query(query_id, split=None, **fields):
    return Query(query_id=query_id, query=f"What is {query_id}?", split=split, **fields)


PINNED = {"pinned": Pin(by="Ada")}


def splits(queries, documents, dev_share=0.5):
    return {item.query_id: item.split for item in assign_splits(queries, documents, dev_share)}


def test_queries_of_one_document_stay_together():
    """A passage seen in dev would else give away the answers in test."""
    documents = {f"q{n}": [f"d{n % 7}"] for n in range(70)}

    found = splits([query(f"q{n}") for n in range(70)], documents)

    by_document = {(documents[name][0], split) for name, split in found.items()}
    assert len(by_document) == 7


def test_a_query_over_two_documents_joins_their_queries():
    """The hops of one query connect what they come from."""
    pairs = [("a", "b"), ("b", "c"), ("x", "y")]
    documents = {f"{one}{other}": pair for pair in pairs for one, other in [pair]}
    singles = {name: [name] for name in "abcxy"}

    found = splits([query(name) for name in [*documents, *singles]], {**documents, **singles})

    assert len({found[name] for name in ("ab", "bc", "a", "b", "c")}) == 1
    assert len({found[name] for name in ("xy", "x", "y")}) == 1


def test_what_has_a_split_keeps_it_when_groups_grow_together():
    """An item that wandered from test to dev would have been tuned on."""
    queries = [query("a", "dev"), query("b", "test"), query("new")]

    found = splits(queries, {"a": ["a"], "b": ["b"], "new": ["a", "b"]})

    assert found == {"a": "dev", "b": "test", "new": "test"}


def test_a_new_query_follows_those_of_its_document():
    """Whatever the hash says, its neighbours have been used already."""
    found = [
        splits([query("old", split), query("new")], {"old": ["d"], "new": ["d"]})["new"]
        for split in ("dev", "test")
    ]

    assert found == ["dev", "test"]


def test_the_share_is_met_in_the_long_run():
    """A dev share that is off would starve one of the two."""
    found = splits(
        [query(f"q{n}") for n in range(2000)], {f"q{n}": [f"d{n}"] for n in range(2000)}, 0.3
    )

    share = sum(split == "dev" for split in found.values()) / 2000
    assert abs(share - 0.3) < 0.03


def test_queries_without_documents_are_groups_of_their_own():
    """Unlabelled queries of a log must not all land in one split."""
    found = splits([query(f"q{n}") for n in range(200)], {})

    assert set(found.values()) == {"dev", "test"}


def test_other_queries_change_nothing():
    """A set that grows keeps its splits even if they were lost on the way."""
    few = splits([query(f"q{n}") for n in range(20)], {f"q{n}": [f"d{n}"] for n in range(20)})
    many = splits([query(f"q{n}") for n in range(90)], {f"q{n}": [f"d{n}"] for n in range(90)})

    assert {name: many[name] for name in few} == few


def test_what_left_its_split_stays_in_none_and_connects_nothing():
    """It would else come into test, and bring its other document along."""
    queries = [
        query("a", "dev"),
        query("b", "test"),
        query("out", split_before="dev"),
        query("new"),
    ]
    documents = {"a": ["a"], "b": ["b"], "out": ["a", "b"], "new": ["a"]}

    assert splits(queries, documents) == {"a": "dev", "b": "test", "out": None, "new": "dev"}


@pytest.mark.parametrize(
    ("queries", "documents", "changed", "clashes"),
    [
        # It rests on a document of the other split now.
        ([query("a", "dev"), query("b", "test")], {"a": "x", "b": "x"}, "b", {"b": "a"}),
        ([query("a", "dev"), query("b", "test")], {"a": "x", "b": "x"}, "a", {"a": "b"}),
        # Both moved: the first by id stays.
        ([query("b", "test"), query("a", "dev")], {"a": "x", "b": "x"}, "ab", {"b": "a"}),
        # Two steps away: a - c - b.
        (
            [query("a", "dev"), query("b", "test"), query("c", "dev")],
            {"a": "x", "b": "z", "c": "xz"},
            "c",
            {"c": "b"},
        ),
        (
            [query("a", "dev"), query("b", "test"), query("c", "dev")],
            {"a": "x", "b": "z", "c": "xyz"},
            "bc",
            {"c": "b"},
        ),
        # The same split, or other documents.
        ([query("a", "dev"), query("b", "dev")], {"a": "x", "b": "x"}, "b", {}),
        ([query("a", "dev"), query("b", "test")], {"a": "x", "b": "y"}, "b", {}),
        # Connected before the change, so no news.
        ([query("a", "dev"), query("b", "test")], {"a": "x", "b": "x"}, "", {}),
        # Out of use.
        (
            [query("a", "dev", status="retired"), query("b", "test")],
            {"a": "x", "b": "x"},
            "b",
            {},
        ),
        # A pinned one stays, whoever moved; two of them are told.
        ([query("a", "dev"), query("b", "test", **PINNED)], {"a": "x", "b": "x"}, "b", {"a": "b"}),
        ([query("a", "dev", **PINNED), query("b", "test")], {"a": "x", "b": "x"}, "b", {"b": "a"}),
        (
            [query("a", "dev", **PINNED), query("b", "test", **PINNED)],
            {"a": "x", "b": "x"},
            "b",
            {"b": "a"},
        ),
        # It left its split before, and is no nearer to it or back.
        (
            [query("a", "dev"), query("b", split_before="test")],
            {"a": "x", "b": "x"},
            "b",
            {"b": "a"},
        ),
        ([query("a", "dev"), query("b", split_before="test")], {"a": "x", "b": "y"}, "b", {}),
    ],
)
def test_a_query_that_comes_to_connect_the_splits_is_named(queries, documents, changed, clashes):
    """What tunes a system on dev must not give away the answers in test."""
    assert Connections(documents, changed).clashes(queries) == clashes


def test_a_new_query_that_bridges_the_splits_is_named():
    """It would connect what was apart, whichever split it went into."""
    queries = [query("a", "dev"), query("b", "test"), query("new", "test")]
    connections = Connections({"a": "x", "b": "y", "new": "xy"}, added=["new"])

    assert connections.clashes(queries) == {"new": "a"}


def test_a_new_query_where_the_splits_met_before_is_no_news():
    """Files that were imported with splits of their own stay as they are."""
    queries = [query("a", "dev"), query("b", "test"), query("new", "test")]
    connections = Connections({"a": "x", "b": "x", "new": "x"}, added=["new"])

    assert connections.clashes(queries) == {}
