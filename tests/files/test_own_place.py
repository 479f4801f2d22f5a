from ragforge.files.atomic import make_own_place
from ragforge.files.set.versions.lock import refresh_lock
from ragforge.llm.store.calls import CallStore


def test_a_new_call_store_is_ignored_by_git(tmp_path):
    """A set is committed with `git add --all`; its replies may be gigabytes."""
    CallStore(tmp_path / "set" / ".ragforge" / "calls.sqlite").close()

    text = (tmp_path / "set" / ".ragforge" / ".gitignore").read_text(encoding="utf-8")
    assert text.splitlines()[-1] == "*"


def test_the_lock_of_a_refresh_is_ignored_by_git(tmp_path):
    """A set that was cloned has no such folder until it is refreshed."""
    with refresh_lock(tmp_path):
        pass

    assert (tmp_path / ".ragforge" / ".gitignore").is_file()


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path):
    """Whoever wants the replies in git takes the file away once."""
    (tmp_path / ".ragforge").mkdir()
    make_own_place(tmp_path / ".ragforge")

    assert list((tmp_path / ".ragforge").iterdir()) == []


def test_a_folder_of_another_name_is_not_hidden_from_git(tmp_path):
    """Somebody's own folder may hold a call store that was named by hand."""
    CallStore(tmp_path / "bought" / "calls.sqlite").close()

    assert not (tmp_path / "bought" / ".gitignore").exists()
