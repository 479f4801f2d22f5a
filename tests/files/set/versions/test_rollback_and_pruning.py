import pytest
from versioned_sets import make_set, refreshed, tag_of

from ragforge.errors import DataError, UsageError
from ragforge.files.set.opening import open_dataset
from ragforge.files.set.paths import current_version, versions_of
from ragforge.files.set.versions import (
    next_version,
    open_version,
    prune,
    refresh_lock,
    roll_back,
)


@pytest.fixture
def home(tmp_path):
    """A set with the versions 1 to 4."""
    path = make_set(tmp_path / "set").path
    for tag in ("b", "c", "d"):
        refreshed(path, tag)
    return path


def test_the_next_version_of_a_set_that_was_never_refreshed_is_its_second(tmp_path):
    """What it is now is the first."""
    assert next_version(make_set(tmp_path / "set").path) == 2


def test_a_version_is_opened_by_its_number(home):
    """Two of them are compared."""
    assert [tag_of(open_version(home, number)) for number in (1, 2, 4)] == ["a", "b", "d"]


def test_a_set_that_was_never_refreshed_is_the_version_that_it_says(tmp_path):
    """Whoever asks for version 1 must not have to know."""
    path = make_set(tmp_path / "set").path

    assert tag_of(open_version(path, 1)) == "a"


def test_a_version_that_is_not_there_is_told_with_those_that_are(home, tmp_path):
    """Old ones are removed."""
    flat = make_set(tmp_path / "flat").path

    with pytest.raises(DataError, match="has no version 9; there are: 1, 2, 3, 4"):
        open_version(home, 9)
    with pytest.raises(DataError, match="has no version 2; there are: none, as it was never"):
        open_version(flat, 2)


def test_rolling_back_publishes_an_earlier_version(home):
    """A bad night must be undone in a second."""
    found = roll_back(home, 2)

    assert (tag_of(found), tag_of(open_dataset(home))) == ("b", "b")
    assert (home / "queries.jsonl").read_bytes() == (
        home / "versions/000002/queries.jsonl"
    ).read_bytes()
    assert versions_of(home) == [1, 2, 3, 4]


def test_rolling_back_shows_the_files_of_that_version_only(home):
    """The first has no account of changes, and its runs are back."""
    roll_back(home, 1)

    assert not (home / "CHANGELOG.md").exists()
    assert (home / "runs" / "bm25.jsonl").is_file()


def test_rolling_back_can_be_undone(home):
    """It may have been a mistake."""
    roll_back(home, 1)
    roll_back(home, 4)

    assert tag_of(open_dataset(home)) == "d"
    assert (home / "CHANGELOG.md").read_text("utf-8") == "now d\n"


def test_what_follows_a_rollback_gets_a_new_number(home):
    """Somebody may have measured with the version that was taken back."""
    roll_back(home, 2)
    assert next_version(home) == 5

    found = refreshed(home, "e")

    assert (found.manifest.version, versions_of(home)) == (5, [1, 2, 3, 4, 5])


def test_rolling_back_to_nowhere_is_told(home):
    """The published version stays."""
    with pytest.raises(DataError, match="has no version 7; there are: 1, 2, 3, 4"):
        roll_back(home, 7)

    assert current_version(home) == 4


def test_rolling_back_mends_a_link_that_was_lost(home):
    """Archives may leave links out."""
    (home / "current").unlink()

    assert tag_of(roll_back(home, 3)) == "c"


def test_the_oldest_versions_are_removed(home):
    """A version a night fills any disk."""
    with refresh_lock(home):
        assert prune(home, 2) == [1, 2]

    assert versions_of(home) == [3, 4]
    assert sorted(path.name for path in (home / "versions").iterdir()) == [
        ".first",
        "000003",
        "000004",
    ]


def test_the_published_version_its_parent_and_the_newest_stay(home):
    """Readers may still be in the parent, and the newest number must not come twice."""
    roll_back(home, 2)

    assert prune(home, 3) == [3]
    assert versions_of(home) == [1, 2, 4]
    assert next_version(home) == 5


def test_the_parent_goes_where_nothing_else_can(home):
    """One version was asked for."""
    assert prune(home, 1) == [1, 2, 3]


def test_nothing_is_removed_where_all_are_kept(home):
    """The number is a bound."""
    assert prune(home, 4) == []


def test_keeping_none_is_refused(home):
    """There would be no set."""
    with pytest.raises(UsageError, match="keep 0: expected at least 1"):
        prune(home, 0)


def test_versions_of_an_old_parent_are_known_by_its_digest(home):
    """After a rollback the parent is not the number before."""
    roll_back(home, 1)
    refreshed(home, "e")

    assert prune(home, 2) == [2, 3, 4]
    assert versions_of(home) == [1, 5]


def led_astray(home, other):
    """Let the link of a set lead to a version of another one."""
    refreshed(make_set(other).path, "x")
    (home / "current").unlink()
    (home / "current").symlink_to(other / "versions" / "000002")


def test_a_link_into_another_set_is_followed_by_nobody(home, tmp_path):
    """A refresh would go on with a stranger's queries."""
    led_astray(home, tmp_path / "other")

    with pytest.raises(
        DataError,
        match=r"current: expected a link to a version of this directory, found one to .*other.*; "
        r"move it away; then `ragforge refresh --dataset \S+ --rollback N` publishes",
    ):
        open_dataset(home)


def test_a_link_into_another_set_is_not_opened_by_its_name_either(home, tmp_path):
    """That is how scripts name the published version."""
    led_astray(home, tmp_path / "other")

    with pytest.raises(DataError, match="expected a link to a version of this directory"):
        open_dataset(home / "current")


def test_a_set_led_astray_is_mended_as_it_is_told(home, tmp_path):
    """What lies beside the link are links too: without the versions nothing would be left."""
    led_astray(home, tmp_path / "other")
    with pytest.raises(DataError, match="move it away; then"):
        roll_back(home, 1)
    (home / "current").rename(tmp_path / "away")

    assert tag_of(roll_back(home, 1)) == "a"


def test_a_full_path_to_the_sets_own_version_will_do(home):
    """Some tools that copy links write them so."""
    (home / "current").unlink()
    (home / "current").symlink_to(home.resolve() / "versions" / "000001")

    assert tag_of(open_dataset(home)) == "a"
