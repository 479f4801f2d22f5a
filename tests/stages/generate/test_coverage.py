from ragforge.corpus.survey import ChunkCard
from ragforge.stages.generate.statistics import Covered, Missed, coverage


def card(chunk_id, doc_id="d", duplicate_of="", askable=True):
    """Make a card."""
    return ChunkCard(chunk_id, doc_id, "", 0, 0, duplicate_of or chunk_id, askable)


def test_each_chunk_counts_once_under_one_reason():
    """The figures must add up to the corpus, or nobody can trust them."""
    cards = [
        card("a"),
        card("b"),
        card("c", "e"),
        card("d", "e", duplicate_of="a"),
        card("e", "f", askable=False),
    ]

    found = coverage(cards, tried={"a", "b"}, covered={"a"})

    assert found.chunks == Covered(
        n=5,
        n_covered=1,
        missed={
            "rejected": Missed(1, ["b"]),
            "not reached": Missed(1, ["c"]),
            "near-duplicate": Missed(1, ["d (as a)"]),
            "too short": Missed(1, ["e"]),
        },
    )


def test_a_document_is_covered_by_any_of_its_chunks():
    """One query about a page is what makes the page part of the set."""
    found = coverage([card("a"), card("b"), card("c", askable=False)], {"a"}, {"a"})

    assert found.documents == Covered(n=1, n_covered=1)


def test_a_document_counts_under_what_came_nearest_to_a_query():
    """That a page was tried in vain says more than that one of its lines is short."""
    cards = [
        card("a", "tried", askable=False),
        card("b", "tried"),
        card("c", "waiting", duplicate_of="b"),
        card("d", "waiting"),
        card("e", "copy", duplicate_of="b"),
        card("f", "copy", askable=False),
    ]

    found = coverage(cards, tried={"b"}, covered=set())

    assert {reason: missed.examples for reason, missed in found.documents.missed.items()} == {
        "near-duplicate": ["copy"],
        "rejected": ["tried"],
        "not reached": ["waiting"],
    }


def test_a_second_hop_covers_its_chunk():
    """A query written from two chunks asks about both, be the second a near-duplicate."""
    found = coverage([card("a"), card("b", duplicate_of="a")], {"a", "b"}, {"a", "b"})

    assert found.chunks == Covered(n=2, n_covered=2)


def test_twenty_examples_are_kept_of_a_reason():
    """A corpus of a million chunks must not fill the report with ids."""
    found = coverage((card(f"c{number:03}") for number in range(500)), set(), set())

    missed = found.chunks.missed["not reached"]
    assert missed.n == 500
    assert missed.examples == [f"c{number:03}" for number in range(20)]


def test_an_empty_corpus_is_covered_by_nothing():
    """Zero of zero is no error here; that there is no corpus is said elsewhere."""
    assert coverage([], set(), set()).documents == Covered()
