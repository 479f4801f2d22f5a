import re
from base64 import b64encode
from hashlib import sha256

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from ragforge.evaluating.formatting import Excerpt
from ragforge.evaluating.query_details import ChunkStart
from ragforge.evaluating.summary import Making
from ragforge.files.formats.review_sheet import SheetRow
from ragforge.files.manifest import ReviewAudit, Spent
from ragforge.report.page.markup import document
from ragforge.report.page.review import Passage, render_review
from ragforge.report.tables import provenance_table

HOSTILE = "</textarea></script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m"


def sheet_row(**fields):
    empty = dict.fromkeys(SheetRow.__dataclass_fields__, "")
    known = {"query_id": "q1", "revision": "1", "query": "Why?", "expected_answer": "So."}
    return SheetRow(**{**empty, **known, **fields})


def test_page_shows_all_that_a_reviewer_needs():
    """Without script it is to be read at least."""
    row = sheet_row(
        history="user: A?",
        standalone="Why A?",
        evidence="so it is",
        place="a.md > A",
        flags="premise: unknown",
        type="follow_up",
        difficulty="hard",
        reviewer="Ann",
    )
    shown = HTMLParser(render_review("set", [row])).text(separator=" ")

    for text in ("Why?", "user: A?", "Why A?", "So.", "so it is", "a.md > A", "premise: unknown"):
        assert text in shown
    assert "follow up, hard" in shown
    assert "Review for Ann" in shown
    assert "q1, revision 1" in shown


def test_evidence_is_marked_in_its_text():
    """A quote is judged by what stands around it."""
    start = ChunkStart("a.md", "A", Excerpt("Not so. And so it is, mostly.", 28))
    shown = {"q1": [Passage(start, ("so it is",))]}
    page = HTMLParser(render_review("set", [sheet_row(evidence="so it is")], shown))

    [passage] = page.css(".passage")
    assert passage.css_first("mark").text() == "so it is"
    assert "Not so. And so it is, mostly." in passage.text()
    assert "a.md / A" in passage.text()
    assert "Evidence" not in [term.text() for term in page.css("dt")]


def test_nearest_chunks_are_no_evidence():
    """They are shown so that somebody sees that they do not answer."""
    shown = {"q1": [Passage(ChunkStart("a.md", "", Excerpt("Nothing of it.", 14)))]}
    page = HTMLParser(render_review("set", [sheet_row()], shown))

    assert "Near, and should not answer it" in page.css_first(".passage").text()
    assert page.css("mark") == []


def test_controls_wait_for_the_script():
    """A form that saves nothing would lose an hour of somebody's work."""
    page = HTMLParser(render_review("set", [sheet_row()]))

    assert all("hidden" in node.attributes for node in page.css("fieldset, .bar"))
    assert "review export --out review.csv" in page.css_first("noscript").html


def test_hostile_texts_stay_texts():
    """A corpus must not run anything where it is reviewed."""
    hostile = dict.fromkeys(SheetRow.__dataclass_fields__, HOSTILE)
    start = ChunkStart(HOSTILE, HOSTILE, Excerpt(HOSTILE, len(HOSTILE)))
    shown = {HOSTILE: [Passage(start, (HOSTILE[:20],))]}
    page = render_review(HOSTILE, [SheetRow(**hostile)], shown)

    assert page.count("<script") == 1
    assert not re.search(r"<(img|iframe)\b|\u202e|\x1b", page)
    assert page.count("</textarea>") == 3


def test_policy_lets_in_its_own_script_and_style_alone():
    """Nothing else runs, and nothing leaves the page."""
    page = render_review("set", [sheet_row()])
    tree = HTMLParser(page)
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)[1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = tree.css_first("meta[http-equiv]").attributes["content"]

    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'" in policy
    assert "unsafe" not in policy


def test_page_names_no_address():
    """It is opened from a file, often without a network."""
    page = render_review("set", [sheet_row()])

    assert not re.search(r"https?://|//[a-z]|\bsrc=|@import|url\(", page)


def test_only_follow_ups_have_a_field_for_what_they_ask_alone():
    """A field that must stay empty invites to be filled."""
    page = HTMLParser(render_review("set", [sheet_row(), sheet_row(standalone="Why A?")]))

    assert [len(item.css("textarea")) for item in page.css("article")] == [2, 3]


def test_same_rows_give_the_same_page():
    """A page is a file that people compare."""
    assert render_review("set", [sheet_row()]) == render_review("set", [sheet_row()])


def test_another_sheet_is_kept_under_another_name():
    """The browser must not fill one sheet with the decisions of another."""
    others = {"revision": "2", "reviewer": "Ann", "query_id": "q2", "state": "s_b"}
    pages = [
        HTMLParser(render_review("set", [sheet_row(**fields)])).css_first("main").attributes
        for fields in ({}, *({name: value} for name, value in others.items()))
    ]

    assert len({page["data-sheet"] for page in pages}) == 5


def test_page_brings_the_state_back_that_it_shows():
    """A query that changed since is not what was decided about."""
    page = HTMLParser(render_review("set", [sheet_row(state="s_b")]))

    assert page.css_first("article").attributes["data-state"] == "s_b"


@pytest.mark.parametrize("script", ["'</script>'", "<!--"])
def test_script_that_would_end_its_element_is_refused(script):
    """What stands behind it would be markup."""
    with pytest.raises(ValueError, match="expected no markup"):
        document(lang="en", head=[], body=[], css="", script=script)


@pytest.mark.slow
def test_ten_thousand_rows_make_a_page():
    """Nobody should have to guess how many are too many."""
    page = render_review("set", [sheet_row(query_id=f"q{number}") for number in range(10_000)])

    assert page.count("<article") == 10_000


@pytest.mark.parametrize(
    ("audit", "shown"),
    [
        (None, "by nobody"),
        (
            ReviewAudit(
                n=10, n_right=8, precision=0.8, low=0.4902, high=0.9433, reviewers=("Ann", "Ben")
            ),
            "drawn at random: 8 of 10 right as they were, 0.80 [0.49, 0.94], decided by Ann, Ben",
        ),
    ],
)
def test_report_tells_what_people_found_of_the_set(audit, shown):
    """Whoever reads a measure wants to know who looked at the questions."""
    made = Making("set", 1, "", "", (), {}, {}, Spent(), audit)

    assert ("reviewed", shown) in provenance_table(made).rows
