import html
import re

import pytest
from devtools import FLAGS, NEEDS_BROWSER, contrast, navigate, opened

from ragforge.evaluating.summary import summarise
from ragforge.llm.chat import ChatReply
from ragforge.llm.store.calls import CallStore
from ragforge.records import Answer, Judgment, Provenance
from ragforge.report.page.page import render_html

pytestmark = NEEDS_BROWSER

COUNT = "document.getElementById('queries-count').textContent"
IDS = "[...document.querySelectorAll('#queries-table tbody code')].map((c) => c.textContent)"
DIFFERENCES = (
    "[...document.querySelectorAll('.better, .worse')].filter((cell) => cell.closest('.queries'))"
    ".map((cell) => cell.textContent)"
)
DIALOG = "document.getElementById('query-dialog')"
READY = (
    "new Promise((done) => { const look = () => document.getElementById('queries-table')"
    ".dataset.ready ? done(1) : setTimeout(look, 10); look(); })"
)
TURNED = (
    "(async () => {{ const turned = new Promise((done) => addEventListener('hashchange', () =>"
    " setTimeout(done, 50), {{ once: true }})); {}; await turned; }})()"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of this module."""
    folder = tmp_path_factory.mktemp("browser")
    blank = folder / "blank.html"
    blank.write_text("<title>blank</title>", encoding="utf-8")
    with opened(blank, folder / "profile", FLAGS) as page:
        for domain in ("Log", "Runtime", "Network"):
            page.call(f"{domain}.enable")
        yield page


@pytest.fixture
def page_of(browser, tmp_path):
    """Open the report of a dataset as a reader would, and wait for its script."""

    def run(dataset, fragment=""):
        path = tmp_path / "report.html"
        path.write_text(render_html(summarise(dataset)), encoding="utf-8")
        navigate(browser, path)
        if fragment:
            browser.value(TURNED.format(f"location.hash = {fragment!r}"))
        browser.value(READY)
        return browser

    yield run
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    browser.call("Emulation.clearDeviceMetricsOverride")


def act(page, expression):
    """Do something that changes the address, and wait until it is drawn."""
    page.value(TURNED.format(expression))


def resize(page, width):
    """Look through a window of that many pixels: a phone below 500."""
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 500,
    )


def test_browser_takes_style_sheet_and_script_and_complains_of_nothing(page_of, dataset):
    """A wrong digest in the policy would leave a bare page, and a dead table."""
    page = page_of(dataset)

    assert page.value(COUNT) == "4 of 4 queries shown"
    assert page.complaints() == []


def test_page_asks_for_nothing_but_itself(page_of, dataset):
    """It is mailed and opened without a network."""
    page = page_of(dataset, "#q=q2")

    assert page.value("performance.getEntriesByType('resource').length") == 0


def test_hostile_texts_do_nothing(page_of, hostile_dataset):
    """A parser of ours may be kinder than the one that counts."""
    page = page_of(hostile_dataset)
    act(page, "document.querySelector('button.ask').click()")
    opened_all = (
        "(async () => { for (const key of [1, 2, 3, 4, 5, 6, 7, 8]) { "
        "document.getElementById('query-forth').click(); "
        "await new Promise((done) => setTimeout(done, 60)); } })()"
    )
    page.value(opened_all)

    assert page.value("document.title").endswith("ragforge report")
    assert page.value("document.querySelectorAll('img, iframe, [onerror], main style').length") == 0
    assert page.value("[...document.scripts].filter((s) => !s.type).length") == 1
    assert page.complaints() == []


def test_sorting_by_a_column_goes_both_ways_and_keeps_the_focus(page_of, many_queries):
    """A keyboard user would otherwise start again at the top of the page."""
    page = page_of(many_queries(12))
    button = "document.querySelector('[data-sort=query] button')"
    page.value(f"{button}.focus()")

    act(page, f"{button}.click()")
    act(page, f"{button}.click()")

    assert page.value(IDS)[:2] == ["q0011", "q0010"]
    assert page.value(f"{button}.parentElement.ariaSort") == "descending"
    assert page.value(f"document.activeElement === {button}")


def test_filter_is_kept_in_the_address_and_undone_by_going_back(page_of, many_queries):
    """A view that was found can be sent to a colleague."""
    page = page_of(many_queries(30))
    change = (
        "const box = document.getElementById('queries-difficulty'); box.value = 'hard';"
        "box.dispatchEvent(new Event('change'))"
    )

    act(page, change)

    assert page.value("location.hash") == "#difficulty=hard"
    assert page.value(IDS) == ["q0007", "q0017", "q0027"]
    act(page, "history.back()")
    assert page.value(COUNT) == "30 of 30 queries shown"


@pytest.mark.parametrize(
    ("fragment", "count"),
    [
        ("filter=failed", 1),
        ("filter=low", 1),
        ("filter=nohit", 1),
        ("filter=holes", 1),
        ("difficulty=-", 1),
        ("type=fact&search=ONE", 1),
        ("search=is+what+two", 1),
        ("sort=value.9&filter=nonsense&page=99&x=y", 4),
        ("filter=__proto__", 4),
        ("filter=valueOf", 4),
    ],
)
def test_views_come_from_the_address(page_of, dataset, fragment, count):
    """An address by hand or of another version of the page does no harm."""
    assert page_of(dataset, f"#{fragment}").value(f"{IDS}.length") == count


def test_search_narrows_while_typing(page_of, many_queries):
    """Thousands of queries cannot be read."""
    page = page_of(many_queries(30))
    page.value("document.getElementById('queries-search').focus()")

    page.call("Input.insertText", text="thing 0021")
    page.value("new Promise((done) => setTimeout(done, 400))")

    assert page.value(IDS) == ["q0021"]
    assert page.value(COUNT) == "1 of 30 queries shown"


def test_long_tables_have_pages(page_of, many_queries):
    """A browser draws 200 rows at once, and 50,000 never."""
    page = page_of(many_queries(250))

    act(page, "document.getElementById('queries-forth').click()")

    assert page.value(COUNT) == "250 of 250 queries shown, rows 201 to 250"
    assert page.value(f"{IDS}.length") == 50


def test_deep_link_opens_a_query_with_its_evidence_marked(page_of, dataset):
    """A finding is discussed by its link."""
    page = page_of(dataset, "#q=q1")

    assert page.value(f"{DIALOG}.open")
    assert page.value(f"{DIALOG}.querySelector('h3').textContent") == "What is one?"
    assert page.value(f"[...{DIALOG}.querySelectorAll('mark')].map((m) => m.textContent)") == [
        "Text of",
        "Text of",
    ]


def test_drill_down_says_what_the_judge_said(page_of, dataset):
    """The number says that something is wrong, the chunks say what."""
    text = page_of(dataset, "#q=q2").value(f"{DIALOG}.innerText")

    assert "Relevant, but not in the top 10: 1" in text
    assert "Half." in text
    assert "Answer of own: incorrect" in text


def test_raw_reply_of_the_judge_is_shown_where_the_store_has_it(page_of, dataset):
    """What the judge said word for word settles how a grade came about."""
    judge = Provenance(kind="llm", model="judge-1", call_key="k1")
    dataset.write_judgments([Judgment(query_id="q2", chunk_id="c3", grade=2, provenance=judge)])
    store = CallStore(dataset.store_path)
    store.put("k1", "http://x", "judge-1", ChatReply(text="<b>grade</b>: 2"), None)
    store.close()

    page = page_of(dataset, "#q=q2")

    assert page.value(f"{DIALOG}.querySelector('.raw pre').textContent") == "<b>grade</b>: 2"


def test_any_two_of_several_runs_are_compared(page_of, many_queries, make_ranking):
    """The difference from the run in production is the one that counts."""
    dataset = many_queries(2)
    rankings = [make_ranking("q0000", "x"), make_ranking("q0001", "c0001")]
    dataset.write_run("other", rankings, dataset.manifest.files["runs/new.jsonl"].run)

    page = page_of(dataset, "#from=1&to=2&sort=diff")

    assert page.value(DIFFERENCES) == ["-0.631", "+0.369"]


def test_escape_closes_and_gives_the_focus_back(page_of, dataset):
    """Whoever goes through a list by keyboard stays where they were."""
    page = page_of(dataset)
    page.value("document.querySelectorAll('button.ask')[1].focus()")
    act(page, "document.activeElement.click()")

    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", windowsVirtualKeyCode=27)
    page.value("new Promise((done) => setTimeout(done, 200))")

    assert not page.value(f"{DIALOG}.open")
    assert page.value("document.activeElement.textContent") == "What is two?"


def test_next_query_is_the_next_of_the_view(page_of, dataset):
    """Going through the failures one by one is the usual way to use the list."""
    page = page_of(dataset, "#sort=query&q=q1")

    act(page, "document.getElementById('query-forth').click()")

    assert page.value("location.hash") == "#q=q3&sort=query"


def test_unknown_query_in_the_address_is_said(page_of, dataset):
    """A link to a query of an older version must not open nothing in silence."""
    page = page_of(dataset, "#q=gone")

    assert page.value(COUNT) == "There is no query gone in this page."
    assert not page.value(f"{DIALOG}.open")


def test_page_reads_without_the_script(browser, page_of, dataset):
    """Some companies run none."""
    page_of(dataset)
    address = browser.value("location.href")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.call("Page.setLifecycleEventsEnabled", enabled=True)
    browser.call("Page.navigate", url="about:blank")
    loader = browser.call("Page.navigate", url=address)["loaderId"]
    browser.event(name="load", loaderId=loader)

    assert browser.value("document.getElementById('queries-tools').checkVisibility()") is False
    assert browser.value("document.querySelector('noscript p').checkVisibility()") is True
    assert browser.value(f"{IDS}.length") == 4


def test_print_shows_rows_and_opened_queries_and_no_controls(page_of, dataset):
    """A printed button cannot be pressed; all queries, opened, are a book."""
    page = page_of(dataset)
    hits = "[...document.querySelectorAll('.query .hits')].map((at) => at.checkVisibility())"
    page.call("Emulation.setEmulatedMedia", media="print")

    assert page.value("document.getElementById('queries-tools').checkVisibility()") is False
    assert page.value("document.querySelector('.query .ask').checkVisibility()") is True
    assert set(page.value(hits)) == {False}
    page.value("document.querySelector('.query').open = true")
    assert set(page.value(hits)) == {True}


def test_print_is_no_wider_than_the_sheet(page_of, many_queries, make_ranking):
    """What is cut off on paper cannot be scrolled to."""
    made = many_queries(8)
    for name in ("third", "fourth", "fifth", "sixth"):
        made.write_run(name, [make_ranking(f"q{n:04}", f"c{n:04}") for n in range(8)])
    page = page_of(made)
    page.call("Emulation.setEmulatedMedia", media="print")
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=1032,  # A4 across, less its margins
        height=700,
        deviceScaleFactor=1,
        mobile=False,
    )
    right = "Math.max(...[...document.querySelectorAll('td, th, svg, p')].map("
    assert page.value(f"{right}(at) => at.getBoundingClientRect().right))") <= 1033


@pytest.mark.parametrize("width", [400, 700, 800, 1280])
def test_questions_have_room_beside_what_is_said_of_them(page_of, dataset, width):
    """A question of a letter a line makes a page of two hundred screens."""
    page = page_of(dataset)
    resize(page, width)

    widths = page.value(
        "[...document.querySelectorAll('#worst .ask')]"
        ".map((e) => e.getBoundingClientRect().width / e.parentElement.clientWidth)"
    )

    assert widths
    assert min(widths) > 0.3


@pytest.mark.parametrize("width", [320, 400, 1280])
def test_page_is_no_wider_than_the_screen(page_of, dataset, width):
    """A report is read on a phone too; what is wide scrolls by itself."""
    page = page_of(dataset)
    resize(page, width)

    assert page.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("runs", [2, 6])
def test_tables_hide_no_column_at_1280_pixels(
    page_of, many_queries, make_ranking, make_grade, runs
):
    """A column that is off the screen is one that nobody decides by."""
    made = many_queries(20)
    rankings = [make_ranking(f"q{n:04}", f"c{n:04}") for n in range(20)]
    for n in range(2, runs):
        made.write_run(f"a_configuration_with_embeddings_and_a_reranker_{n}", rankings)
    for system in ("careful", "hasty"):
        made.write_answers(system, [Answer(query_id=f"q{n:04}", answer="1") for n in range(20)])
        verdicts = ("correct", "not_attempted")
        grades = [make_grade(f"q{n:04}", verdicts[n % 2]) for n in range(20)]
        made.write_answer_grades(system, grades)
    page = page_of(made)
    resize(page, 1280)

    hidden = page.value(
        "[...document.querySelectorAll('.scroll')]"
        ".filter((at) => at.scrollWidth > at.clientWidth + 1).map((at) => at.ariaLabel)"
    )

    assert hidden == []
    assert page.value("document.querySelectorAll('#queries-table thead th').length") == runs + 4


def test_the_script_draws_the_rows_that_stand_without_it(page_of, many_queries, make_ranking):
    """Rank 8 is 0.31546: a page that said 0.316 beside another of 0.315 left both in doubt."""
    made = many_queries(10)
    others = [f"x{n}" for n in range(10)]
    rankings = [make_ranking(f"q{n:04}", *others[:n], f"c{n:04}") for n in range(10)]
    made.write_run("new", rankings, made.manifest.files["runs/new.jsonl"].run)
    markup = render_html(summarise(made))
    body = markup[markup.index('id="queries-table"') :].partition("<tbody>")[2]
    rows = re.findall(r"<tr>.*?</tr>", body.partition("</tbody>")[0])
    static = [html.unescape(re.sub("<[^>]+>", "", row)) for row in rows]

    page = page_of(made)

    drawn = "[...document.querySelectorAll('#queries-table tbody tr')].map((r) => r.textContent)"
    assert page.value(drawn) == static
    assert any("0.315" in row for row in static)


def test_rows_are_sorted_by_what_stands_under_a_value(page_of, dataset):
    """The first relevant rank has no column of its own."""
    page = page_of(dataset)
    change = (
        "const box = document.getElementById('queries-sort'); box.value = '{}';"
        "box.dispatchEvent(new Event('change'))"
    )

    act(page, change.format("difficulty"))
    assert page.value(IDS)[0] == "q1"
    act(page, "document.getElementById('queries-reverse').click()")
    assert page.value("location.hash") == "#sort=-difficulty"
    assert page.value(IDS)[-1] != "q1"
    act(page, change.format("first.0"))
    assert page.value(IDS)[0] == "q1"
    assert page.value("document.getElementById('queries-sort').value") == "first.0"


def test_words_are_sorted_by_what_they_mean_and_nothing_comes_last(page_of, dataset):
    """Hard is above medium, and a run without a value has no chunks without a grade."""
    queries = dataset.queries()
    levels = {"q1": "medium", "q2": "hard", "q3": "easy"}
    dataset.write_queries(
        query.model_copy(update={"difficulty": levels.get(query.query_id)}) for query in queries
    )
    page = page_of(dataset, "#sort=difficulty")
    assert page.value(IDS)[:3] == ["q3", "q1", "q2"]

    page = page_of(dataset, "#sort=holes.0")
    assert page.value(IDS)[:2] == ["q1", "q2"]


def test_a_name_of_a_hundred_letters_makes_no_page_wider_than_a_phone(
    page_of, many_queries, make_ranking
):
    """Names of runs are made by machines."""
    made = many_queries(6)
    made.write_run("x" * 100, [make_ranking(f"q{n:04}", f"c{n:04}") for n in range(6)])
    page = page_of(made)
    resize(page, 390)

    assert page.value("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(page_of, dataset, scheme):
    """Contrast of 4.5 is what people with weak eyes need (WCAG AA)."""
    page = page_of(dataset)
    page.call(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-color-scheme", "value": scheme}],
    )
    style = page.value(
        "['--ink', '--soft', '--accent', '--better', '--worse', '--paper', '--card', '--mark'].map("
        "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"
    )
    *texts, paper, card, mark = style

    assert [t for t in texts if min(contrast(t, paper), contrast(t, card)) < 4.5] == []
    assert contrast(texts[0], mark) > 4.5
