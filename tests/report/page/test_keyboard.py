from contextlib import ExitStack

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened

from ragforge.evaluating.summary import summarise
from ragforge.report.page.page import render_html

pytestmark = NEEDS_BROWSER

READY = (
    "new Promise((done) => { const look = () => document.getElementById('queries-table')"
    ".dataset.ready ? done(1) : setTimeout(look, 10); look(); })"
)
STOPS_BEFORE_THE_TABLE = (
    "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter("
    "(at) => at.tabIndex >= 0 && !at.disabled && at.checkVisibility({ visibilityProperty: true })"
    " && at.compareDocumentPosition(document.querySelector('.queries tbody'))"
    " & Node.DOCUMENT_POSITION_FOLLOWING).length"
)
FOCUSED = "document.activeElement.textContent"


@pytest.fixture
def page_of(tmp_path):
    """Open the report of a dataset and wait for its script."""
    with ExitStack() as open_pages:

        def run(dataset):
            path = tmp_path / "report.html"
            path.write_text(render_html(summarise(dataset)), encoding="utf-8")
            page = open_pages.enter_context(opened(path, tmp_path / "profile", FLAGS))
            page.value(READY)
            return page

        yield run


def test_the_table_of_queries_is_few_tab_stops_away(page_of, many_queries):
    """Rows have one stop, tables that fit none."""
    page = page_of(many_queries(300))

    assert page.value(STOPS_BEFORE_THE_TABLE) < 60
    rows = (
        "[...document.querySelectorAll('.queries tbody button')].filter((at) => at.tabIndex >= 0)"
    )
    assert page.value(f"{rows}.length") == 1


def test_arrow_keys_go_from_row_to_row(page_of, many_queries):
    """And the stop stays where they left."""
    page = page_of(many_queries(12))
    page.value("document.querySelector('.queries tbody button').focus()")
    first = page.value(FOCUSED)

    page.press("ArrowDown")
    second = page.value(FOCUSED)
    page.press("End")
    last = page.value(FOCUSED)
    page.press("ArrowDown")
    assert page.value(FOCUSED) == last
    page.press("Home")
    assert page.value(FOCUSED) == first
    assert len({first, second, last}) == 3


def test_skip_links_lead_past_what_stands_before(page_of, many_queries):
    """The first to the results, the second to all queries."""
    page = page_of(many_queries(12))
    links = "[...document.querySelectorAll('a.skip')].map((at) => at.getAttribute('href'))"

    assert page.value(links) == ["#main", "#queries"]
    assert page.value(f"{links}.every((at) => document.querySelector(at))") is True
