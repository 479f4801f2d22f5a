import json
from http.client import HTTPConnection

import pytest
from label_samples import HOSTILE, sampled_set

from ragforge.files.set.calibrations import calibration_files
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

    assert 'href="/datasets/first/label"' in page
