import pytest
from versioned_sets import make_set, refreshed

from ragforge.files.opening import open_dataset
from ragforge.pipeline.validating import validate
from ragforge.records import VersionDiff
from ragforge.records.refresh import CallCounts, DocumentsDiff, JudgmentsDiff


@pytest.fixture
def home(tmp_path):
    """A set with the versions 1 and 2."""
    path = make_set(tmp_path / "set").path
    refreshed(path, "b")
    return path


def diff_of(version):
    """Return the diff of a version that changed nothing."""
    return VersionDiff(
        version=version,
        parent=1,
        documents=DocumentsDiff(),
        items={},
        changes=(),
        judgments=JudgmentsDiff(),
        calls=CallCounts(),
        bridge=(),
    )


@pytest.mark.parametrize("place", [".", "versions/000001", "current"])
def test_a_refreshed_set_and_its_versions_are_valid(home, place):
    """What refreshes write must pass what is asked of any set."""
    found = validate(open_dataset(home / place))

    assert (found.problems, found.notes) == ([], [])


def test_a_file_in_the_place_of_a_link_is_a_problem(home):
    """Whoever edits it believes that it is the set."""
    (home / "queries.jsonl").unlink()
    (home / "queries.jsonl").write_text("{}", "utf-8")

    found = validate(open_dataset(home))

    assert found.problems == [
        "queries.jsonl: differs from current/queries.jsonl, which is published; it should be a "
        "link to it"
    ]


def test_a_diff_of_another_version_is_a_problem(home):
    """It would tell of changes that are not in this one."""
    open_dataset(home).past.write_diff(diff_of(7))

    found = validate(open_dataset(home))

    assert found.problems == ["diff.json: version: expected 2, as in manifest.json, got 7"]


def test_a_version_under_another_number_is_a_problem(home):
    """Evaluations name versions by the manifest, people by the folder."""
    (home / "versions" / "000001").rename(home / "versions" / "000009")

    found = validate(open_dataset(home / "versions" / "000009"))

    assert found.problems == ["manifest.json: version: expected 9, got 1"]


@pytest.mark.parametrize("name", ["documents.jsonl", "revisions.jsonl", "events.jsonl"])
def test_what_a_refresh_wrote_is_read_too(home, name):
    """The next refresh builds on it."""
    (home / "versions" / "000002" / name).write_text("{", "utf-8")

    [problem] = validate(open_dataset(home)).problems

    assert f"{name}:1:" in problem
