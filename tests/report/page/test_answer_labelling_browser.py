import json

import pytest
from devtools import FLAGS, NEEDS_BROWSER, navigate, opened
from label_samples import HOSTILE, answered_set

from ragforge.files.set.answer_labels import answer_labels
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.answer_labelling import (
    AnswerDraw,
    answer_labelling,
    sample_answers,
    take_answer_labels,
    write_answer_page,
)

pytestmark = NEEDS_BROWSER
READY = (
    "new Promise((done) => { const look = () => document.documentElement.dataset.ready"
    " ? done(1) : setTimeout(look, 10); look(); })"
)
SAVED = (
    "new Promise((done) => { URL.createObjectURL = (blob) => { blob.text().then(done);"
    " return '#'; }; document.getElementById('save').click(); })"
)
PLACE = "document.getElementById('place').textContent"
DRAW = AnswerDraw(("one",), 4)


@pytest.fixture
def page(tmp_path):
    """Open the page for answers of a set in a browser."""
    with opened_page(answered_set(tmp_path / "set"), tmp_path) as found:
        yield found


def opened_page(dataset, tmp_path):
    """Write the page, and return it opened."""
    path = tmp_path / "answers.html"
    sample_answers(dataset, calibration_files(dataset), DRAW)
    files = calibration_files(dataset)
    write_answer_page(dataset, files, answer_labelling(dataset, files, "Ann"), path)
    return opened(path, tmp_path / "profile", FLAGS)


def press(page, *keys):
    """Press keys when the page is there."""
    page.value(READY)
    for key in keys:
        page.press(key)


def test_facts_ticked_by_keys_come_into_the_calibration(page, tmp_path):
    """From the page to the report nothing is typed twice."""
    press(page, "1", "2", "2", "Enter", "s", "1", "2", "Enter", "u", "1", "1", "1", "2", "Enter")
    press(page, "1", "1", "1", "2", "2", "2", "m", "Enter")
    ended = page.value("!document.getElementById('end').hidden")
    rows = page.value(SAVED)
    path = tmp_path / "saved.jsonl"
    path.write_text(rows, encoding="utf-8")
    dataset = answered_set(tmp_path / "other")
    sample_answers(dataset, calibration_files(dataset), DRAW)
    taken = take_answer_labels(dataset, calibration_files(dataset), path)

    order = [json.loads(line)["query_id"] for line in rows.splitlines()]
    labels = {label.query_id: label for label in answer_labels(calibration_files(dataset))}
    found = [(labels[name].verdict, labels[name].score) for name in order]
    assert ended
    assert found == [("partial", 0.75), (None, None), ("partial", 0.5), ("incorrect", 0.0)]
    assert (taken.n_new, labels[order[1]].skipped, labels[order[3]].says_more) == (4, True, True)


def test_an_answer_without_all_ticks_does_not_go_on(page):
    """A forgotten fact is no missing one."""
    press(page, "1", "Enter")

    assert page.value(PLACE) == "Answer 1 of 4"
    assert page.value("document.getElementById('fault').textContent") == (
        "Something is not ticked yet."
    )


def test_browser_goes_on_where_the_page_was_closed(page, tmp_path):
    """Fifty answers take an hour."""
    press(page, "s", "s")
    navigate(page, tmp_path / "answers.html")
    page.value(READY)

    assert page.value(PLACE) == "Answer 3 of 4, 2 skipped, 2 not saved to a file"


def test_hostile_answers_do_nothing_in_a_browser(tmp_path):
    """A system must not run anything where its answers are labelled."""
    dataset = answered_set(tmp_path / "set", answers=dict.fromkeys(range(6), HOSTILE))
    with opened_page(dataset, tmp_path) as page:
        page.call("Log.enable")
        page.call("Runtime.enable")
        press(page)
        shown = page.value("document.getElementById('text').textContent")
        images = page.value("document.querySelectorAll('img').length")
        complaints = page.complaints()

    assert shown == HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
    assert (images, complaints) == (0, [])


@pytest.mark.parametrize("width", [320, 1400])
def test_the_page_fits_its_window(page, width):
    """Nobody scrolls sideways fifty times."""
    page.value(READY)
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=800,
        deviceScaleFactor=1,
        mobile=False,
    )

    assert page.value("document.documentElement.scrollWidth") <= width
