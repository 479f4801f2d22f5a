import hashlib
import os
import shutil

import pytest
from versioned_sets import N, make_set, refreshed, tag_of, write_state

from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import stage_version
from ragforge.records import Failure, Hit, ItemChange, Query, Ranking, VersionDiff
from ragforge.records.refresh import CallCounts, Cause, DocumentsDiff, JudgmentsDiff

FAILURE = Failure(what="judge", key="q00/c01", kind="error", message="no route")
DIFF = VersionDiff(
    version=1,
    parent=0,
    documents=DocumentsDiff(),
    items={},
    changes=(),
    judgments=JudgmentsDiff(),
    calls=CallCounts(),
    bridge=(),
)


@pytest.fixture
def parent(tmp_path):
    """A set with a run, answers, failures, and what refreshes leave."""
    made = make_set(tmp_path / "set")
    made.write_answers("careful", [])
    made.write_answer_grades("careful", [])
    made.replace_failures("judge", [FAILURE], lambda key: True)
    made.past.write_diff(DIFF)
    made.past.write_revisions([Query(query_id="q00", query="Old?")])
    made.past.write_events(
        [ItemChange(version=1, query_id="q00", action="added", revision=1, causes=(CAUSE,))]
    )
    return made


CAUSE = Cause(kind="too few queries")


def test_a_version_begins_with_the_files_of_its_parent(parent):
    """What does not change is not computed anew."""
    with stage_version(parent, 2) as staged:
        names = sorted(path.name for path in staged.files.iterdir())

        assert names == [
            "README.md",
            "chunks.jsonl",
            "events.jsonl",
            "failures.jsonl",
            "judgments.jsonl",
            "manifest.json",
            "queries.jsonl",
            "revisions.jsonl",
        ]
        assert staged.failures() == [FAILURE]


def test_its_manifest_names_its_parent_and_the_files_that_are_there(parent):
    """A version can be traced back, and no entry is of a run that was made on another."""
    digest = digest_file(parent.files / "manifest.json")

    with stage_version(parent, 7) as staged:
        found = staged.manifest

        assert (found.version, found.parent, found.name) == (7, digest, parent.manifest.name)
        assert sorted([*found.files, "manifest.json"]) == sorted(
            path.name for path in staged.files.iterdir()
        )


def test_a_file_that_the_manifest_lacked_gets_an_entry(parent):
    """Somebody put it there by hand, and it is part of the set."""
    text = '{"query":"How?"}\n\n{"query":"Why?"}\n'
    (parent.files / "real_queries.jsonl").write_text(text, "utf-8")

    with stage_version(parent, 2) as staged:
        entry = staged.manifest.files["real_queries.jsonl"]

    assert (entry.sha256, entry.records) == (hashlib.sha256(text.encode()).hexdigest(), 2)


def test_an_entry_without_its_file_is_dropped(parent):
    """A manifest that lists what is not there cannot be trusted."""
    (parent.files / "README.md").unlink()

    with stage_version(parent, 2) as staged:
        assert "README.md" not in staged.manifest.files


def test_what_is_not_of_the_set_stays_where_it_is(parent):
    """Reports and notes of people lie beside it."""
    (parent.path / "report.html").write_text("mine", "utf-8")
    (parent.path / "CHANGELOG.md").write_text("mine", "utf-8")

    with stage_version(parent, 2) as staged:
        assert not (staged.files / "report.html").exists()
        assert not (staged.files / "CHANGELOG.md").exists()


def test_large_files_are_not_copied(parent):
    """A corpus of a million chunks is a gigabyte a night."""
    with stage_version(parent, 2) as staged:
        assert (staged.files / "chunks.jsonl").samefile(parent.files / "chunks.jsonl")


def test_writing_leaves_the_parent_as_it_is(parent):
    """The two share files on the disk."""
    with stage_version(parent, 2) as staged:
        write_state(staged, "b")
        staged.write_run("bm25", [Ranking(query_id="q01", ranking=(Hit(chunk_id="c", score=1),))])

        assert tag_of(staged) == "b"
        assert tag_of(Dataset(parent.path)) == "a"
        assert parent.run("bm25")[0].query_id == "q00"


def test_a_disk_without_second_names_gets_copies(parent, monkeypatch):
    """Not every disk can give a file two names."""

    def refuse(*_, **__):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    with stage_version(parent, 2) as staged:
        assert not (staged.files / "chunks.jsonl").samefile(parent.files / "chunks.jsonl")
        assert len(list(staged.chunks())) == N


def test_a_link_out_of_the_set_gets_into_no_version(parent, tmp_path):
    """A received set could publish any file of its reader's."""
    (tmp_path / "store").mkdir()
    (parent.files / "chunks.jsonl").rename(tmp_path / "store" / "blob")
    (parent.files / "chunks.jsonl").symlink_to(tmp_path / "store" / "blob")

    with pytest.raises(DataError, match=r"chunks\.jsonl: leads to .*blob, which is outside of"):
        open_dataset(parent.path)


def test_its_call_store_is_that_of_the_set(parent):
    """What was asked for one version is not paid for again for the next."""
    with stage_version(parent, 2) as staged:
        assert staged.store_path == parent.store_path
        assert staged.home == parent.path


def test_nothing_is_left_where_it_is_not_published(parent):
    """A night of no change or of failure must not take up room."""
    with pytest.raises(KeyError, match="why"), stage_version(parent, 2):
        raise KeyError("why")

    assert not (parent.path / "versions").exists()


def test_what_a_refreshed_set_stages_comes_from_what_is_published(parent):
    """Versions follow each other."""
    refreshed(parent.path, "b")

    with stage_version(open_dataset(parent.path), 3) as staged:
        assert (tag_of(staged), staged.manifest.version) == ("b", 3)
        assert "CHANGELOG.md" in staged.manifest.files


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "runs/../../x", "manifest.json"])
def test_a_manifest_cannot_name_files_elsewhere(parent, name):
    """It came from somewhere, and would bring any file into what is published."""
    manifest = parent.manifest
    entry = manifest.files["queries.jsonl"]
    parent.write_manifest(manifest.model_copy(update={"files": {name: entry}}))

    with pytest.raises(DataError, match="expected the name of another file in the folder, got"):
        stage_version(parent, 2).__enter__()


def test_a_file_that_took_the_place_of_a_link_is_told_before_work_begins(parent):
    """Somebody edited a file that is not the published one; it would be overlooked for ever."""
    refreshed(parent.path, "b")
    (parent.path / "queries.jsonl").unlink()
    (parent.path / "queries.jsonl").write_text("{}", "utf-8")

    with pytest.raises(DataError, match=r"queries\.jsonl: differs from .*current/queries\.jsonl"):
        stage_version(open_dataset(parent.path), 3).__enter__()


def test_a_copy_that_followed_the_links_is_told(parent, tmp_path):
    """Some ways of copying make files and folders of links; there the set lies beside them."""
    refreshed(parent.path, "b")
    without_targets = shutil.ignore_patterns("runs", "answers", "answer_grades")
    copy = shutil.copytree(parent.path, tmp_path / "copy", ignore=without_targets)

    with pytest.raises(
        DataError, match=r"copy that followed links, remove \S+current and \S+versions"
    ):
        stage_version(open_dataset(copy), 3).__enter__()


def test_a_folder_in_the_place_of_the_link_is_told(parent, tmp_path):
    """The files beside it are links into it: the versions must not be removed."""
    refreshed(parent.path, "b")
    (parent.path / "current").unlink()
    (parent.path / "current").mkdir()

    with pytest.raises(DataError, match="found something else; move it away; then"):
        stage_version(Dataset(parent.path), 3).__enter__()


def test_only_the_published_version_is_a_parent(parent):
    """Else what was published since would be lost, and it would be told after the calls."""
    refreshed(parent.path, "b")

    with pytest.raises(
        UsageError, match=r"000001: is not the published version; name .*set instead"
    ):
        stage_version(open_dataset(parent.path / "versions" / "000001"), 3).__enter__()


def test_a_link_of_somebody_that_is_called_current_is_left_alone(parent, tmp_path):
    """It is a common name."""
    (parent.path / "current").symlink_to(tmp_path)

    assert tag_of(open_dataset(parent.path)) == "a"
    with pytest.raises(DataError, match="current: expected a link to a version, found something"):
        stage_version(open_dataset(parent.path), 2).__enter__()
