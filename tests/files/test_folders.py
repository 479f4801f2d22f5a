import errno
import subprocess
import sys

import pytest

from ragforge.errors import DataError
from ragforge.files.atomic import remove_whole, whole_folder

KILLED = """
import os, pathlib, sys
from ragforge.files.atomic import whole_folder
with whole_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), 9)
"""

KILLED_REMOVING = """
import os, pathlib, shutil, sys
from ragforge.files.atomic import remove_whole
shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), 9)
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
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    assert not (tmp_path / "x").exists()

    with whole_folder(tmp_path / "x"):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_kill_while_removing_leaves_no_part_under_the_name(tmp_path):
    """Half an old index would be taken for a whole one when its corpus comes back."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "file").write_text("1")
    command = [sys.executable, "-c", KILLED_REMOVING, str(tmp_path / "x")]
    subprocess.run(command, check=False)
    assert not (tmp_path / "x").exists()

    with whole_folder(tmp_path / "y"):
        pass

    assert [path.name for path in tmp_path.iterdir()] == ["y"]


def test_removing_what_is_not_there_does_nothing(tmp_path):
    """Another process may have been faster."""
    remove_whole(tmp_path / "x")

    assert list(tmp_path.iterdir()) == []
