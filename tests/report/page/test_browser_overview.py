"""The overview in a browser: what a parser of ours cannot tell."""

import pytest
from devtools import FLAGS, NEEDS_BROWSER, navigate, opened
from ranked_sets import ranked_set

from ragforge.config import EvaluateSettings
from ragforge.pipeline.reporting import PageRoom, report_summary
from ragforge.report.page.page import render_html

pytestmark = NEEDS_BROWSER

READY = (
    "new Promise((done) => { const look = () => document.getElementById('queries-table')"
    ".dataset.ready ? done(1) : setTimeout(look, 10); look(); })"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of this module."""
    folder = tmp_path_factory.mktemp("browser")
    blank = folder / "blank.html"
    blank.write_text("<title>blank</title>", encoding="utf-8")
    with opened(blank, folder / "profile", FLAGS) as page:
        for domain in ("Log", "Runtime"):
            page.call(f"{domain}.enable")
        yield page


@pytest.fixture
def page(browser, many_queries, tmp_path):
    """The report of two runs of thirty queries."""
    path = tmp_path / "report.html"
    summary = report_summary(many_queries(30), EvaluateSettings())
    path.write_text(render_html(summary), encoding="utf-8")
    navigate(browser, path)
    yield browser
    browser.call("Emulation.clearDeviceMetricsOverride")


def test_every_chart_has_a_name_for_screen_readers(page):
    """A chart that only eyes can read leaves people out."""
    named = (
        "[...document.querySelectorAll('svg[aria-labelledby]')].map((svg) => svg.getAttribute("
        "'aria-labelledby').split(' ').every((id) => document.getElementById(id)?.textContent))"
    )

    found = page.value(named)

    assert len(found) == 11
    assert all(found)


def test_links_of_the_overview_arrive(page):
    """A count that leads nowhere is a dead end."""
    lost = (
        "[...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href').slice(1))"
        ".filter((key) => !key.startsWith('q=') && !document.getElementById(key))"
    )

    assert page.value(lost) == []


def test_a_count_opens_its_folded_list(page):
    """The list is folded up, and a link into it has to unfold it."""
    opens = (
        "(() => { const a = document.querySelector('#causes td a'); a.click();"
        " return document.getElementById(a.hash.slice(1)).checkVisibility(); })()"
    )

    assert page.value(opens) is True


def test_a_query_that_lost_opens_in_the_drill_down(page):
    """From the regression to the query is one click."""
    opens = (
        "new Promise((done) => { document.querySelector('#comparison a.to-query').click();"
        " const look = () => document.getElementById('query-dialog').open"
        " ? done(document.getElementById('query-body').textContent) : setTimeout(look, 10);"
        " look(); })"
    )

    assert "Where is thing 0000?" in page.value(opens)


@pytest.mark.parametrize("width", [400, 1200])
def test_page_is_no_wider_than_the_screen(page, width):
    """Sideways scrolling of a whole page is no reading."""
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )

    assert page.value("document.documentElement.scrollWidth") <= width


def test_table_of_queries_is_by_the_measure_that_decides(browser, tmp_path):
    """A query that lost by the first measure of the report has to be among the worse ones."""
    ranks = {"a": [1, 2, 2, 2, 2, 2], "b": [2, 4, 1, 1, 1, 1]}
    made, settings = ranked_set(tmp_path / "set", ranks), EvaluateSettings(measures=["Success@1"])
    summary = report_summary(made, settings, room=PageRoom(1_000_000))
    path = tmp_path / "first.html"
    path.write_text(render_html(summary), encoding="utf-8")
    navigate(browser, path)
    browser.value(READY)
    worse = (
        "new Promise((done) => { const look = () => {"
        " const rows = document.querySelectorAll('#queries-table tbody code');"
        " rows.length < 6 ? done([...rows].map((row) => row.textContent).join())"
        " : setTimeout(look, 10); };"
        " location.hash = 'filter=worse'; look(); })"
    )
    told = (
        "new Promise((done) => { location.hash = 'q=q001'; const look = () => {"
        " const body = document.getElementById('query-body').textContent;"
        " body.includes('first relevant') ? done(body) : setTimeout(look, 10); }; look(); })"
    )

    assert browser.value(worse) == "q000"
    assert "Success@1 0.000 · first relevant at rank 4" in browser.value(told)


def test_browser_complains_of_nothing(page):
    """A blocked style or script shows in the console alone."""
    assert page.complaints() == []


def test_nine_measures_fit_a_window_and_more_are_folded_up(browser, many_queries, tmp_path):
    """A column that has to be scrolled to is not read."""
    nine = ["nDCG@10", "RR", "R@10", "P@5", "P@10", "AP", "Success@5", "nDCG@20", "Success@1"]
    summary = report_summary(many_queries(30), EvaluateSettings(measures=[*nine, "P@3"]))
    path = tmp_path / "nine.html"
    path.write_text(render_html(summary), encoding="utf-8")
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    navigate(browser, path)
    region = "document.querySelector('#retrieval .scroll')"

    assert browser.value(f"{region}.scrollWidth - {region}.clientWidth") == 0
    assert browser.value(f"{region}.querySelectorAll('thead th').length") == 10
    assert browser.value("document.querySelector('#retrieval details').open") is False
    browser.call("Emulation.clearDeviceMetricsOverride")
