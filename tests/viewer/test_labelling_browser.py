from contextlib import contextmanager

import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened, until
from label_samples import HOSTILE, answered_set, sampled_set

from ragforge.files.set.answer_labels import answer_labels
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.answer_labelling import AnswerDraw, sample_answers
from ragforge.viewer.access import Person
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


def test_batches_by_document_are_a_click_away_and_last_over_a_reload(tmp_path):
    """Batches are of the sample, not of what is open: they stay the same while one labels."""
    dataset = sampled_set(tmp_path / "first", 30)
    place = "document.getElementById('place').textContent"
    with served_page(dataset, "label", tmp_path) as page:
        drawn = page.value(place)
        page.value("[...document.querySelectorAll('.ways a')].at(-1).click()")
        until(page, f"{place} === 'Pair 1 of 30, batch 1 of 2'")
        page.value(READY)
        press(page, "0123012301230123012301230", sent=25)
        page.call("Page.reload")
        until(page, f"{place} === 'Pair 26 of 30, batch 2 of 2'")
        ids = {label.query_id for label in calibration_files(dataset).labels()}
        complaints = page.complaints()

    assert drawn == "Pair 1 of 30"
    assert ids == {f"q{k}" for k in range(25)}
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


def test_a_label_that_is_refused_is_told_and_not_sent_for_ever(tmp_path):
    """The text changed while the page was open: the server can be reached, and says no."""
    dataset = sampled_set(tmp_path / "first", 4)
    with served_page(dataset, "label", tmp_path) as page:
        files = calibration_files(dataset)
        files.write_sample(files.sample().model_copy(update={"pairs": files.sample().pairs[1:]}))
        press(page, "01", sent=2)
        until(page, "document.getElementById('fault').textContent.includes('refused')")
        told = page.value("document.getElementById('fault').textContent")
        labels = {label.query_id: label.grade for label in files.labels()}

    assert "1 refused: pair is not in the sample; reload the page" in told
    assert labels == {"q1": 1}


def test_two_people_label_in_two_browsers_under_their_own_names(tmp_path):
    """Each with an own token."""
    dataset = sampled_set(tmp_path / "first", 3)
    people = (Person("Ann", "a-token-that-only-ann-has"), Person("Bo", "a-token-that-only-bo-has"))
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html>", encoding="utf-8")
    with serving([dataset.path], lambda made: "report", TOKEN, people=people) as access:
        for person, keys in zip(people, ("012", "333"), strict=True):
            with opened(blank, tmp_path / f"profile-{person.name}", FLAGS) as page:
                address = access.address_for(person.token)
                page.call("Page.navigate", url=address.replace("/?", "/datasets/first/label?"))
                page.value(LOADED)
                page.value(READY)
                press(page, keys, sent=3)
        labels = [(item.labeller, item.grade) for item in calibration_files(dataset).labels()]

    assert sorted(labels) == [("Ann", 0), ("Ann", 1), ("Ann", 2), ("Bo", 3), ("Bo", 3), ("Bo", 3)]
