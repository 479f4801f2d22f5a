import pytest

from ragforge.records import Chunk, Evidence, Measured, Query
from ragforge.stages.generate.statistics import (
    funnel_step,
    lexical_overlap,
    overlaps,
    query_lengths,
    rank_counts,
    share_rows,
    spread,
    total_variation,
)

CHUNK = Chunk(
    chunk_id="c",
    doc_id="d",
    text="Parcels are sent from the warehouse in Lyon.",
    heading_path=("Shipping",),
)


def query(text, **more):
    return Query(query_id="q", query=text, source_chunk_ids=("c",), **more)


def test_a_step_tells_what_it_stopped_most_often_first():
    """The first reason is the one worth working on."""
    step = funnel_step("rules", "candidates", 10, {"deictic": 1, "copied": 3})

    assert (step.n_passed, list(step.reasons)) == (6, ["copied", "deictic"])


def test_a_step_that_nothing_came_to_has_no_interval():
    """A share of nothing is not 0."""
    step = funnel_step("checks", "candidates", 0, {})

    assert (step.n, step.low, step.high) == (0, None, None)


def test_shares_hold_what_was_wanted_and_what_came_unwanted():
    """A type that was relaxed to fact has to be seen as missing."""
    rows = share_rows("type", ["fact", "fact", "why", "list"], {"fact": 0.5, "multi_hop": 0.5})

    found = [(row.name, row.n, row.target) for row in rows]
    assert found == [("fact", 2, 0.5), ("multi_hop", 0, 0.5), ("list", 1, 0.0), ("why", 1, 0.0)]


def test_the_variation_is_the_share_that_is_elsewhere():
    """Half of the queries are not of the kinds that were wanted."""
    rows = share_rows("type", ["fact", "fact", "why", "list"], {"fact": 0.5, "multi_hop": 0.5})

    assert total_variation(rows) == pytest.approx(0.5)


def test_margins_without_a_plan_do_not_vary_from_it():
    """Groups of documents are shown, not planned by a share."""
    assert total_variation(share_rows("group", ["a", "b"], {})) == 0.0


def test_overlap_counts_content_words_of_query_in_chunk_and_titles():
    """Words such as `the` stand in every text, and titles are searched too."""
    found = lexical_overlap(query("Where is the warehouse for shipping parcels to Spain?"), CHUNK)

    assert found == pytest.approx(3 / 4)


def test_a_query_without_content_words_has_no_overlap():
    """0 would pull the median down for nothing."""
    assert lexical_overlap(query("Who are you?"), CHUNK) is None


def test_unanswerable_queries_have_no_overlap():
    """Their chunk does not answer them."""
    found = overlaps([query("What is in the warehouse?", answerable=False)], lambda name: CHUNK)

    assert found == []


def test_a_follow_up_is_taken_as_it_stands_alone():
    """`And from where?` shares no word with anything."""
    follow_up = query("And from where?", standalone="From which warehouse are parcels sent?")

    assert overlaps([follow_up], lambda name: CHUNK) == [1.0]


def test_lengths_count_ideographs_one_by_one():
    """Scripts without blanks would else have queries of one word."""
    assert query_lengths(["价格是多少", "How much is it?"]) == [5.0, 4.0]


def test_quartiles_of_nothing_are_nothing():
    """No real queries were given."""
    assert spread([]) is None


def test_ranks_fall_into_bands_and_unmeasured_queries_into_none():
    """A query whose rank nobody looked at is not one whose evidence is hard to find."""
    evidence = (Evidence(doc_id="d", chunk_id="c", quote="x"),)
    ranks = [1, 2, 10, 11, None]
    queries = [
        query("Why?", evidence=evidence, measured=Measured(bm25_rank=rank, depth=20))
        for rank in ranks
    ]
    unmeasured = [query("Why?"), query("Why?", measured=Measured())]

    assert rank_counts([*queries, *unmeasured]) == {"1": 1, "2-3": 1, "4-10": 1, "below": 2}
