from pathlib import Path

import pytest
from versioned_sets import make_set, refreshed

from ragforge.files.set.paths import (
    current_version,
    files_of,
    home_of,
    is_flat,
    number_of,
    version_name,
    versions_of,
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder `set` with the versions 1 and 2."""
    monkeypatch.chdir(tmp_path)
    make_set(Path("set"))
    refreshed(Path("set"), "b")
    return Path("set")


@pytest.mark.parametrize("number", [1, 999_999, 1_000_000])
def test_a_name_stands_for_its_number(number):
    """After a million versions the names are longer, and still names."""
    assert number_of(version_name(number)) == number


@pytest.mark.parametrize("name", ["", "1", ".first", "000001x", "-00001"])
def test_other_names_stand_for_no_number(name):
    """What lies beside the versions is none."""
    assert number_of(name) is None


def test_a_set_that_was_never_refreshed_has_no_versions(tmp_path):
    """Its files are in itself, as ever."""
    make_set(tmp_path)

    assert (versions_of(tmp_path), current_version(tmp_path)) == ([], None)
    assert (files_of(tmp_path), home_of(tmp_path)) == (tmp_path, tmp_path)
    assert is_flat(tmp_path)


def test_a_refreshed_set_has_those_that_are_kept(home):
    """They are what one can go back to."""
    assert (versions_of(home), current_version(home)) == ([1, 2], 2)
    assert not is_flat(home)


def test_the_files_are_named_as_the_directory_was(home):
    """Messages name the path that somebody typed."""
    assert files_of(home) == Path("set/versions/000002")
    assert files_of(home / "current") == Path("set/versions/000002")


@pytest.mark.parametrize("name", ["versions/000001", "current", "rejected/000007"])
def test_a_version_belongs_to_its_directory(home, name):
    """Its history and its call store are there."""
    assert home_of(home / name).samefile(home)


def test_a_version_is_known_from_within(home, monkeypatch):
    """`--dataset .` names no folder above."""
    monkeypatch.chdir(home / "versions" / "000001")

    assert home_of(Path()).samefile(Path("../.."))


def test_a_link_to_a_version_is_that_version(home, tmp_path):
    """People keep links to sets that they like."""
    (tmp_path / "mine").symlink_to("set/versions/000001")

    assert home_of(tmp_path / "mine").samefile(home)


def test_a_folder_that_only_looks_like_a_version_is_its_own(tmp_path):
    """Others call folders so too."""
    place = tmp_path / "versions" / "000001"
    make_set(place)

    assert home_of(place) == place
