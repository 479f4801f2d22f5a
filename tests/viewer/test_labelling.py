import json
import re
from http.client import HTTPConnection

import pytest
from label_samples import HOSTILE, answered_set, sampled_set

from ragforge.files.set.answer_labels import answer_labels
from ragforge.files.set.calibrations import calibration_files
from ragforge.pipeline.answer_labelling import AnswerDraw, sample_answers
from ragforge.records import answer_sha256
from ragforge.viewer.access import SiteAccess
from ragforge.viewer.server import serving

pytestmark = pytest.mark.slow
TOKEN = "a-token-of-some-length"
ROW = {"query_id": "q0", "chunk_id": "c0", "look": 1, "grade": 2, "skipped": False, "seconds": 1.5}


@pytest.fixture
def dataset(tmp_path):
    """A dataset with three drawn pairs, one of them hostile."""
    return sampled_set(tmp_path / "first", 3, texts={2: HOSTILE})


@pytest.fixture
def site(dataset, site_at):
    """The site on which Ann labels it."""
    with serving([dataset.path], lambda dataset: "report", TOKEN, "Ann") as access:
        yield site_at(access)


def post(site, row, path="/datasets/first/labels", **headers):
    """Return the status of sending a label, and what is said."""
    connection = HTTPConnection("127.0.0.1", site.access.port, timeout=20)
    usual = {
        "Cookie": f"{site.access.cookie}={TOKEN}",
        "Origin": f"http://127.0.0.1:{site.access.port}",
        "Content-Type": "application/json",
    }
    given = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
    body = row if isinstance(row, str) else json.dumps(row)
    connection.request("POST", path, body, {k: v for k, v in given.items() if v is not None})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply.status, text


def test_a_label_that_is_sent_is_kept(site, dataset):
    """Who closes the window loses nothing."""
    status, _ = post(site, ROW)

    [label] = calibration_files(dataset).labels()
    assert (status, label.grade, label.labeller, label.seconds) == (200, 2, "Ann", 1.5)
    assert (label.probability, label.stratum) == (0.8125, 77)


def test_a_label_is_taken_back_and_given_otherwise(site, dataset):
    """Undo is the second most used key."""
    post(site, ROW)
    removed = post(site, {**ROW, "undo": True})
    between = calibration_files(dataset).labels()
    post(site, {**ROW, "grade": 0})

    assert (removed, between) == ((200, '{"removed":true}'), [])
    assert [label.grade for label in calibration_files(dataset).labels()] == [0]


def test_a_label_that_is_taken_back_takes_its_grade_with_it(site, dataset):
    """After the last pair labels are grades of people in the set: there they stayed."""
    before = list(dataset.judgments())
    pairs = calibration_files(dataset).sample().pairs
    rows = [{**ROW, "query_id": pair.query_id, "chunk_id": pair.chunk_id} for pair in pairs]
    sent = [post(site, row)[0] for row in rows]
    between = [one.source for one in dataset.judgments()]
    taken_back = [post(site, {**row, "undo": True})[0] for row in rows]

    assert sent + taken_back == [200] * 2 * len(rows)
    assert between == ["human"] * len(between)
    assert list(dataset.judgments()) == before


def test_nobody_labels_under_another_name(site, dataset):
    """The name is that of who started the site."""
    post(site, {**ROW, "labeller": "Bob"})

    assert [label.labeller for label in calibration_files(dataset).labels()] == ["Ann"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Cookie": None}, 401),
        ({"Cookie": "ragforge_view_1=no"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": None}, 405),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_other_sites_and_strangers_label_nothing(site, dataset, headers, status):
    """A page elsewhere in the browser must not write in the user's name."""
    assert post(site, ROW, **headers)[0] == status
    assert calibration_files(dataset).labels() == []


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ("[]", 400),
        ("{", 400),
        ({**ROW, "grade": 7}, 400),
        ({**ROW, "query_id": "q9"}, 400),
        ({**ROW, "grade": None}, 400),
        ({**ROW, "text_sha256": "00"}, 400),
        ({**ROW, "look": 9}, 400),
        ({**ROW, "query_id": "q" * 20_000}, 413),
    ],
)
def test_what_is_no_label_is_refused(site, dataset, row, status):
    """Nothing else gets into the file."""
    assert post(site, row)[0] == status
    assert calibration_files(dataset).labels() == []


@pytest.mark.parametrize("path", ["/", "/datasets/first", "/api/datasets", "/datasets/first/label"])
def test_nothing_else_takes_anything(site, path):
    """One address writes, and writes labels."""
    assert post(site, ROW, path)[0] == 405


def test_a_site_without_a_labeller_takes_nothing(dataset, site_at):
    """Reading is the usual case."""
    with serving([dataset.path], lambda dataset: "report", TOKEN) as access:
        assert post(site_at(access), ROW)[0] == 405


def test_labels_are_never_taken_without_a_token():
    """Anybody who can run programs on this machine could grade otherwise."""
    with pytest.raises(ValueError, match="with a token only"):
        SiteAccess("127.0.0.1", 1, "", "Ann")


def test_the_page_goes_on_where_the_labels_end(site):
    """What is kept is not asked again."""
    post(site, ROW)
    page = site.ask("/datasets/first/label", Cookie=f"{site.access.cookie}={TOKEN}")

    assert (page.status, 'data-done="1"' in page.text) == (200, True)
    assert "connect-src 'self'" in page.getheader("Content-Security-Policy")
    assert "frame-ancestors 'none'" in page.getheader("Content-Security-Policy")


def test_the_labels_of_all_pairs_become_grades_of_people(site, dataset):
    """With the last pair the set gets them, and the page says that nothing is left."""
    for k in range(3):
        post(site, {**ROW, "query_id": f"q{k}", "chunk_id": f"c{k}"})
    page = site.ask("/datasets/first/label", Cookie=f"{site.access.cookie}={TOKEN}")

    assert (page.status, "has nothing to label: 3 are done" in page.text) == (409, True)
    assert {item.source for item in dataset.judgments()} == {"human"}


def test_the_page_of_a_dataset_leads_to_its_labels(site):
    """All is reached by clicking."""
    page = site.ask("/datasets/first", Cookie=f"{site.access.cookie}={TOKEN}").text

    assert 'href="first/label"' in page


def test_one_of_several_samples_keeps_its_labels(site, dataset):
    """The page of a sample sends its labels to that sample."""
    files = calibration_files(dataset)
    calibration_files(dataset, "spring").write_sample(files.sample())
    cookie = f"{site.access.cookie}={TOKEN}"
    page = site.ask("/datasets/first/label?sample=spring", Cookie=cookie)
    [path] = re.findall('data-post="([^"]*)"', page.text)
    status, _ = post(site, ROW, f"/datasets/first/{path}")

    assert (page.status, status) == (200, 200)
    assert (len(calibration_files(dataset, "spring").labels()), files.labels()) == (1, [])


FACTS = [{"fact_id": "f0", "status": "supported"}, {"fact_id": "f1", "status": "missing"}]
ANSWER_ROW = {
    "query_id": "q0",
    "system": "one",
    "answer_sha256": answer_sha256("Answer 0 of one."),
    "facts": FACTS,
    "skipped": False,
    "seconds": 4.5,
}
ANSWERS = "/datasets/answered/answer-labels"


@pytest.fixture
def answered(tmp_path):
    """A dataset with answers that were drawn to be labelled."""
    made = answered_set(tmp_path / "answered", 3)
    sample_answers(made, calibration_files(made), AnswerDraw(("one",), 3))
    return made


@pytest.fixture
def answer_site(answered, site_at):
    """The site on which Ann labels its answers."""
    with serving([answered.path], lambda dataset: "report", TOKEN, "Ann") as access:
        yield site_at(access)


def test_a_label_of_an_answer_is_kept_at_once(answer_site, answered):
    """Verdict and score follow here, and are not the page's to say."""
    status, _ = post(answer_site, {**ANSWER_ROW, "labeller": "Bob", "score": 1}, ANSWERS)

    [label] = answer_labels(calibration_files(answered))
    assert (status, label.labeller, label.seconds) == (200, "Ann", 4.5)
    assert (label.verdict, label.score) == ("partial", 0.5)


def test_a_label_of_an_answer_is_taken_back(answer_site, answered):
    """Undo must reach the file."""
    post(answer_site, ANSWER_ROW, ANSWERS)
    removed = post(answer_site, {**ANSWER_ROW, "undo": True}, ANSWERS)

    assert removed == (200, '{"removed":true}')
    assert answer_labels(calibration_files(answered)) == []


@pytest.mark.parametrize(
    ("row", "headers", "status"),
    [
        ({**ANSWER_ROW, "facts": FACTS[:1]}, {}, 400),
        ({**ANSWER_ROW, "query_id": "q9"}, {}, 400),
        ({**ANSWER_ROW, "answer_sha256": "0" * 64}, {}, 400),
        ({"query_id": "q0"}, {}, 400),
        (ANSWER_ROW, {"Cookie": None}, 401),
        (ANSWER_ROW, {"Origin": "http://evil.example"}, 403),
        (ANSWER_ROW, {"Origin": None}, 405),
    ],
)
def test_what_is_no_label_of_an_answer_is_refused(answer_site, answered, row, headers, status):
    """The address is guarded as that of pairs is."""
    assert post(answer_site, row, ANSWERS, **headers)[0] == status
    assert answer_labels(calibration_files(answered)) == []


def test_the_page_of_answers_is_reached_by_clicking_and_goes_on(answer_site):
    """What is kept is not asked again."""
    post(answer_site, ANSWER_ROW, ANSWERS)
    cookie = f"{answer_site.access.cookie}={TOKEN}"
    overview = answer_site.ask("/datasets/answered", Cookie=cookie)
    page = answer_site.ask("/datasets/answered/label-answers", Cookie=cookie)

    assert 'href="answered/label-answers"' in overview.text
    assert (page.status, 'data-done="1"' in page.text) == (200, True)
    assert "connect-src 'self'" in page.getheader("Content-Security-Policy")


def test_a_set_without_a_sample_of_answers_says_how_one_is_drawn(site):
    """The address may be typed by hand."""
    page = site.ask("/datasets/first/label-answers", Cookie=f"{site.access.cookie}={TOKEN}")

    assert (page.status, "calibrate sample --answers" in page.text) == (409, True)
