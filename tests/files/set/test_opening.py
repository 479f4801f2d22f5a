from pathlib import Path

import pytest
from versioned_sets import make_set, refreshed, tag_of

from ragforge.errors import DataError, UsageError
from ragforge.files.manifest import digest_file
from ragforge.files.set.opening import create_dataset, open_dataset, refuse_refreshed


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder `set` with the versions 1 and 2."""
    monkeypatch.chdir(tmp_path)
    make_set(Path("set"))
    refreshed(Path("set"), "b")
    return Path("set")


@pytest.mark.parametrize(
    ("place", "tag"),
    [(".", "b"), ("current", "b"), ("versions/000001", "a"), ("versions/000002", "b")],
)
def test_the_published_version_is_opened_or_the_one_that_is_named(home, place, tag):
    """Whoever wants another one says so."""
    assert tag_of(open_dataset(home / place)) == tag


def test_a_version_that_is_not_there_is_told_with_those_that_are(home):
    """It may have been removed as the oldest."""
    with pytest.raises(DataError, match=r"^set: has no version 000009; there are: 1, 2$"):
        open_dataset(home / "versions" / "000009")


@pytest.mark.parametrize("place", [".", "current"])
def test_a_link_that_leads_nowhere_is_told_with_the_way_back(home, place):
    """Somebody removed the folder that was published."""
    (home / "current").unlink()
    (home / "current").symlink_to("versions/000007")

    with pytest.raises(DataError, match=r"there are: 1, 2; `ragforge refresh --dataset set --roll"):
        open_dataset(home / place)


def test_a_link_that_is_lost_is_told_with_the_way_back(home):
    """Some archives leave links out."""
    (home / "current").unlink()

    with pytest.raises(DataError, match="current: expected a link to a version, found none that"):
        open_dataset(home)


@pytest.mark.parametrize("place", ["set", "set/versions/000001"])
def test_queries_are_not_generated_into_a_refreshed_set(home, place):
    """They would be those of another corpus, and the refresh makes its own."""
    with pytest.raises(
        UsageError, match="ragforge refresh --dataset set --at-least N` adds queries"
    ):
        create_dataset(Path(place), {"chunks": "0", "seed": "0"})
    with pytest.raises(UsageError, match="holds a set that was refreshed"):
        refuse_refreshed(Path(place))


def test_a_set_that_was_never_refreshed_grows_as_ever(tmp_path):
    """Generation goes on where it stopped."""
    path = make_set(tmp_path / "set").path

    refuse_refreshed(path)

    assert tag_of(create_dataset(path, {"seed": "0"})) == "a"


def test_queries_are_brought_into_the_published_version(home):
    """A hand-made set of the same chunks is welcome at any time."""
    chunks = digest_file(home / "chunks.jsonl")

    assert create_dataset(home, {"chunks": chunks}).manifest.version == 2


def test_queries_of_other_chunks_are_not_brought_in(home):
    """The chunks of the version before are not those of this one."""
    chunks = digest_file(home / "versions" / "000001" / "chunks.jsonl")

    with pytest.raises(UsageError, match="with other chunks than these; add to it with --dataset"):
        create_dataset(home, {"chunks": chunks})
