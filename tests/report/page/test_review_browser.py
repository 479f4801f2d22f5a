import json
from dataclasses import replace

import pytest
from devtools import FLAGS, NEEDS_BROWSER, navigate, opened

from ragforge.files.formats.review_sheet import SheetRow
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.intake.reviewing import review_dataset
from ragforge.records import Query
from ragforge.report.page.review import render_review

pytestmark = NEEDS_BROWSER
CHOSEN = "[...document.querySelectorAll('input:checked')].map((radio) => radio.value).join()"
SAVED = (
    "new Promise((done) => { URL.createObjectURL = (blob) => { blob.text().then(done);"
    " return '#'; }; document.getElementById('save').click(); })"
)
AT = "document.activeElement.closest('article')?.dataset.queryId"
DONE = "document.getElementById('done').textContent"


def sheet_row(name, **fields):
    empty = SheetRow(**dict.fromkeys(SheetRow.__dataclass_fields__, ""))
    return replace(
        empty,
        query_id=name,
        revision="1",
        query=f"What is {name}?",
        expected_answer="So.",
        **fields,
    )


@pytest.fixture
def sheet(tmp_path):
    """A page of three queries."""
    path = tmp_path / "review.html"
    rows = [sheet_row("q1", random="random"), sheet_row("q2"), sheet_row("q3", decision="approve")]
    path.write_text(render_review("set", rows), encoding="utf-8")
    return path


@pytest.fixture
def page(sheet, tmp_path):
    """The page in a browser."""
    with opened(sheet, tmp_path / "profile", FLAGS) as found:
        yield found


def reopen(page, sheet):
    """Open the page anew, a moment later: a busy browser writes what is kept behind its back."""
    page.value("new Promise((done) => setTimeout(done, 500))")
    navigate(page, sheet)


def test_decisions_by_keyboard_come_into_the_dataset(page, tmp_path):
    """From the page to the set nothing is typed twice."""
    for key in ("j", "a", "e"):
        page.press(key)
    page.value("document.activeElement.select()")
    page.call("Input.insertText", text="=What else, 'so'?")
    page.press("Escape")
    saved = tmp_path / "review.json"
    saved.write_text(page.value(SAVED), encoding="utf-8")
    dataset = create_dataset(tmp_path / "set", {})
    dataset.write_queries(
        Query(query_id=name, query=f"What is {name}?", expected_answer="So.")
        for name in ("q1", "q2", "q3")
    )

    result = review_dataset(dataset, saved, "Ann")

    assert result.counts == {
        "approve": 2, "edit": 1, "reject": 0, "pin": 0, "taken_back": 0, "known": 0, "undecided": 0
    }  # fmt: skip
    assert dataset.all_queries()[1].query == "=What else, 'so'?"
    assert dataset.all_queries()[0].reviewed.random


def test_a_decision_is_taken_back_also_of_what_was_saved_before(page, tmp_path):
    """A wrong key is no decision, and the set is told so where it has it already."""
    dataset = create_dataset(tmp_path / "set", {})
    before = [
        Query(query_id=name, query=f"What is {name}?", expected_answer="So.")
        for name in ("q1", "q2", "q3")
    ]
    dataset.write_queries(before)
    saved = tmp_path / "review.json"
    for keys in ("jar", "ku"):
        for key in keys:
            page.press(key)
        saved.write_text(page.value(SAVED), encoding="utf-8")
        review_dataset(dataset, saved, "Ann")

    assert page.value(AT) == "q2"
    assert page.value(DONE) == "2 of 3 decided"
    found = {
        query.query_id: query.reviewed and query.reviewed.decision
        for query in dataset.all_queries()
    }
    assert found == {"q1": "approve", "q2": None, "q3": "approve"}
    assert dataset.all_queries()[1] == before[1]


def test_browser_keeps_decisions_while_the_page_is_closed(page, sheet):
    """Nobody reviews fifty queries in one sitting."""
    for key in ("j", "r", "p"):
        page.press(key)

    reopen(page, sheet)

    assert page.value(CHOSEN) == "reject,pin,approve"
    assert page.value(DONE) == "3 of 3 decided"


def test_a_decision_goes_on_to_the_next_open_query(page):
    """Who decides fifty does not press fifty keys more; an edit stays where it is typed."""
    page.press("j")
    page.press("a")
    assert page.value(AT) == "q2"
    page.press("r")
    assert page.value(AT) == "q3"
    page.press("p")
    assert page.value(AT) == "q3"
    page.press("k")
    page.press("e")
    assert page.value(AT) == "q2"


def test_a_reload_comes_back_to_where_the_reviewer_was(page, sheet):
    """Not to the first of fifty."""
    page.press("j")
    page.press("a")

    reopen(page, sheet)

    assert page.value(AT) == "q2"
    assert page.value(DONE) == "2 of 3 decided"


def test_edit_without_a_change_is_not_saved(page):
    """Import would refuse the whole file."""
    for key in ("j", "e", "Escape"):
        page.press(key)
    page.value("document.getElementById('save').click()")

    assert page.value("document.activeElement.dataset.queryId") == "q1"
    assert page.value("document.querySelector('.fault').textContent") == "Nothing is changed yet."


def test_letters_typed_into_a_note_decide_nothing(page):
    """An a in a note is no approval."""
    page.value("document.querySelector('[name=note]').focus()")

    for key in ("a", "r"):
        page.press(key)

    assert page.value("document.querySelector('[name=note]').value") == "ar"
    assert page.value(CHOSEN) == "approve"


def test_saved_file_is_whole(page, tmp_path):
    """The page's own policy must let it through."""
    folder = tmp_path / "downloads"
    page.call(
        "Browser.setDownloadBehavior",
        behavior="allow",
        downloadPath=str(folder),
        eventsEnabled=True,
    )

    page.value("document.getElementById('save').click()")
    page.event(state="completed")

    saved = json.loads((folder / "review.json").read_text())
    assert [row["query_id"] for row in saved] == ["q1", "q3"]


def test_rows_saved_are_those_decided_and_those_drawn(page):
    """Who leaves the hard ones of a sample open flatters the set, which import can tell then."""
    first, last = json.loads(page.value(SAVED))

    assert (first["query_id"], first["decision"], first["random"]) == ("q1", "", "random")
    assert (last["query_id"], last["decision"], last["new_query"]) == ("q3", "approve", "")


def test_browser_takes_script_and_style_sheet_and_complains_of_nothing(page):
    """A wrong digest in the policy would leave a page that saves nothing."""
    page.call("Log.enable")
    page.call("Runtime.enable")
    page.value("document.getElementById('save').click()")

    assert page.value("getComputedStyle(document.querySelector('.bar')).position") == "fixed"
    assert page.complaints() == []


def test_hostile_texts_do_nothing_in_a_browser(tmp_path):
    """A parser of ours may be kinder than the one that counts."""
    hostile = "</textarea></script><img src=x onerror=alert(1)><script>alert(1)</script>"
    path = tmp_path / "hostile.html"
    row = SheetRow(**dict.fromkeys(SheetRow.__dataclass_fields__, hostile))
    path.write_text(render_review(hostile, [row]), encoding="utf-8")

    with opened(path, tmp_path / "other", FLAGS) as page:
        assert page.value("document.querySelectorAll('img').length") == 0
        assert page.value("document.scripts.length") == 1
        assert page.value("document.querySelector('[name=new_query]').value") == hostile
