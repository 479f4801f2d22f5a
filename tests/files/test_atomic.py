import errno
import os
import subprocess
import sys

import pytest

from ragforge.errors import DataError
from ragforge.files.atomic import move_whole, write_whole

KILLED = """
import os, pathlib, sys
from ragforge.files.atomic import write_whole
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), 9)
write_whole(pathlib.Path(sys.argv[1]), ["new"])
"""


@pytest.fixture
def killed(tmp_path):
    """A file whose writer was killed just before the new content took its place."""
    path = tmp_path / "out.jsonl"
    path.write_text("old", encoding="utf-8")
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
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
