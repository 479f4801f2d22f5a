"""Pages are read by axe, the checker of accessible pages, at three widths, light and dark."""

import random
import subprocess
import sys
from zipfile import ZipFile

import pytest
from devtools import FLAGS, NEEDS_BROWSER, navigate, opened, until
from label_samples import answered_set, sample_of, sampled_set

import ragforge as rf
from ragforge.evaluating.summary import summarise
from ragforge.files.formats.review_sheet import SheetRow
from ragforge.files.set.calibrations import calibration_files
from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.answer_labelling import (
    AnswerDraw,
    answer_labelling,
    sample_answers,
    write_answer_page,
)
from ragforge.pipeline.labelling import LabelSelection, labelling, write_label_page
from ragforge.records import (
    Answer,
    Chunk,
    Evidence,
    Judgment,
    Query,
    SampledPair,
    label_text_sha256,
)
from ragforge.report.page.page import render_html
from ragforge.report.page.review import render_review
from ragforge.viewer.access import Person
from ragforge.viewer.server import serving

pytestmark = NEEDS_BROWSER

UNFOLDED = "for (const folded of document.querySelectorAll('details')) folded.open = true"
LABEL_READY = (
    "new Promise((done) => { const look = () => document.documentElement.dataset.ready"
    " ? done(1) : setTimeout(look, 10); look(); })"
)
TABLE_READY = (
    "new Promise((done) => { const look = () => document.getElementById('queries-table')"
    ".dataset.ready ? done(1) : setTimeout(look, 10); look(); })"
)
SERVED = (
    "new Promise((done) => document.readyState === 'complete' && location.protocol === 'http:'"
    " ? done(1) : addEventListener('load', () => done(1)))"
)
OPENED = (
    "new Promise((done) => { const look = () => document.querySelector('dialog[open] h3')"
    " ? done(1) : setTimeout(look, 10); look(); })"
)
DOCUMENTS = {
    f"{name}.md": "\n\n".join(
        f"## Part {n}\n\nThe {name} of room {n} is a device that moves {n * 7} crates an hour."
        for n in range(1, 7)
    )
    for name in ("crane", "lift", "winch", "ferry")
}
WIDTHS = (400, 800, 1400)
SCHEMES = ("light", "dark")
RUN = """axe.run(document, {resultTypes: ['violations', 'incomplete']}).then((found) =>
  [...found.violations, ...found.incomplete].flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.html.slice(0, 200)} ${[...node.any, ...node.all, ...node.none]
      .map((check) => check.message).join('; ')}`)))"""


@pytest.fixture(scope="session")
def script(tmp_path_factory):
    """Return axe as a package brings it; what else the package needs is left out."""
    place = tmp_path_factory.mktemp("axe")
    download = ["-m", "pip", "download", "-q", "--no-deps", "-d", place, "axe-playwright-python"]
    subprocess.run([sys.executable, *download], check=True)
    [wheel] = place.glob("*.whl")
    with ZipFile(wheel) as files:
        return files.read("axe_playwright_python/axe.min.js").decode()


@pytest.fixture
def findings(browser, script):
    """Return what is wrong, and what axe cannot decide, at each width and in each scheme."""

    def run():
        browser.call("Runtime.evaluate", expression=script)
        shown = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]
        return [f"{at}: {found}" for at in shown for found in read_at(browser, *at)]

    yield run
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    browser.call("Emulation.clearDeviceMetricsOverride")


def read_at(browser, width, scheme):
    """Return what axe finds in a window of some width."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.call("Emulation.setEmulatedMedia", features=[feature])
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    # The page's own script answers to a new width in the frame after.
    browser.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    return browser.value(RUN)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of this module."""
    folder = tmp_path_factory.mktemp("browser")
    blank = folder / "blank.html"
    blank.write_text("<title>blank</title>", encoding="utf-8")
    with opened(blank, folder / "profile", FLAGS) as page:
        page.call("Runtime.enable")
        yield page


@pytest.fixture
def show(browser, tmp_path):
    """Open a page."""

    def run(markup):
        path = tmp_path / "page.html"
        path.write_text(markup, encoding="utf-8")
        navigate(browser, path)
        return browser

    return run


def report_of(made):
    """Return the report of a dataset as a page."""
    return render_html(summarise(made))


def test_a_report_of_two_runs_has_nothing_that_axe_finds(show, findings, many_queries):
    """Texts on plain grounds, names of tables, one landmark of each name."""
    page = show(report_of(many_queries(12)))
    page.value(TABLE_READY)

    assert findings() == []


def test_six_runs_unfolded_have_nothing_that_axe_finds(show, findings, many_queries, make_ranking):
    """Matrix, ten pairs, pictures and lists, all of them open."""
    made = many_queries(12)
    for name in ("third", "fourth", "fifth", "sixth"):
        made.write_run(name, [make_ranking(f"q{n:04}", f"c{n:04}") for n in range(12)])
    page = show(report_of(made))
    page.value(TABLE_READY)
    page.value(UNFOLDED)

    assert findings() == []


def test_hostile_texts_unfolded_have_nothing_that_axe_finds(show, findings, hostile_dataset):
    """Ids of a thousand letters, texts from right to left, markup that is none."""
    page = show(report_of(hostile_dataset))
    page.value(TABLE_READY)
    page.value(UNFOLDED)

    assert findings() == []


def test_a_report_of_nothing_has_nothing_that_axe_finds(show, findings, new_dataset):
    """No run, no judgment, no answer."""
    made = new_dataset("bare")
    made.write_chunks([Chunk(chunk_id="c", doc_id="d", text="So.")])
    made.write_queries([Query(query_id="q", query="How?")])
    show(report_of(made))

    assert findings() == []


def test_an_opened_query_has_nothing_that_axe_finds(show, findings, dataset):
    """Evidence marked, grades as badges, what the judge said."""
    page = show(report_of(dataset))
    page.value(TABLE_READY)
    page.value("location.hash = '#q=q2'")
    page.value(OPENED)
    page.value(UNFOLDED)

    assert findings() == []


def test_the_review_page_has_nothing_that_axe_finds(show, findings):
    """Decisions, texts to edit, a bar that stays."""
    empty = dict.fromkeys(SheetRow.__dataclass_fields__, "")
    rows = [
        SheetRow(**{**empty, "query_id": name, "revision": "1", "query": f"What is {name}?"})
        for name in ("q1", "q2")
    ]

    show(render_review("set", rows))

    assert findings() == []


def test_label_pages_have_nothing_that_axe_finds(browser, findings, tmp_path):
    """Grades of passages, and facts of answers."""
    made = sampled_set(tmp_path / "set")
    files = calibration_files(made)
    write_label_page(
        made, files, labelling(made, files, LabelSelection("Ann")), tmp_path / "label.html"
    )
    navigate(browser, tmp_path / "label.html")
    browser.value(LABEL_READY)
    assert findings() == []

    made = answered_set(tmp_path / "answered")
    sample_answers(made, calibration_files(made), AnswerDraw(("one",), 4))
    files = calibration_files(made)
    write_answer_page(made, files, answer_labelling(made, files, "Ann"), tmp_path / "answers.html")
    navigate(browser, tmp_path / "answers.html")
    browser.value(LABEL_READY)
    assert findings() == []


def test_a_sweep_has_nothing_that_axe_finds(browser, findings, tmp_path):
    """Panels with axes, keys of lines, and the table."""
    made = rf.generate(DOCUMENTS, out=tmp_path / "set", n=8, allow_shortfall=True)
    swept = made.sweep(sizes=[200, 400], overlaps=["0", "20%"])
    swept.write(tmp_path / "sweep.html")
    navigate(browser, tmp_path / "sweep.html")

    assert findings() == []


@pytest.fixture
def wordy(tmp_path, make_ranking):
    """A set whose texts fill many lines at any width, with two runs."""
    chance = random.Random(1)
    words = [name for text in DOCUMENTS.values() for name in text.split() if name.isalpha()]

    def text(length):
        return " ".join(chance.choices(words, k=length))

    made = create_dataset(tmp_path / "wordy", {})
    chunks = [Chunk(chunk_id=f"c{n}", doc_id="d", text=text(70)) for n in range(12)]
    made.write_chunks(chunks)
    made.write_queries(
        Query(
            query_id=f"q{n}",
            query=f"{text(18)}?",
            expected_answer=text(40),
            evidence=(Evidence(doc_id="d", chunk_id=f"c{n}", quote=chunks[n].text[20:120]),),
        )
        for n in range(6)
    )
    made.write_judgments(Judgment(query_id=f"q{n}", chunk_id=f"c{n}", grade=3) for n in range(6))
    for name in ("one", "two"):
        ids = [chunk.chunk_id for chunk in chunks]
        rankings = [make_ranking(f"q{n}", *chance.sample(ids, 10)) for n in range(6)]
        made.write_run(name, rankings)
    return made


def test_pages_of_view_have_nothing_that_axe_finds(browser, findings, wordy):
    """Lists, two runs side by side, a query with its texts, and a document."""
    pages = ("", "/queries", "/query?q=q1", "/document?doc=d&q=q1", "/nights")
    with serving([wordy.path], lambda dataset: "report") as access:
        for place in ("", *(f"datasets/wordy{page}" for page in pages)):
            browser.call("Page.navigate", url=access.address.partition("?")[0] + place)
            browser.value(SERVED)
            assert (place, findings()) == (place, [])


@pytest.fixture
def drawn(wordy):
    """The set with a sample of pairs and one of answers, ready to be labelled, texts long."""
    longer = [chunk.model_copy(update={"text": f"{chunk.text} " * 8}) for chunk in wordy.chunks()]
    wordy.write_chunks(longer)
    texts = {chunk.chunk_id: chunk.text for chunk in wordy.chunks()}
    pairs = tuple(
        SampledPair(
            query_id=f"q{n}",
            chunk_id=f"c{n}",
            text_sha256=label_text_sha256(texts[f"c{n}"]),
            stratum=0,
            probability=0.5,
            twice=False,
        )
        for n in range(6)
    )
    calibration_files(wordy).write_sample(sample_of(pairs))
    wordy.write_answers("rag", [Answer(query_id=f"q{n}", answer=texts[f"c{n}"]) for n in range(6)])
    sample_answers(wordy, calibration_files(wordy), AnswerDraw(("rag",), 4))
    return wordy


@pytest.mark.parametrize(
    "place",
    [
        "review",
        "review?order=document",
        "review?q=q1",
        "label",
        "label?order=document",
        "label-answers",
    ],
)
def test_pages_of_view_where_people_decide_have_nothing_that_axe_finds(
    browser, findings, drawn, place
):
    """Ways to other batches, decisions, texts to edit, grades, facts, a bar that stays."""
    ann = Person("Ann", "a-token-that-only-ann-has")
    with serving(
        [drawn.path], lambda dataset: "report", "a-token-for-reading-it", people=(ann,)
    ) as access:
        where, _, asked = place.partition("?")
        address = access.address_for(ann.token)
        browser.call(
            "Page.navigate",
            url=address.replace("/?", f"/datasets/wordy/{where}?{asked}&"),
        )
        browser.value(SERVED)
        is_ready = "document.documentElement.dataset.ready || document.querySelector('article')"
        until(browser, f"location.pathname.endsWith('/{where}') && ({is_ready})")
        browser.value("document.querySelector('input[value=edit]')?.click()")

        assert findings() == []
