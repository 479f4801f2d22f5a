import errno
import os
import signal
import subprocess
import sys

import pytest

from ragforge.errors import DataError
from ragforge.files.atomic import (
    make_own_place,
    move_whole,
    remove_whole,
    whole_folder,
    write_whole,
)
from ragforge.files.set.versions import refresh_lock
from ragforge.llm.store.calls import CallStore

KILLED = """
import os, pathlib, sys
from unittest.mock import patch
from ragforge.files.atomic import write_whole
patch.object(pathlib.Path, "replace", lambda *_: os.kill(os.getpid(), 9)).start()
write_whole(pathlib.Path(sys.argv[1]), ["new"])
"""


def run_to_its_kill(code, path):
    ended = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.fixture
def killed(tmp_path):
    """A file whose writer was killed just before the new content took its place."""
    path = tmp_path / "out.jsonl"
    path.write_text("old", encoding="utf-8")
    run_to_its_kill(KILLED, path)
    return path


def test_a_killed_writer_leaves_the_old_file(killed):
    """A reader must never see a part."""
    assert killed.read_text(encoding="utf-8") == "old"


def test_the_next_writer_removes_what_a_killed_one_left(killed):
    """Else a folder would fill with copies nobody knows."""
    assert len(list(killed.parent.iterdir())) == 2

    write_whole(killed, ["newer"])

    assert [path.name for path in killed.parent.iterdir()] == ["out.jsonl"]
    assert killed.read_text(encoding="utf-8") == "newer"


def test_what_a_living_process_writes_is_left_alone(killed):
    """Two processes may write the same file at once; the last one wins, and both are whole."""
    [stray] = [path for path in killed.parent.iterdir() if path != killed]
    host, _, rest = stray.name.rpartition("-")[0].rpartition("-")
    living = stray.rename(stray.with_name(f"{host}-1-x.tmp"))
    assert rest

    write_whole(killed, ["newer"])

    assert living.exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    """The user must see which one."""
    (tmp_path / "file").touch()

    with pytest.raises(DataError, match="file/out"):
        write_whole(tmp_path / "file" / "out", ["x"])


def test_a_file_from_another_disk_is_moved_too(tmp_path, monkeypatch):
    """The folder of the call store is often mounted by itself."""
    source, path = tmp_path / "made.jsonl", tmp_path / "set" / "chunks.jsonl"
    source.write_text("new", "utf-8")
    path.parent.mkdir()
    path.write_text("old", "utf-8")
    replace = os.replace

    def across(one, other):
        if os.fspath(one) == os.fspath(source):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        replace(one, other)

    monkeypatch.setattr(os, "replace", across)

    move_whole(source, path)

    assert path.read_text("utf-8") == "new"
    assert [each.name for each in sorted(tmp_path.rglob("*"))] == ["set", "chunks.jsonl"]


def test_a_file_that_cannot_be_moved_is_named(tmp_path):
    """The user must see where there is no room."""
    (tmp_path / "new").touch()

    with pytest.raises(DataError, match=r"there/chunks\.jsonl: cannot be written: No such file"):
        move_whole(tmp_path / "new", tmp_path / "there" / "chunks.jsonl")


def test_the_longest_name_of_a_file_can_be_written(tmp_path):
    """The temporary name is longer than the file's own."""
    path = tmp_path / f"{'b' * 249}.jsonl"

    write_whole(path, ["new"])

    assert path.read_text(encoding="utf-8") == "new"


KILLED_WITH_A_FOLDER = """
import os, pathlib, sys
from ragforge.files.atomic import whole_folder
with whole_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), 9)
"""

KILLED_WITH_A_FOLDER_REMOVING = """
import os, pathlib, shutil, sys
from unittest.mock import patch
from ragforge.files.atomic import remove_whole
patch.object(shutil, "rmtree", lambda *_, **__: os.kill(os.getpid(), 9)).start()
remove_whole(pathlib.Path(sys.argv[1]))
"""


def test_a_folder_gets_its_name_when_it_is_whole(tmp_path):
    """A reader must find all files or no folder."""
    with whole_folder(tmp_path / "made" / "x") as folder:
        (folder / "file").write_text("1")
        assert not (tmp_path / "made" / "x").exists()

    assert [path.name for path in (tmp_path / "made").iterdir()] == ["x"]
    assert (tmp_path / "made" / "x" / "file").read_text() == "1"


def test_an_error_leaves_nothing(tmp_path):
    """A half-made folder would only take up space."""
    with pytest.raises(KeyError, match="why"), whole_folder(tmp_path / "x"):
        raise KeyError("why")

    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_data_error(tmp_path):
    """What is wrong and where must be told without a traceback."""
    with (
        pytest.raises(DataError, match="x: cannot be written: No space"),
        whole_folder(tmp_path / "x"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_folder_of_a_faster_process_stays(tmp_path):
    """Two runs may make the same folder at once; a reader of the first must not lose it."""
    with whole_folder(tmp_path / "x") as folder:
        (folder / "file").write_text("slow")
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "file").write_text("fast")

    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x" / "file").read_text() == "fast"


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    """An index of a million chunks takes a gigabyte; its remains must not pile up."""
    run_to_its_kill(KILLED_WITH_A_FOLDER, tmp_path / "x")
    assert len(list(tmp_path.iterdir())) == 1
    assert not (tmp_path / "x").exists()

    with whole_folder(tmp_path / "x"):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_kill_while_removing_leaves_no_part_under_the_name(tmp_path):
    """Half an old index would be taken for a whole one when its corpus comes back."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").write_text("1")
    run_to_its_kill(KILLED_WITH_A_FOLDER_REMOVING, tmp_path / "x")
    assert not (tmp_path / "x").exists()

    with whole_folder(tmp_path / "y"):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["y"]


def test_removing_what_is_not_there_does_nothing(tmp_path):
    """Another process may have been faster."""
    remove_whole(tmp_path / "x")

    assert list(tmp_path.iterdir()) == []


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
