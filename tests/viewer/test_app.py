import json
import re
import shutil

import pytest

from ragforge.files.set.opening import create_dataset
from ragforge.pipeline.evaluated import with_content_id
from ragforge.records.queries import Selection
from ragforge.viewer.server import serving

pytestmark = pytest.mark.slow


HOSTILE = "<script>alert(1)</script>\u202e"


def test_the_list_shows_each_dataset_with_its_latest_mean(site, dataset, add, make_evaluation):
    """It answers how things stand without a click."""
    add(dataset, make_evaluation(mean=0.625, at="2026-01-02T00:00:00+00:00"))
    shown = site.ask("/").text

    assert ('href="datasets/first"' in shown, "0.625" in shown) == (True, True)


def test_a_mean_of_a_part_of_the_queries_says_so(site, dataset, add, make_evaluation):
    """A sample stood beside the whole set as if it were as good."""
    add(dataset, make_evaluation(at="2026-01-02T00:00:00+00:00", selection=Selection(split="dev")))

    pages = [site.ask(path).text for path in ("/", "/datasets/first")]

    assert [page.count(">split dev<") for page in pages] == [1, 2]


def test_a_dataset_shows_its_history_newest_first(site, dataset, add, make_evaluation):
    """The last line is what one looks for."""
    add(dataset, make_evaluation(mean=0.625, at="2026-01-02T00:00:00+00:00"))
    history = site.ask("/datasets/first").text.partition(">History<")[2]

    assert history.index("2026-01-02") < history.index("2026-01-01")


def test_a_dataset_shows_its_trend_as_a_chart_with_a_verdict(site, dataset, add, make_evaluation):
    """By the interval, so that noise is no news."""
    add(dataset, make_evaluation(mean=0.9, at="2026-01-02T00:00:00+00:00"))
    shown = site.ask("/datasets/first").text

    assert ("<svg" in shown, "IMPROVING +0.400" in shown) == (True, True)


def test_evaluations_of_one_day_stand_between_its_two_ends(site, dataset, add, make_evaluation):
    """Two runs that one command evaluated are a second apart, which is no trend."""
    at = "2026-01-01T12:00:0{}+00:00"
    add(dataset, make_evaluation("a", at=at.format(0)), make_evaluation("b", at=at.format(1)))

    page = site.ask("/datasets/first").text
    ends = re.findall(r'<text class="label" x="([\d.]+)" y="\d+"><tspan>([\d-]+)<', page)
    places = re.findall(r'<circle class="spot [^"]*" cx="([\d.]+)"', page)

    assert [day for _, day in ends] == ["2026-01-01", "2026-01-02"]
    assert places == ["197.0", "197.0", "34.0"]
    assert float(ends[-1][0]) + 30 <= 380


def test_a_new_dataset_appears(site, folder):
    """A folder is watched, not only what was in it at the start."""
    create_dataset(folder / "second", {"seed": "1"})
    names = [item["name"] for item in json.loads(site.ask("/api/datasets").text)["datasets"]]

    assert names == ["first", "second"]


def test_a_new_line_of_the_history_changes_the_tag(site, dataset, add, make_evaluation):
    """The page asks with the tag, and is told only what is new."""
    tag = site.ask("/datasets/first").getheader("ETag")
    same = site.ask("/datasets/first", If_None_Match=tag).status
    add(dataset, make_evaluation(mean=0.6))
    reply = site.ask("/datasets/first", If_None_Match=tag)

    assert (same, reply.status, reply.getheader("ETag") == tag) == (304, 200, False)


def test_the_api_tells_the_history(site, dataset, add, make_evaluation):
    """Programs read the same as people."""
    added = make_evaluation(mean=0.6)
    add(dataset, added)
    told = json.loads(site.ask("/api/datasets/first/history").text)

    assert told["evaluations"][1] == added.model_dump(mode="json")


def test_the_api_tells_the_latest_means_with_their_trend(site, dataset, add, make_evaluation):
    """A dashboard needs no more."""
    add(dataset, make_evaluation(mean=0.2, at="2026-01-02T00:00:00+00:00"))
    [told] = json.loads(site.ask("/api/datasets").text)["datasets"]
    measured = told["runs"]["bm25"]["measures"]["nDCG@10"]

    assert (measured["mean"], measured["trend"]["verdict"]) == (0.2, "DEGRADING")


def test_an_easier_set_is_no_improvement(site, dataset, add, make_evaluation):
    """Neither the page nor the API may take other questions for a better retriever."""
    now = make_evaluation(mean=0.95, at="2026-01-02T00:00:00+00:00")
    digests = now.digests.model_copy(update={"queries": "other"})
    add(dataset, with_content_id(now.model_copy(update={"digests": digests})))
    [told] = json.loads(site.ask("/api/datasets").text)["datasets"]

    assert told["runs"]["bm25"]["measures"]["nDCG@10"]["trend"]["verdict"] == "UNKNOWN"
    assert "UNKNOWN +0.450" in site.ask("/").text


@pytest.mark.parametrize(
    "path",
    [
        "/datasets/..",
        "/datasets/../../etc/passwd",
        "/datasets/%2e%2e/report",
        "/datasets/..%2f..%2fetc%2fpasswd",
        "/datasets/first%2f..%2fother",
        "/datasets/first/",
        "/datasets/first%00",
        "/api/datasets/../history",
        "/api/datasets/FIRST/history",
        "/manifest.json",
        "/datasets/first/manifest.json",
    ],
)
def test_only_the_names_of_datasets_lead_anywhere(site, folder, path):
    """A name is looked up, and never becomes a path."""
    create_dataset(folder.parent / "other", {"seed": "2"})

    assert site.ask(path).status == 404


def test_a_problem_of_the_api_is_json(site):
    """A program that asks for a wrong name can read why."""
    reply = site.ask("/api/datasets/none/history")

    assert (reply.status, list(json.loads(reply.text))) == (404, ["error"])


def test_a_report_is_rendered_once_for_the_same_files(site, rendered):
    """Rendering is slow."""
    texts = [site.ask("/datasets/first/report").text for _ in range(3)]

    assert (rendered, texts[2].endswith("report 1</html>")) == (["first"], True)


def test_a_report_is_rendered_again_when_a_file_changed(
    site, dataset, rendered, add, make_evaluation
):
    """It must never show what is no longer so."""
    site.ask("/datasets/first/report")
    add(dataset, make_evaluation(mean=0.6))

    assert site.ask("/datasets/first/report").text.endswith("report 2</html>")


def test_a_file_that_was_written_again_alike_needs_no_rendering(site, dataset, rendered):
    """A nightly run that changes nothing costs nothing."""
    site.ask("/datasets/first/report")
    manifest = dataset.path / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    manifest.unlink()
    manifest.write_text(text, encoding="utf-8")
    site.ask("/datasets/first/report")

    assert rendered == ["first"]


def test_a_report_keeps_its_own_policy(site):
    """Its script and style sheet are inline, under hashes."""
    policy = site.ask("/datasets/first/report").getheader("Content-Security-Policy")

    assert policy == "default-src 'none'; frame-ancestors 'none'"


def test_a_dataset_that_cannot_be_read_is_told_on_the_page(site, dataset):
    """One broken set must not hide the others, nor end the server."""
    (dataset.path / "manifest.json").write_text("{", encoding="utf-8")

    shown = site.ask("/").text

    assert 'data-state="problem"' in shown
    assert "manifest.json" in shown


def test_a_torn_history_is_shown_as_far_as_it_goes(site, dataset):
    """A line that is just being written is no reason to show nothing."""
    with (dataset.path / "history.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"evaluation_id"')
    shown = site.ask("/datasets/first").text

    assert ("passed over" in shown, "0.500" in shown) == (True, True)


def test_a_dataset_that_vanished_is_not_found_any_more(site, dataset, folder):
    """The page says so, and goes on asking."""
    create_dataset(folder / "second", {"seed": "1"})
    shutil.rmtree(dataset.path)

    assert (site.ask("/datasets/first").status, site.ask("/").status) == (404, 200)


def test_a_root_that_vanished_and_came_back_is_shown_again(site, dataset, folder):
    """A folder may be mounted anew."""
    folder.rename(folder.with_name("away"))
    gone = site.ask("/")
    folder.with_name("away").rename(folder)

    assert (gone.status, 'data-state="problem"' in gone.text) == (200, True)
    assert 'href="datasets/first"' in site.ask("/").text


def test_a_report_that_cannot_be_made_says_why(folder, dataset, site_at):
    """The reason is data's, and the server goes on."""
    with serving([folder], lambda found: found.require_queries()) as access:
        reply = site_at(access).ask("/datasets/first/report")

    assert (reply.status, "has no queries" in reply.text) == (409, True)


def test_a_bug_is_an_error_page_with_the_same_strictness(folder, dataset, site_at, caplog):
    """It ends one reply, not the server, and tells no details."""
    with serving([folder], lambda found: 1 / 0) as access:
        reply = site_at(access).ask("/datasets/first/report")

    assert (reply.status, "division" in reply.text) == (500, False)
    assert reply.getheader("Content-Security-Policy").startswith("default-src 'none'")
    assert "ZeroDivisionError" in caplog.text


def test_texts_of_data_are_no_markup(site, dataset, add, make_evaluation):
    """A run may be named anything in a history that somebody else wrote."""
    add(dataset, make_evaluation(run=HOSTILE))
    dataset.write_manifest(dataset.manifest.model_copy(update={"name": HOSTILE}))
    shown = site.ask("/datasets/first").text + site.ask("/").text

    assert ("<script>alert" in shown, "\u202e" in shown, "&lt;script&gt;" in shown) == (
        False,
        False,
        True,
    )


def test_datasets_of_one_name_are_told_apart(folder, dataset, render, site_at):
    """Two folders may each hold a `first`."""
    other = create_dataset(folder.parent / "more" / "first", {"seed": "1"})
    with serving([folder, other.path], render) as access:
        told = json.loads(site_at(access).ask("/api/datasets").text)["datasets"]

    assert len({item["name"] for item in told}) == 2


def test_a_dataset_that_is_named_twice_is_shown_once(folder, dataset, render, site_at):
    """A folder and one of its children may both be given."""
    with serving([folder, folder / "first", folder / ".." / "sets"], render) as access:
        told = json.loads(site_at(access).ask("/api/datasets").text)["datasets"]

    assert [item["name"] for item in told] == ["first"]
