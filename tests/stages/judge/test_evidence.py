"""Tests of grades that texts have because they hold the evidence of a query."""

import pytest

from ragforge.records import Evidence, Query, RetrievedText, Span
from ragforge.stages.judge.evidence import TextsInPlace

QUOTE = "The timeout is five seconds."


def evidence(start, quote=QUOTE, hop=1):
    end = start + len(quote)
    return Evidence(doc_id="d", chunk_id="c", quote=quote, start=start, end=end, hop=hop)


def query(*items):
    return Query(query_id="q", query="How long?", evidence=items)


def text(chunk_id, *spans, wording="Some words.", likeness=1.0):
    places = tuple(Span(doc_id="d", start=start, end=end) for start, end in spans)
    return RetrievedText(chunk_id=chunk_id, text=wording, places=places, likeness=likeness)


def grades(texts, asked, retrieved=()):
    found = TextsInPlace(texts).judgments(asked, retrieved)
    return {item.chunk_id: (item.grade, item.source) for item in found}


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ((90, 140), {"t": (3, "evidence")}),
        ((100, 128), {"t": (3, "evidence")}),
        ((100, 127), {"t": (3, "evidence")}),
        ((110, 140), {"t": (2, "evidence")}),
        ((120, 140), {}),
        ((128, 200), {}),
    ],
    ids=["around", "exact", "without its full stop", "most", "a rest", "beside"],
)
def test_a_text_is_graded_by_how_much_of_the_quote_it_covers(span, expected):
    """As chunks of the set are: a part of at least half is a part of the answer."""
    assert grades([text("t", span)], query(evidence(100))) == expected


def test_one_hop_of_two_is_a_part_of_the_answer():
    """The other one is needed as well."""
    asked = query(evidence(100), evidence(500, hop=2))
    texts = [text("t1", (90, 200)), text("t2", (90, 600))]

    assert grades(texts, asked) == {"t1": (2, "evidence"), "t2": (3, "evidence")}


def test_a_text_in_several_places_covers_what_stands_in_any():
    """What it says is the same wherever it stands."""
    assert grades([text("t", (0, 50), (90, 140))], query(evidence(100))) == {"t": (3, "evidence")}


def test_a_text_without_a_place_holds_a_quote_by_its_wording():
    """A document that was converted otherwise may hold it all the same."""
    texts = [text("t", wording="Summary. The  timeout\nis five seconds.")]

    assert grades(texts, query(evidence(100)), {"t"}) == {"t": (3, "evidence")}
    assert grades(texts, query(evidence(100))) == {}


def test_a_text_that_stands_there_in_part_is_judged_by_its_wording():
    """The words of the quote may be those that were rewritten."""
    asked = query(evidence(100))

    assert grades([text("t", (90, 140), likeness=0.6)], asked, {"t"}) == {}


def test_a_query_without_evidence_grades_nothing():
    """There is nothing to hold."""
    assert grades([text("t", (0, 500))], query()) == {}
