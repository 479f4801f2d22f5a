import os

import pytest
from versioned_sets import everything, make_set, mixture, refreshed, tag_of, write_state

from ragforge.errors import ChangedMeanwhileError, DataError
from ragforge.files import atomic
from ragforge.files.manifest import digest_file
from ragforge.files.set.dataset import Dataset
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import current_version, versions_of
from ragforge.files.set.versions import publish, reject, stage_version
from ragforge.records import Hit, Ranking


@pytest.fixture
def home(tmp_path):
    """A set that was never refreshed."""
    return make_set(tmp_path / "set").path


def test_a_published_version_is_what_is_opened(home):
    """Nothing else has to be told of it."""
    found = refreshed(home, "b")

    assert (tag_of(found), found.manifest.version, current_version(home)) == ("b", 2, 2)
    assert tag_of(open_dataset(home)) == "b"


def test_the_set_before_the_first_refresh_becomes_a_version_too(home):
    """Its runs and answers are what later versions are compared with."""
    digests = {name: digest_file(home / name) for name in open_dataset(home).manifest.files}
    digest = digest_file(home / "manifest.json")

    refreshed(home, "b")

    first = open_dataset(home / "versions" / "000001")
    assert {name: digest_file(first.files / name) for name in digests} == digests
    assert first.run_names() == ["bm25"]
    assert open_dataset(home).manifest.parent == digest


@pytest.mark.parametrize("name", ["queries.jsonl", "chunks.jsonl", "manifest.json", "README.md"])
def test_scripts_find_the_published_files_by_name(home, name):
    """They read DIR/queries.jsonl, and nobody rewrites them for the first refresh."""
    refreshed(home, "b")
    refreshed(home, "c")

    assert (home / name).is_symlink()
    assert (home / name).read_bytes() == (home / "versions" / "000003" / name).read_bytes()


def test_runs_made_later_are_found_by_name(home):
    """The link to them is there before the first one is made."""
    refreshed(home, "b").write_run(
        "dense", [Ranking(query_id="q01", ranking=(Hit(chunk_id="c01", score=1.0),))]
    )

    assert (home / "runs" / "dense.jsonl").is_file()
    assert open_dataset(home / "versions" / "000001").run_names() == ["bm25"]


def test_a_file_that_a_command_adds_gets_its_link(home):
    """An audit of the judge is made long after the refresh."""
    refreshed(home, "b").write_label_checks([])

    assert (home / "label_checks.jsonl").readlink().as_posix() == "current/label_checks.jsonl"


def test_a_file_added_to_an_older_version_gets_none(home):
    """It is not in what is published."""
    refreshed(home, "b")

    open_dataset(home / "versions" / "000001").write_label_checks([])

    assert not os.path.lexists(home / "label_checks.jsonl")


def test_a_file_that_a_version_does_not_have_loses_its_link(home):
    """A link that leads nowhere breaks the scripts that go through a folder."""
    refreshed(home, "b")
    with stage_version(open_dataset(home), 3) as staged:
        (staged.files / "CHANGELOG.md").unlink()
        found = publish(staged, home)

    assert not os.path.lexists(home / "CHANGELOG.md")
    assert "CHANGELOG.md" not in found.manifest.files


def test_files_of_people_stay_beside_the_versions(home):
    """A directory is theirs too."""
    (home / "CHANGELOG.md").write_text("mine", "utf-8")
    (home / "notes.txt").write_text("mine", "utf-8")

    refreshed(home, "b")

    assert (home / "CHANGELOG.md").read_text("utf-8") == "mine"
    assert (home / "notes.txt").read_text("utf-8") == "mine"
    assert not (home / "versions" / "000001" / "notes.txt").exists()


def test_the_same_steps_give_the_same_bytes(tmp_path):
    """A version tells of its contents, and of neither the day nor the place."""
    found = []
    for name in ("one", "two"):
        make_set(tmp_path / name / "set")
        refreshed(tmp_path / name / "set", "b")
        found.append(everything(tmp_path / name / "set"))

    assert found[0] == found[1]


def test_whoever_opened_a_version_reads_on_in_it(home):
    """A measurement that began before the switch must end on the same set."""
    refreshed(home, "b")
    opened = open_dataset(home)

    refreshed(home, "c")

    assert (tag_of(opened), opened.manifest.version) == ("b", 2)


def test_whoever_opened_a_set_before_its_first_refresh_reads_on_in_it(home):
    """Then its files are gone from where they were."""
    opened = open_dataset(home)
    chunks = opened.chunks()
    first = next(chunks)

    refreshed(home, "b")

    assert {chunk.text.split()[0] for chunk in [first, *chunks]} == {"a"}
    assert (tag_of(opened), opened.manifest.version) == ("a", 1)
    assert {item.reasoning for item in opened.each_judgment()} == {"a"}


def test_what_is_written_to_a_set_opened_before_goes_to_its_version(home):
    """A judge that began on the version before must not write over the new one."""
    opened = open_dataset(home)
    refreshed(home, "b")

    write_state(opened, "late")

    assert tag_of(open_dataset(home)) == "b"
    assert tag_of(open_dataset(home / "versions" / "000001")) == "late"


@pytest.mark.parametrize("first", ["", "between"])
def test_a_parent_that_a_command_changed_meanwhile_is_not_lost(home, first):
    """What it wrote would be missing from the new version."""
    if first:
        refreshed(home, first)
    with stage_version(open_dataset(home), 9) as staged:
        open_dataset(home).write_label_checks([])
        with pytest.raises(ChangedMeanwhileError, match="while it was refreshed; run it again"):
            publish(staged, home)

    assert open_dataset(home).label_checks() == []
    assert 9 not in versions_of(home)


def test_a_failed_publish_leaves_no_stray(home):
    """What never got its name only takes up room."""
    before = everything(home)
    with stage_version(open_dataset(home), 2) as staged:
        open_dataset(home).note(models=["m"])
        with pytest.raises(DataError, match="run it again"):
            publish(staged, home)

    assert everything(home).keys() == before.keys()


def test_a_disk_without_links_is_told_and_left_as_it_was(home, monkeypatch):
    """Some disks have none, and no set may be half changed there."""
    before = everything(home)

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)

    with pytest.raises(DataError, match="set: cannot be published: Operation not permitted"):
        refreshed(home, "b")
    assert everything(home) == before


def test_a_system_that_cannot_exchange_names_still_publishes(home, monkeypatch):
    """The folder of runs is then without its name for a moment."""
    monkeypatch.setattr(atomic, "_system_call", lambda: None)

    refreshed(home, "b")

    assert (home / "runs").is_symlink()
    assert mixture(home) == []
    assert [path.name for path in home.iterdir() if "making" in path.name] == []


def test_a_version_number_does_not_come_twice(home):
    """Whoever has a copy of version 2 must be able to trust its number."""
    refreshed(home, "b")
    with stage_version(open_dataset(home), 2) as staged:
        write_state(staged, "c")
        with pytest.raises(DataError, match="000002: there is a version 2 already"):
            publish(staged, home)

    assert tag_of(open_dataset(home)) == "b"


def test_strays_of_writing_are_not_published(home):
    """A version has the files that its manifest lists, and no others."""
    with stage_version(open_dataset(home), 2) as staged:
        (staged.files / ".queries.jsonl.host-1-x.tmp").write_text("half", "utf-8")
        (staged.files / "extra.json").write_text("{}", "utf-8")
        found = publish(staged, home)

    names = sorted(path.name for path in found.files.iterdir())
    assert names == sorted([*found.manifest.files, "manifest.json"])
    assert found.manifest.files["extra.json"].records == 1


def test_a_rejected_version_can_be_looked_at(home):
    """People must see what a gate stopped."""
    with stage_version(open_dataset(home), 2) as staged:
        write_state(staged, "worse")
        place = reject(staged, home)

    found = open_dataset(place)
    assert (tag_of(found), found.home) == ("worse", home)
    assert tag_of(open_dataset(home)) == "a"
    assert (versions_of(home), current_version(home)) == ([], None)


def test_a_rejected_version_is_replaced_by_the_next_of_its_number(home):
    """The same number is tried every night until it passes."""
    for tag in ("worse", "better"):
        with stage_version(open_dataset(home), 2) as staged:
            write_state(staged, tag)
            place = reject(staged, home)

    assert tag_of(open_dataset(place)) == "better"
    assert [path.name for path in (home / "rejected").iterdir()] == ["000002"]


def test_a_file_that_somebody_wrote_in_the_place_of_a_link_is_not_written_over(home):
    """It may be a correction that took a day."""
    refreshed(home, "b")
    with stage_version(open_dataset(home), 3) as staged:
        (home / "queries.jsonl").unlink()
        (home / "queries.jsonl").write_text("mine", "utf-8")
        with pytest.raises(DataError, match="move the former there, or remove it"):
            publish(staged, home)

    assert (home / "queries.jsonl").read_text("utf-8") == "mine"
    assert tag_of(open_dataset(home)) == "b"


def test_a_set_made_by_another_way_of_numbering_keeps_its_number(home):
    """A copy of version 5 may go on by itself."""
    flat = open_dataset(home)
    flat.write_manifest(flat.manifest.model_copy(update={"version": 5}))

    refreshed(home, "b")

    assert versions_of(home) == [5, 6]
    assert Dataset(home / "versions" / "000005").manifest.version == 5


def test_a_stray_of_writing_a_run_does_not_hinder(home):
    """A retriever that was killed a year ago must not stop the refresh."""
    (home / "runs" / ".bm25.jsonl.host-1-x.tmp").write_text("half", "utf-8")

    refreshed(home, "b")

    assert (home / "runs").is_symlink()
    assert open_dataset(home / "versions" / "000001").run_names() == ["bm25"]


def test_a_rejected_version_goes_when_a_good_one_of_its_number_is_published(home):
    """Two versions of one number, one of them bad, are mixed up."""
    with stage_version(open_dataset(home), 2) as staged:
        write_state(staged, "worse")
        reject(staged, home)

    refreshed(home, "b")

    assert not (home / "rejected").exists()
