import json

import pytest
from devtools import FLAGS, NEEDS_BROWSER, navigate, opened
from label_samples import HOSTILE, sampled_set

from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.labelling import LabelSelection, labelling, take_label_file, write_label_page

pytestmark = NEEDS_BROWSER
READY = (
    "new Promise((done) => { const look = () => document.documentElement.dataset.ready"
    " ? done(1) : setTimeout(look, 10); look(); })"
)
PLACE = "document.getElementById('place').textContent"
QUERY = "document.getElementById('query').textContent"
KEYS = "20113ss2u31023012301230"
"""s skips and u takes back: the second skip is taken back and becomes a 3."""
GRADES = [2, 0, 1, 1, 3, None, None, 3, 1, 0, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]


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
def dataset(tmp_path):
    """A dataset with twenty drawn pairs."""
    return sampled_set(tmp_path / "set")


def label_page(browser, dataset, labeller="Ann", **wanted):
    """Open the page on which somebody labels."""
    files = calibration_files(dataset)
    path = dataset.path.parent / f"{labeller}.html"
    found = labelling(dataset, files, LabelSelection(labeller, **wanted))
    write_label_page(dataset, files, found, path)
    navigate(browser, path)
    browser.value(READY)
    return path


def press(browser, keys):
    """Press keys one after the other."""
    for key in keys:
        browser.press(key)


def saved(browser, folder):
    """Save the labels as a person does, and return the file."""
    browser.call(
        "Browser.setDownloadBehavior",
        behavior="allow",
        downloadPath=str(folder),
        eventsEnabled=True,
    )
    browser.value(
        "[...document.querySelectorAll('#save, #save-all')].find((b) => b.offsetParent).click()"
    )
    labeller = browser.value("document.getElementById('work').dataset.labeller")
    begun = browser.event(suggestedFilename=f"labels-{labeller}.jsonl")
    browser.event(guid=begun["guid"], state="completed")
    [path] = folder.glob("labels-*.jsonl")
    return path


def test_twenty_pairs_are_labelled_by_keys_and_come_into_the_calibration(
    browser, dataset, tmp_path
):
    """What is keyed is what counts, and nothing is typed twice."""
    label_page(browser, dataset)
    press(browser, KEYS)
    ended = browser.value("!document.getElementById('end').hidden")
    path = saved(browser, tmp_path / "downloads")

    taken = take_label_file(dataset, calibration_files(dataset), path)

    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    labels = {label.query_id: label for label in calibration_files(dataset).labels()}
    assert ended
    assert [row["grade"] for row in rows] == GRADES
    assert [labels[f"q{k}"].grade for k in range(20)] == GRADES
    assert (taken.n_new, taken.left_out) == (20, {})
    assert {label.probability for label in labels.values()} == {0.8125}
    assert all(label.seconds is not None and label.at for label in labels.values())


def test_batches_by_document_say_where_one_ends(browser, tmp_path):
    """Whoever stops there has labelled a beginning of the sample."""
    dataset = sampled_set(tmp_path / "many", 30)
    label_page(browser, dataset, "Doc", order="document")
    begins = browser.value(PLACE)
    press(browser, "0123012301230123012301230")
    second = browser.value(PLACE)

    rows = [json.loads(line) for line in saved(browser, tmp_path / "d").read_text().splitlines()]

    assert begins == "Pair 1 of 30, batch 1 of 2"
    assert second == "Pair 26 of 30, batch 2 of 2, 25 not saved to a file"
    assert {row["query_id"] for row in rows} == {f"q{k}" for k in range(25)}


def test_browser_goes_on_where_the_page_was_closed(browser, dataset, tmp_path):
    """Nobody labels two hundred pairs in one sitting."""
    path = label_page(browser, dataset, "Rea")
    press(browser, "012")
    navigate(browser, path)
    browser.value(READY)
    place = browser.value(PLACE)
    press(browser, "u3")

    rows = [json.loads(line) for line in saved(browser, tmp_path / "d").read_text().splitlines()]

    assert place == "Pair 4 of 20, 3 not saved to a file"
    assert [row["grade"] for row in rows] == [0, 1, 3]


def test_undo_shows_the_pair_before_and_forgets_its_grade(browser, dataset):
    """A slip of the finger must not cost a label."""
    label_page(browser, dataset, "Una")
    press(browser, "01u")

    assert browser.value(QUERY) == "What is 1, the number?"
    assert browser.value(PLACE) == "Pair 2 of 20, 1 not saved to a file"


def test_a_key_that_is_held_labels_once(browser, dataset):
    """A keyboard repeats thirty times a second."""
    label_page(browser, dataset, "Hal")
    for repeat in (False, True, True):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="2", autoRepeat=repeat)

    assert browser.value(QUERY) == "What is 1, the number?"


def test_buttons_do_what_keys_do(browser, dataset):
    """A telephone has no keys."""
    label_page(browser, dataset, "Bea")
    for target in ("[data-grade='3']", "#skip", "#undo", "[data-grade='0']"):
        browser.value(f'document.querySelector("{target}").click()')

    kept = browser.value(
        "JSON.parse(localStorage.getItem(document.getElementById('work')"
        ".dataset.sheet)).map((label) => label.grade)"
    )
    assert kept == [3, 0]


def test_the_page_tells_nothing_of_judge_run_stratum_and_answer(browser, dataset):
    """Who knows what the judge said agrees with it."""
    path = label_page(browser, dataset, "Blind")
    rows = browser.value(
        "(async () => { const bytes = Uint8Array.from(atob(document.getElementById('items')"
        ".textContent), (c) => c.charCodeAt(0)); return new Response(new Blob([bytes]).stream()"
        ".pipeThrough(new DecompressionStream('deflate'))).text(); })()"
    )
    page = path.read_text("utf-8").partition("<body>")[2].partition('<script type="application')[0]
    telling = ("judge-1", "bm25", "0.8125", "probability", "stratum", "It is 3.")

    assert [word for word in telling if word in rows or word in page] == []
    assert set(json.loads(rows)[0]) == {
        "query_id", "chunk_id", "look", "text_sha256", "wording_sha256", "decides", "given",
        "query", "before", "text", "answer", "batch",
    }  # fmt: skip


def test_an_expected_answer_that_may_be_seen_is_closed_until_asked_for(browser, dataset):
    """It leads to the passage that the question was made from."""
    label_page(browser, dataset, "Cyd", show_answer=True)
    before = browser.value("document.getElementById('expected').open")
    press(browser, "a")
    opened_by_key = browser.value("document.getElementById('expected').open")
    press(browser, "0")

    assert (before, opened_by_key) == (False, True)
    assert browser.value("document.getElementById('expected').open") is False


def test_hostile_texts_do_nothing_in_a_browser(browser, tmp_path):
    """A corpus must not run anything where it is labelled."""
    dataset = sampled_set(tmp_path / "set", 1, texts={0: HOSTILE})
    label_page(browser, dataset, "Eve <script>alert(1)</script>"[:28])

    shown = browser.value("document.getElementById('text').textContent")
    assert shown == HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("[...document.scripts].filter((s) => !s.type).length") == 1


def test_browser_takes_script_and_style_sheet_and_complains_of_nothing(browser, dataset, tmp_path):
    """A wrong digest in the policy would leave a page that keeps nothing."""
    label_page(browser, dataset, "Dan")
    press(browser, "0s1u")
    saved(browser, tmp_path / "d")

    below = browser.value(
        "innerHeight - document.getElementById('bar').getBoundingClientRect().bottom"
    )
    assert (below, browser.complaints()) == (0, [])


def test_no_text_is_ever_under_the_buttons(browser, tmp_path):
    """What is covered is not read, and no checker can tell its contrast."""
    label_page(browser, sampled_set(tmp_path / "set", 1, texts={0: "A long text. " * 900}), "Una")

    ends = browser.value(
        "['desk', 'bar'].map((id) => document.getElementById(id).getBoundingClientRect())"
        ".map((box) => [Math.round(box.top), Math.round(box.bottom)])"
    )
    assert browser.value("document.getElementById('desk').scrollHeight") > ends[0][1]
    assert ends[0][1] == ends[1][0]
    assert browser.value("document.activeElement.id") == "desk"


@pytest.mark.parametrize("width", [320, 400, 800, 1400])
def test_the_page_fits_its_window(browser, dataset, width):
    """Nobody scrolls sideways two hundred times."""
    label_page(browser, dataset, f"W{width}")
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=800,
        deviceScaleFactor=1,
        mobile=False,
    )
    wide = browser.value("document.documentElement.scrollWidth")
    browser.call("Emulation.clearDeviceMetricsOverride")

    assert wide <= width
