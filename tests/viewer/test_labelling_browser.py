from contextlib import contextmanager

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened
from label_samples import HOSTILE, answered_set, sampled_set

from ragforge.files.set.answer_labels import answer_labels
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.answer_labelling import AnswerDraw, sample_answers
from ragforge.viewer.server import serving

pytestmark = [*NEEDS_BROWSER, pytest.mark.slow]
TOKEN = "a-token-of-some-length"
READY = (
    "new Promise((done) => { const look = () => document.documentElement.dataset.ready"
    " ? done(1) : setTimeout(look, 10); look(); })"
)
LOADED = (
    "new Promise((done) => document.readyState === 'complete' && location.protocol === 'http:'"
    " ? done(1) : addEventListener('load', () => done(1)))"
)
SENT = (
    "new Promise((done) => { const sent = window.fetch; let n = %d; window.fetch = async"
    " (...all) => { const reply = await sent(...all); n -= 1; if (!n) setTimeout(done, 0, 1);"
    " return reply; }; window.armed = true; })"
)


@contextmanager
def served_page(dataset, name, tmp_path):
    """Open a page of a site on which Ann labels a dataset."""
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html>", encoding="utf-8")
    with (
        serving([dataset.path], lambda dataset: "report", TOKEN, "Ann") as access,
        opened(blank, tmp_path / "profile", FLAGS) as page,
    ):
        page.call("Log.enable")
        page.call("Runtime.enable")
        address = access.address.replace("/?", f"/datasets/{dataset.path.name}/{name}?")
        page.call("Page.navigate", url=address)
        page.value(LOADED)
        page.value(READY)
        yield page


def press(page, keys, sent):
    """Press keys, and wait until so many labels were sent."""
    page.value(f"window.all = {SENT % sent}; 1")
    for key in keys:
        page.press(key)
    page.value("window.all")


def test_labels_keyed_on_the_served_page_are_kept_at_once(tmp_path):
    """Under the page's own policy, with its cookie, hostile texts among them."""
    dataset = sampled_set(tmp_path / "first", 4, texts={1: HOSTILE})
    with served_page(dataset, "label", tmp_path) as page:
        press(page, "01su23", sent=6)
        labels = {label.query_id: label.grade for label in calibration_files(dataset).labels()}
        complaints = page.complaints()

    assert labels == {"q0": 0, "q1": 1, "q2": 2, "q3": 3}
    assert complaints == []


def test_facts_ticked_on_the_served_page_are_kept_at_once(tmp_path):
    """The page of answers sends as the page of pairs does, and takes back."""
    answers = dict.fromkeys(range(2), HOSTILE)
    dataset = answered_set(tmp_path / "first", 2, answers=answers)
    sample_answers(dataset, calibration_files(dataset), AnswerDraw(("one",), 2))
    with served_page(dataset, "label-answers", tmp_path) as page:
        first = ["1", "2", "Enter"]
        press(page, [*first, "s", "u", "1", "2", "2", "2", "2", "m", "Enter"], sent=4)
        labels = answer_labels(calibration_files(dataset))
        ended = page.value("document.querySelector('#end p').textContent")
        complaints = page.complaints()

    assert sorted((label.verdict, label.score) for label in labels) == [
        ("correct", 1.0),
        ("incorrect", 0.5),
    ]
    assert {label.labeller for label in labels} == {"Ann"}
    assert (ended, complaints) == ("All 2 answers are labelled, and kept.", [])
