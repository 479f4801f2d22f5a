import pytest
from devtools import FLAGS, NEEDS_BROWSER, opened
from label_samples import HOSTILE, sampled_set

from ragforge.files.set.calibrations import calibration_files
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


def test_labels_keyed_on_the_served_page_are_kept_at_once(tmp_path):
    """Under the page's own policy, with its cookie, hostile texts among them."""
    dataset = sampled_set(tmp_path / "first", 4, texts={1: HOSTILE})
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html>", encoding="utf-8")
    with (
        serving([dataset.path], lambda dataset: "report", TOKEN, "Ann") as access,
        opened(blank, tmp_path / "profile", FLAGS) as page,
    ):
        page.call("Log.enable")
        page.call("Runtime.enable")
        page.call("Page.navigate", url=f"{access.address.replace('/?', '/datasets/first/label?')}")
        page.value(LOADED)
        page.value(READY)
        page.value(f"window.all = {SENT % 6}; 1")
        for key in "01su23":
            page.press(key)
        page.value("window.all")
        labels = {label.query_id: label.grade for label in calibration_files(dataset).labels()}
        complaints = page.complaints()

    assert labels == {"q0": 0, "q1": 1, "q2": 2, "q3": 3}
    assert complaints == []
