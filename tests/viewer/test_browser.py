import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened

pytestmark = NEEDS_BROWSER
MEANS = "[...document.querySelectorAll('#live .mean')].map((cell) => cell.textContent)"
CHANGED = (
    "new Promise((done) => {{ const seen = () => ({means}).includes('{mean}') && done(true);"
    " new MutationObserver(seen).observe(document, {{childList: true, subtree: true}}); seen(); }})"
)


@pytest.fixture
def page(tmp_path):
    """A browser with an empty page."""
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html>", encoding="utf-8")
    with opened(blank, tmp_path / "profile", FLAGS) as found:
        found.call("Log.enable")
        found.call("Runtime.enable")
        yield found


def go(page, address):
    """Open an address, and wait until it is there."""
    page.call("Page.navigate", url=address)
    page.value(
        "new Promise((done) => document.readyState === 'complete' && location.protocol === 'http:'"
        " ? done(1) : addEventListener('load', () => done(1)))"
    )


@pytest.mark.slow
def test_a_new_line_of_the_history_appears_by_itself(page, site, dataset, add, make_evaluation):
    """One leaves the page open while a nightly run works."""
    go(page, site.access.address)
    before = page.value(MEANS)
    add(dataset, make_evaluation(mean=0.777, at="2026-01-02T00:00:00+00:00"))
    page.value(CHANGED.format(means=MEANS, mean="0.777"))

    assert (before, page.value(MEANS)) == (["0.500"], ["0.777"])
    assert page.complaints() == []


@pytest.mark.slow
def test_a_link_of_the_list_leads_to_the_history(page, site):
    """All is reached by clicking, under the strict policy."""
    go(page, site.access.address)
    page.value("document.querySelector('#live a').click()")
    go(page, f"{site.access.address}datasets/first")

    assert page.value("document.querySelectorAll('#live svg.chart').length") == 1
    assert page.complaints() == []
