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


OUTSIDE = """[...document.querySelectorAll('svg text')].filter((text) => {
  const [own, all] = [text, text.ownerSVGElement].map((at) => at.getBoundingClientRect());
  return own.left < all.left - .5 || own.right > all.right + .5;
}).map((text) => text.textContent)"""


@pytest.mark.slow
def test_dates_of_a_trend_stand_within_its_picture(page, site):
    """A date that is cut off at the edge may be any other."""
    go(page, f"{site.access.address}datasets/first")

    assert page.value("document.querySelectorAll('svg text.label').length") >= 2
    assert page.value(OUTSIDE) == []


SHOWN = (
    "[...document.querySelectorAll('.sets tbody tr')].filter((row) => !row.hidden)"
    ".map((row) => row.cells[0].textContent)"
)


def put(page, name, value):
    """Type into the search box, or choose a state."""
    page.value(
        f"(() => {{ const box = document.getElementById({name!r}); box.value = {value!r};"
        " box.dispatchEvent(new Event(box.tagName === 'SELECT' ? 'change' : 'input')); })()"
    )


@pytest.fixture
def three(folder, dataset, add, make_evaluation, create):
    """Three sets: `first` at .5, `better` at .9 and falling, `new` without an evaluation."""
    better = create("better")
    for place, mean in enumerate((0.95, 0.9), 1):
        add(better, make_evaluation(mean=mean, at=f"2026-01-0{place}T00:00:00+00:00"))
    create("new")


@pytest.mark.slow
def test_sets_are_searched_filtered_and_sorted(page, site, three):
    """By a team with more of them than a screen holds; the view is in the address."""
    go(page, site.access.address)
    assert page.value(SHOWN) == ["better", "first", "new"]

    put(page, "search", "FIR")
    assert page.value(SHOWN) == ["first"]
    assert page.value("document.getElementById('count').textContent") == "1 of 3 datasets"
    put(page, "search", "")
    put(page, "state-of", "new")
    assert page.value(SHOWN) == ["new"]
    put(page, "state-of", "")
    page.value("document.querySelector('[data-sort=mean] button').click()")
    assert page.value(SHOWN) == ["first", "better", "new"]
    page.value("document.querySelector('[data-sort=mean] button').click()")
    assert page.value(SHOWN) == ["better", "first", "new"]
    assert page.value("location.hash") == "#sort=-mean"
    assert page.complaints() == []


@pytest.mark.slow
def test_a_link_with_a_view_opens_it(page, site, three):
    """It is sent to a colleague."""
    go(page, f"{site.access.address}#search=ndcg&sort=-mean")

    assert page.value(SHOWN) == ["better", "first"]
    assert page.value("document.getElementById('search').value") == "ndcg"
    sorted_by = "document.querySelector('[data-sort=mean]').getAttribute('aria-sort')"
    assert page.value(sorted_by) == "descending"


@pytest.mark.slow
def test_new_lines_leave_view_and_focus_alone(page, site, three, dataset, add, make_evaluation):
    """Who types a word is not thrown out by a nightly run."""
    go(page, f"{site.access.address}#sort=-mean")
    page.value("document.querySelector('.sets tbody a').focus()")
    add(dataset, make_evaluation(mean=0.777, at="2026-01-02T00:00:00+00:00"))
    page.value(CHANGED.format(means=MEANS, mean="0.777"))

    assert page.value(SHOWN) == ["better", "first", "new"]
    assert page.value("document.activeElement.textContent") == "better"
