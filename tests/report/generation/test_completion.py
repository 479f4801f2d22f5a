import json

import pytest

from ragforge.evaluating.completion import PooledItem, summarise_completion
from ragforge.evaluating.formatting import MISSING
from ragforge.records import PoolEntry
from ragforge.report.generation import completion_json, completion_text


def entry(chunk_id, **probes):
    named = {name.replace("_", ":"): rank for name, rank in probes.items()}
    return PoolEntry(query_id="q", chunk_id=chunk_id, probes=named)


def item(entries, grades, query_id="q1", *, answerable=True, depth=10):
    return PooledItem(query_id, answerable, depth, frozenset({"s"}), entries, grades)


ENTRIES = [
    entry("s", bm25_query=1, bm25_source=1),
    entry("a", bm25_query=2, dense_query=1),
    entry("b", bm25_source=3),
    entry("c", bm25_query=4),
]


@pytest.fixture
def summary():
    """Three queries: one with two relevant chunks beside its source, one without, one with none."""
    return summarise_completion(
        [
            item(ENTRIES, {"s": 3, "a": 2, "b": 3, "c": 0, "far": 2}),
            item(ENTRIES, {"s": 3, "a": 1, "b": 0}, "q2", depth=15),
            item(ENTRIES, {"a": 0, "b": 0, "c": 2}, "q3\x1b", answerable=False),
        ],
        n_calls=6,
    )


def test_chunks_beyond_the_source_are_counted(summary):
    """They are what a set with one chunk a query marks as wrong."""
    assert (summary.others_mean, summary.others_high) == (1.0, 1.5)
    assert summary.several_share == 0.5
    assert summary.grades == (4, 1, 2, 3)
    assert (summary.n_pairs, summary.n_ungraded) == (12, 2)
    assert summary.depths == ((10, 2), (15, 1))


def test_each_probe_is_shown_for_what_it_adds(summary):
    """A probe whose finds others have too can be left out."""
    found = {one.probe: (one.n_found, one.n_only) for one in summary.probes}

    assert found == {"bm25:query": (1, 0), "bm25:source": (1, 1), "dense:query": (1, 0)}


def test_the_lower_estimate_counts(summary):
    """Both are too high, as probes find alike."""
    assert summary.by_all.share == 1.0
    assert summary.by_two.share == pytest.approx(2 / 3)
    assert summary.at_most is summary.by_two


def test_a_relevant_chunk_that_no_pool_holds_is_told(summary):
    """It shows a miss that no estimate is needed for."""
    assert summary.n_outside == 1
    assert "known from elsewhere that no pool holds: 1" in completion_text(summary)


def test_an_unanswerable_query_that_is_answered_is_a_conflict(summary):
    """A system that answers it would be marked down for being right."""
    assert summary.conflicts == ("q3\x1b",)
    assert r"unanswerable, yet the corpus answers: q3\x1b" in completion_text(summary)


def test_the_text_says_what_is_missing(summary):
    """A reader must see how far the judgments can be taken for complete."""
    text = completion_text(summary)

    assert "pools: 3 queries, 12 chunks (4.0 each), 2 without a grade; 2.0 calls a query" in text
    assert "relevant beyond the source: 1.00 to 1.50 a query; 50 % of 2 queries" in text
    assert "completeness: at most 0.67 of the relevant chunks are in the pools" in text
    assert "queries by depth of the pool 10: 2, 15: 1" in text


def test_enough_queries_give_an_interval():
    """Ten queries say more than one."""
    both = PoolEntry(query_id="q", chunk_id="d", probes={"bm25:query": 1, "bm25:source": 1})
    entries, grades = [*ENTRIES, both], {"s": 3, "a": 2, "b": 3, "d": 3}
    items = [item(entries[: 3 + at % 3], grades, f"q{at}") for at in range(10)]

    summary = summarise_completion(items, n_calls=9)

    assert summary.low < summary.completeness < summary.high
    assert f"at most {summary.completeness:.2f} [{summary.low:.2f}," in completion_text(summary)


def test_nothing_found_is_said_so():
    """A share of nothing would read as a finding."""
    text = completion_text(summarise_completion([item([], {})], n_calls=0))

    assert "completeness: cannot be told" in text
    assert "relevant beyond the source: 0.00 a query" in text


def test_no_items_are_no_error():
    """A set may have no query of the wanted kind."""
    summary = summarise_completion([], n_calls=0)

    assert summary.others_mean is None
    assert f"relevant beyond the source: {MISSING} a query" in completion_text(summary)


def test_json_holds_all_figures(summary):
    """A pipeline reads these and nothing else."""
    found = json.loads(json.dumps(completion_json(summary), allow_nan=False))

    assert found["grades"] == {"0": 4, "1": 1, "2": 2, "3": 3}
    assert found["depths"] == {"10": 2, "15": 1}
    assert found["by_two"]["share"] == found["completeness"] == pytest.approx(2 / 3)
    assert (found["low"], found["high"]) == (None, None)
    assert found["conflicts"] == ["q3\x1b"]
