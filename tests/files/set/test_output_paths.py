import os
from pathlib import Path

import pytest
from versioned_sets import make_set, refreshed

from ragforge.errors import UsageError
from ragforge.files.manifest import Manifest
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.output_paths import check_outputs
from ragforge.records import Hit, Query, Ranking

HEADER = '{\n"format": "ragforge baseline",\n"schema": 1,\n'


@pytest.fixture(autouse=True)
def dataset(tmp_path, monkeypatch):
    """A dataset in the folder `set`, and a baseline beside it."""
    monkeypatch.chdir(tmp_path)
    made = Dataset(tmp_path / "set")
    made.write_manifest(Manifest(name="set"))
    made.write_queries([Query(query_id="q", query="What?")])
    made.write_run("a", [Ranking(query_id="q", ranking=(Hit(chunk_id="c", score=1.0),))])
    made.write_card("# Card")
    Path("old.json").write_text(HEADER, "utf-8")
    Path("set/baseline.json").write_text(HEADER, "utf-8")


@pytest.mark.parametrize(
    "name",
    [
        "queries.jsonl",
        "history.jsonl",
        "judgments.jsonl",
        "manifest.json",
        "README.md",
        "runs/a.jsonl",
        "runs/new.xml",
        "history/0123.jsonl.gz",
        ".ragforge/calls.sqlite",
        "../set/queries.jsonl",
    ],
)
@pytest.mark.parametrize("flag", ["--junit", "--write-baseline"])
def test_what_a_dataset_keeps_is_not_written_over(flag, name):
    """A slip of the hand must not cost a set that people graded."""
    with pytest.raises(UsageError, match=r": is a file of the dataset .*set; name another"):
        check_outputs({flag: Path("set") / name})


def test_a_link_to_a_file_of_a_dataset_is_that_file():
    """Links are written through."""
    Path("link.xml").symlink_to("set/queries.jsonl")

    with pytest.raises(UsageError, match="is a file of the dataset"):
        check_outputs({"--junit": Path("link.xml")})


@pytest.mark.parametrize("name", ["old.json", "set/baseline.json"])
def test_a_baseline_is_replaced_by_a_baseline_only(name):
    """It is what later runs are held against."""
    check_outputs({"--write-baseline": Path(name)}, {"--baseline": Path(name)})

    with pytest.raises(UsageError, match="is a baseline, which --write-baseline alone replaces"):
        check_outputs({"--markdown": Path(name)})


def test_two_outputs_are_two_files():
    """The second would be all that is left."""
    with pytest.raises(UsageError, match=r"^--markdown x: is the file of --junit too"):
        check_outputs({"--junit": Path("x"), "--markdown": Path("./x")})


def test_two_names_of_one_file_are_one_file():
    """A hard link is another name."""
    Path("x").write_text("", "utf-8")
    os.link("x", "y")

    with pytest.raises(UsageError, match="is the file of --junit too"):
        check_outputs({"--junit": Path("x"), "--markdown": Path("y")})


def test_what_is_read_is_not_written():
    """Settings are gone after the first run."""
    with pytest.raises(UsageError, match=r"is the file of --config too"):
        check_outputs({"--markdown": Path("r.toml")}, {"--config": Path("r.toml")})


def test_a_folder_is_no_output():
    """It would be found out only after all was done."""
    with pytest.raises(UsageError, match="is a folder; name a file"):
        check_outputs({"--junit": Path("set")})


@pytest.mark.parametrize(
    "name", ["gate.xml", "set/report.html", "set/log.jsonl", "set/out/gate.xml", "/dev/null"]
)
def test_other_files_are_taken(name):
    """People keep things together."""
    before = sorted(Path("set").rglob("*"))
    check_outputs({"--junit": Path(name), "--markdown": None}, {"--baseline": None})

    assert sorted(Path("set").rglob("*")) == before


def test_a_manifest_of_somebody_else_makes_no_dataset():
    """Browser extensions have a manifest.json too."""
    Path("manifest.json").write_text('{"manifest_version": 3}', "utf-8")
    check_outputs({"--junit": Path("runs/x.jsonl")})

    assert not Path("runs").exists()


@pytest.fixture
def versions():
    """The dataset, refreshed."""
    refreshed(make_set(Path("versioned")).path, "b")


@pytest.mark.parametrize(
    "name",
    [
        "queries.jsonl",
        "current/queries.jsonl",
        "runs/new.xml",
        "versions/000001/queries.jsonl",
        "versions/000001/runs/new.xml",
        "versions/new.xml",
        "rejected/000003/queries.jsonl",
        "documents.jsonl",
        "diff.json",
        "history.jsonl",
    ],
)
@pytest.mark.usefixtures("versions")
def test_files_of_versions_are_not_written_over(name):
    """Going back to a version needs it as it was."""
    with pytest.raises(UsageError, match=r": is a file of the dataset .*versioned"):
        check_outputs({"--junit": Path("versioned") / name})


@pytest.mark.usefixtures("versions")
def test_a_report_beside_the_versions_is_no_file_of_theirs():
    """The directory is where people look for it."""
    assert check_outputs({"--junit": Path("versioned/report.xml")}) is None
