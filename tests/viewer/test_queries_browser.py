from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened, until
from side_by_side import make_set

pytestmark = [*NEEDS_BROWSER, pytest.mark.slow]
ROWS = "[...document.querySelectorAll('.queries tbody code')].map((code) => code.textContent)"
SEARCH = "location.search"
TITLE = "document.querySelector('h1.question')?.textContent"
FOCUS = "document.activeElement.textContent"


@pytest.fixture
def measured(folder):
    """A set named `pair` with the runs `bad` and `good`, and two systems."""
    return make_set(folder / "pair")


@pytest.fixture
def page(tmp_path):
    """A browser with an empty page."""
    with browser(tmp_path) as found:
        yield found


@contextmanager
def browser(tmp_path):
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html>", encoding="utf-8")
    with opened(blank, tmp_path / "profile", FLAGS) as found:
        found.call("Log.enable")
        found.call("Runtime.enable")
        yield found


def go(page, site, place="queries", **asked):
    address = f"{site.access.address}datasets/pair/{place}?{urlencode(asked)}"
    page.call("Page.navigate", url=address)
    loaded(page)


def loaded(page):
    page.value(
        "new Promise((done) => document.readyState === 'complete' && location.protocol === 'http:'"
        " ? done(1) : addEventListener('load', () => done(1)))"
    )


def choose(page, param, value):
    """Choose in a control, or type into it."""
    page.value(
        f"(() => {{ const box = document.querySelector('[data-param={param}]');"
        f" box.value = {value!r};"
        " box.dispatchEvent(new Event(box.type === 'search' ? 'input' : 'change')); })()"
    )


def test_what_is_chosen_is_shown_and_in_the_address(page, site, measured):
    """The page is not loaded anew, and the link to it is that of its address."""
    go(page, site)
    page.value("window.same = true")
    choose(page, "show", "better")
    until(page, f"{ROWS}.length === 3")
    choose(page, "measure", "RR")
    until(page, "document.querySelector('.queries thead').textContent.includes('RR')")
    choose(page, "search", "q02")
    until(page, f"{ROWS}.join() === 'q02'")

    assert page.value(SEARCH) == "?show=better&measure=RR&search=q02"
    assert page.value("window.same") is True
    assert page.complaints() == []


def test_a_link_opens_what_was_chosen_with_its_controls(page, site, measured):
    """It is sent to a colleague."""
    go(page, site, show="better", measure="RR", run="good", **{"with": "bad"})
    chosen = "[...document.querySelectorAll('select[data-param]')].map((box) => box.value).join()"

    assert page.value(chosen) == "good,bad,RR,careful,hasty,better"
    assert page.value("document.querySelector('#view-tools').hidden") is False


def test_a_column_is_sorted_by_and_back_leads_back(page, site, measured):
    """The focus stays on the column, and the way back is the browser's own."""
    go(page, site)
    head = "document.querySelector('.queries thead a.sort[href*=\"sort=diff\"]')"
    page.value(f"{head}.focus()")
    page.value(f"{head}.click()")
    until(page, f"{ROWS}[0] === 'q00'")
    focused = page.value(FOCUS)
    page.value("history.back()")
    until(page, f"{ROWS}[0] === 'q03'")

    assert (focused, page.value(SEARCH)) == ("difference", "")
    assert page.complaints() == []


def test_keys_go_through_the_rows_and_open_one(page, site, measured):
    """Who looks at fifty queries does not aim at fifty links."""
    go(page, site)
    for key in "jj":
        page.press(key)
    second = page.value(FOCUS)
    page.press("k")
    page.press("/")
    searching = page.value("document.activeElement.id")
    page.press("j")
    typed = page.value("document.getElementById('search').value")
    page.press("Escape")

    assert (second, searching, typed) == ("Where is fact q00?", "search", "j")


def test_the_rows_begin_where_j_is_pressed_first(page, site, measured):
    """The first key leads to the first query."""
    go(page, site)
    page.press("j")

    assert page.value(FOCUS) == "Where is fact q03?"


def test_keys_go_from_query_to_query_and_up(page, site, measured):
    """In the order of the table that one came from."""
    go(page, site, "query", q="q00", show="better")
    page.press("j")
    until(page, f"{TITLE} === 'Where is fact q01?'")
    page.press("j")
    until(page, f"{TITLE} === 'Where is fact q02?'")
    page.press("k")
    until(page, f"{TITLE} === 'Where is fact q01?'")
    address = page.value(SEARCH)
    page.press("u")
    until(page, "location.pathname.endsWith('/queries')")
    loaded(page)

    assert ("q=q01" in address, "show=better" in address) == (True, True)
    assert page.value(ROWS) == ["q00", "q01", "q02"]
    assert page.complaints() == []


def test_evidence_opens_in_its_document_at_the_mark(page, site, measured):
    """The text around a quote is one click away."""
    go(page, site, "query", q="q00")
    page.value("document.querySelector('a[href^=document]').click()")
    until(page, "location.pathname.endsWith('/document')")
    loaded(page)

    assert page.value("document.getElementById('evidence').textContent") == "Fact q00 is here."
    assert page.complaints() == []


def test_a_page_of_queries_follows_the_set(page, site, measured):
    """Another run is written while the page is open, and the view stays."""
    go(page, site, show="better")
    rankings = measured.run("bad")
    measured.write_run("good", rankings)
    until(page, f"{ROWS}.length === 0")

    assert page.value(SEARCH) == "?show=better"
    assert page.complaints() == []
