import pytest
from versioned_sets import make_set, refreshed

from ragforge.errors import DataError
from ragforge.files.set.integrity import accept_changes, require_whole
from ragforge.files.set.opening import open_dataset


@pytest.fixture
def flat(tmp_path):
    """A set that was never refreshed."""
    return make_set(tmp_path / "set").path


@pytest.fixture
def home(flat):
    """A set with the versions 1 and 2."""
    refreshed(flat, "b")
    return flat


def test_a_set_as_ragforge_wrote_it_is_whole(home):
    """Every night begins with this."""
    assert require_whole(open_dataset(home)) is None


@pytest.mark.parametrize("name", ["queries.jsonl", "judgments.jsonl"])
def test_an_emptied_file_is_told_with_what_was_in_it(home, name):
    """Half a copy was brought back from a backup."""
    (home / "versions" / "000002" / name).write_text("", "utf-8")

    with pytest.raises(
        DataError,
        match=rf"000002/{name}: was changed .* it has 0 records, manifest\.json lists 40; .*"
        r"--rollback N` publishes .*: 1, or `ragforge validate --dataset \S+set --accept`",
    ):
        require_whole(open_dataset(home))


def test_a_shortened_file_is_told(flat):
    """A line less is a query less, and nobody would notice."""
    path = flat / "queries.jsonl"
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")

    with pytest.raises(DataError, match=r"it has 39 records, manifest\.json lists 40"):
        require_whole(open_dataset(flat))


def test_a_missing_file_is_told_with_the_versions_that_have_it(home):
    """It cannot be made again from what is left."""
    (home / "versions" / "000002" / "queries.jsonl").unlink()

    with pytest.raises(
        DataError, match=r"queries\.jsonl: is missing, .* with 40 records; .*where it is whole: 1$"
    ):
        require_whole(open_dataset(home))


def test_a_version_that_was_changed_too_is_not_offered(home):
    """Going back to it would bring the same error the next night."""
    for number in ("000001", "000002"):
        (home / "versions" / number / "queries.jsonl").write_text("", "utf-8")

    with pytest.raises(DataError, match="put back what was there, or `ragforge validate"):
        require_whole(open_dataset(home))


def test_runs_that_somebody_removed_do_not_hinder(flat):
    """They are not brought into the next version."""
    (flat / "runs" / "bm25.jsonl").unlink()

    assert require_whole(open_dataset(flat)) is None


def test_chunks_and_cards_may_be_changed(flat):
    """Chunks are compared with the documents one by one, and a card is for people."""
    for name in ("chunks.jsonl", "README.md"):
        with (flat / name).open("a", encoding="utf-8") as stream:
            stream.write("\n")

    assert require_whole(open_dataset(flat)) is None


def test_an_edit_that_is_accepted_is_whole(flat):
    """People may mend a query in the file."""
    path = flat / "queries.jsonl"
    path.write_text(path.read_text("utf-8").replace("What is a of 00?", "What, then?"), "utf-8")

    accepted = accept_changes(open_dataset(flat))

    assert accepted == ["queries.jsonl"]
    assert require_whole(open_dataset(flat)) is None


def test_an_accepted_edit_of_generated_queries_is_told_in_the_manifest(flat):
    """Else generating would take the file for its own, and write over the edit."""
    dataset = open_dataset(flat)
    dataset.write_manifest(dataset.manifest.model_copy(update={"made_from": {"model": "m"}}))
    with (flat / "queries.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("\n")

    accept_changes(dataset)

    assert sorted(dataset.manifest.made_from) == ["edited queries", "model"]


def test_a_file_that_is_gone_is_forgotten_where_it_is_accepted(flat):
    """Somebody removed a run that was no use."""
    (flat / "runs" / "bm25.jsonl").unlink()

    accept_changes(open_dataset(flat))

    assert "runs/bm25.jsonl" not in open_dataset(flat).manifest.files


def test_queries_that_are_gone_cannot_be_accepted(flat):
    """A set without queries is none."""
    (flat / "queries.jsonl").unlink()

    assert accept_changes(open_dataset(flat)) == []


def test_nothing_is_written_where_nothing_is_to_be_accepted(home):
    """A new manifest would make a refresh that runs start over."""
    before = (home / "manifest.json").stat().st_mtime_ns

    accept_changes(open_dataset(home))

    assert (home / "manifest.json").stat().st_mtime_ns == before
