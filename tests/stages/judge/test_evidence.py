"""Tests of grades that texts have because they hold the evidence of a query."""

import pytest

from ragforge.records import Chunk, Evidence, Query, RetrievedText, Span
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


def test_a_text_with_another_number_or_operator_holds_no_quote():
    """Its letters are the same."""
    quote = "The timeout is <= 1.50 seconds, or 100"
    others = [
        quote.replace("<=", ">="),
        quote.replace("1.50", "150"),
        f"{quote}5",
        quote.replace("<= ", "<= -"),
    ]
    texts = [
        text("same", wording=f"So: **{quote.upper()}**."),
        *(text(f"placed {n}", (900, 950), wording=one) for n, one in enumerate(others)),
        *(text(f"lost {n}", wording=one) for n, one in enumerate(others)),
    ]

    found = grades(texts, query(evidence(100, quote)), {each.chunk_id for each in texts})
    assert found == {"same": (3, "evidence")}


def test_a_text_that_stands_there_in_part_is_judged_by_its_wording():
    """The words of the quote may be those that were rewritten."""
    asked = query(evidence(100))

    assert grades([text("t", (90, 140), likeness=0.6)], asked, {"t"}) == {}


def test_a_query_without_evidence_grades_nothing():
    """There is nothing to hold."""
    assert grades([text("t", (0, 500))], query()) == {}


@pytest.mark.parametrize(
    ("wording", "expected"),
    [
        (f"Elsewhere. {QUOTE} So it is.", 3),
        ("the  timeout\nis FIVE seconds", 3),
        ("Elsewhere. The timeout is five", 2),
        ("timeout is five seconds. And so on.", 2),
        ("timeout is five", 2),
        ("The timeout is five minutes.", None),
        ("Elsewhere. The timeout", None),
    ],
)
def test_a_copy_of_the_evidence_is_graded_as_the_evidence_is(wording, expected):
    """The same words answer the same question, in whichever document they stand."""
    asked = query(evidence(100))
    chunk = Chunk(chunk_id="c9", doc_id="other", text=wording, start=0, end=len(wording))
    texts = TextsInPlace([text("t", (700, 760), wording=wording)], [chunk])
    found = {item.chunk_id: item.grade for item in texts.judgments(asked, {"t", "c9"})}

    assert found == ({"t": expected, "c9": expected} if expected else {})


def test_a_copy_under_other_titles_may_be_of_another_thing():
    """The same sentence stands in the manual of each product."""
    asked = query(evidence(100))
    home = Chunk(
        chunk_id="c", doc_id="d", text=QUOTE, start=100, end=128, heading_path=("Alpha", "Time")
    )
    same, other = (
        home.model_copy(update={"chunk_id": name, "doc_id": name, "heading_path": titles})
        for name, titles in (("same", ("Alpha", "Time")), ("other", ("Beta", "Time")))
    )
    texts = TextsInPlace([], [home, same, other])

    found = texts.judgments(asked, {"c", "same", "other"})
    assert [(item.chunk_id, item.grade) for item in found] == [("same", 3)]


def test_a_text_under_other_titles_may_be_of_another_thing():
    """Whoever cuts the documents otherwise has found no more."""
    asked = query(evidence(100))
    home = Chunk(
        chunk_id="c", doc_id="d", text=QUOTE, start=100, end=128, heading_path=("Alpha", "Time")
    )
    other = {"start": 700, "end": 728, "heading_path": ("Beta", "Time")}
    chunks = [
        home,
        home.model_copy(update={"chunk_id": "other", **other}),
        home.model_copy(update={"chunk_id": "again", "start": 900, "end": 928}),
    ]
    texts = [
        text("other", (690, 740), wording=QUOTE),
        text("like", (690, 740), wording=QUOTE, likeness=0.9),
        text("again", (890, 940), wording=QUOTE),
        text("several", (690, 740), (890, 940), wording=QUOTE),
        text("unknown", (500, 540), wording=QUOTE),
        text("nowhere", wording=QUOTE),
    ]
    found = TextsInPlace(texts, chunks, {"c"}).judgments(asked, {one.chunk_id for one in texts})

    assert {one.chunk_id for one in found} == {"again", "several", "unknown", "nowhere"}


def test_a_chunk_at_the_evidence_has_no_second_grade():
    """Its own truth is known since the query was made."""
    chunk = Chunk(chunk_id="c", doc_id="d", text=QUOTE, start=100, end=128)

    assert list(TextsInPlace([], [chunk]).judgments(query(evidence(100)), {"c"})) == []


def test_a_short_quote_is_looked_for_at_its_place_alone():
    """Elsewhere it may stand by chance."""
    asked = query(evidence(100, "port 8443"))

    assert grades([text("t", (700, 760), wording="Use port 8443.")], asked, {"t"}) == {}


@pytest.mark.parametrize(
    ("wording", "expected"), [(f"{QUOTE} Use port 8443.", 3), (QUOTE, 2), ("Use port 8443.", None)]
)
def test_a_short_quote_is_found_in_a_copy_of_what_the_answer_needs_beside_it(wording, expected):
    """All of the answer stands there, and most statements of Chinese are as short."""
    asked = query(evidence(100), evidence(130, "port 8443"))
    copy = Chunk(chunk_id="c9", doc_id="other", text=wording, start=0, end=len(wording))
    texts = TextsInPlace([text("t", (700, 760), wording=wording)], [copy])
    found = {item.chunk_id: item.grade for item in texts.judgments(asked, {"t", "c9"})}

    assert found == ({"t": expected, "c9": expected} if expected else {})


def test_a_short_quote_is_not_looked_for_beside_its_own_place():
    """It is known where it stands, and what else reads so may be there by chance."""
    asked = query(evidence(100), evidence(130, "port 8443"))
    cut = text("t", (90, 128), wording=f"Use port 8443. {QUOTE}")

    assert grades([cut], asked, {"t"}) == {"t": (2, "evidence")}
