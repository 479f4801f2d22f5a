import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from ragforge.corpus.origins.fetching import mirror_lock, mirror_origin
from ragforge.corpus.origins.origin import Origin
from ragforge.errors import DataError, UsageError

BEFORE = {"a.md": "A", "b.md": "B", "gone/c.md": "C", "file.md": "F"}
AFTER = {"a.md": "A2", "b.md": "B", "new/d.md": "D", "file.md/e.md": "E"}
STEPS = 19
KILLED = """
import json, os, signal, sys
from pathlib import Path
from ragforge.corpus.origins.fetching import mirror_origin
from ragforge.corpus.origins.origin import Origin
left = int(sys.argv[1])
texts = json.loads(sys.argv[3])
def hook(event, arguments):
    global left
    if event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
def fetch(path, target):
    target.write_text(texts[path])
    return ""
sys.addaudithook(hook)
mirror_origin(Origin(texts, fetch), Path(sys.argv[2]), print)
"""


def origin_of(texts, fetched=None, at_once=1):
    def fetch(path, target):
        if fetched is not None:
            fetched.append(path)
        target.write_text(texts[path])
        return ""

    return Origin(texts, fetch, at_once)


def refuse(path, reason):
    raise AssertionError(path)


def texts_in(folder):
    files = folder / "files"
    return {
        path.relative_to(files).as_posix(): path.read_text()
        for path in files.rglob("*")
        if path.is_file()
    }


def mirror(folder, texts, **options):
    mirror_origin(origin_of(texts, **options), folder, refuse)
    return texts_in(folder)


@pytest.mark.parametrize("at_once", [1, 8])
def test_mirror_follows_its_origin(tmp_path, at_once):
    """Added, changed, deleted; a file that becomes a folder."""
    assert mirror(tmp_path, BEFORE, at_once=at_once) == BEFORE
    assert mirror(tmp_path, AFTER, at_once=at_once) == AFTER
    assert not (tmp_path / "files" / "gone").exists()


def test_only_what_changed_is_fetched(tmp_path):
    """A bucket is paid for by what is taken out."""
    mirror(tmp_path, BEFORE)
    fetched = []

    mirror(tmp_path, AFTER, fetched=fetched)

    assert fetched == ["a.md", "file.md/e.md", "new/d.md"]


def test_file_that_was_changed_without_a_listing_is_put_back(tmp_path):
    """What somebody deleted in the mirror is there, and what they added is no document."""
    mirror(tmp_path, BEFORE)
    (tmp_path / "files" / "a.md").unlink()
    (tmp_path / "files" / "added.md").write_text("x")

    assert mirror(tmp_path, BEFORE) == BEFORE


@pytest.mark.parametrize("text", ["", "{", "[1]\n", "5\n", "\x00"])
def test_damaged_listing_is_made_anew(tmp_path, text):
    """It is a record of what is there, not the only copy."""
    mirror(tmp_path, BEFORE)
    (tmp_path / "listing.jsonl").write_text(text)

    assert mirror(tmp_path, AFTER) == AFTER


def test_fault_while_fetching_leaves_the_mirror_as_it_was(tmp_path):
    """An outage in the night must not look like deletions."""
    mirror(tmp_path, BEFORE)
    origin = origin_of({path: AFTER[path] for path in AFTER if path != "new/d.md"})
    broken = replace(origin, files=AFTER)

    def fetch(path, target):
        if path == "new/d.md":
            raise DataError("connection lost")
        return origin.fetch(path, target)

    with pytest.raises(DataError, match="connection lost"):
        mirror_origin(replace(broken, fetch=fetch), tmp_path, refuse)

    assert texts_in(tmp_path) == BEFORE


def test_what_was_fetched_before_a_fault_is_not_fetched_again(tmp_path):
    """A large bucket comes through in two nights if not in one."""

    def fetch(path, target):
        if path == "b.md":
            raise DataError("connection lost")
        target.write_text(BEFORE[path])
        return ""

    with pytest.raises(DataError, match="connection lost"):
        mirror_origin(Origin(BEFORE, fetch), tmp_path, refuse)
    fetched = []

    assert mirror(tmp_path, BEFORE, fetched=fetched) == BEFORE
    assert fetched == ["b.md", "file.md", "gone/c.md"]


def test_file_that_nothing_tells_about_is_fetched_each_time(tmp_path):
    """Without a fingerprint, its bytes are all that tells."""
    origin = origin_of({"a.md": "A"}, fetched := [])
    unknown = replace(origin, files={"a.md": ""})

    mirror_origin(unknown, tmp_path, refuse)
    mirror_origin(unknown, tmp_path, refuse)

    assert fetched == ["a.md", "a.md"]


def killed(folder, texts, step):
    words = [sys.executable, "-c", KILLED, str(step), str(folder), json.dumps(texts)]
    return subprocess.run(words, capture_output=True, check=False).returncode


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_mirror_that_was_killed_is_right_after_the_next_run(tmp_path, step):
    """At each renaming and deletion; even where the origin is then again as it was before."""
    mirror(tmp_path / "on", BEFORE)
    mirror(tmp_path / "back", BEFORE)

    codes = {killed(tmp_path / name, AFTER, step) for name in ("on", "back")}

    assert codes == {-signal.SIGKILL}
    assert mirror(tmp_path / "on", AFTER) == AFTER
    assert mirror(tmp_path / "back", BEFORE) == BEFORE


@pytest.mark.skipif(os.name == "nt", reason="needs audit events of POSIX")
def test_kills_reach_the_last_step(tmp_path):
    """Otherwise the test above would leave the end out."""
    mirror(tmp_path, BEFORE)

    assert killed(tmp_path, AFTER, STEPS + 1) == 0
    assert texts_in(tmp_path) == AFTER


def test_mirror_is_held_by_one_command_at_a_time(tmp_path):
    """Another would change the files while they are read."""
    with (
        mirror_lock(tmp_path, "git:x"),
        pytest.raises(UsageError, match="git:x: another command is reading it into"),
        mirror_lock(tmp_path, "git:x"),
    ):
        pass


@pytest.mark.parametrize("name", ["listing.jsonl", "lock", "files", "files/new", "incoming"])
def test_links_in_a_mirror_are_taken_away(tmp_path, name):
    """They came with a set from elsewhere, and files would be written where they lead."""
    folder, mine = tmp_path / "mirror", tmp_path / "mine"
    (folder / name).parent.mkdir(parents=True)
    mine.mkdir()
    (mine / "d.md").write_text("mine")
    (folder / name).symlink_to(mine)

    with mirror_lock(folder, "origin"):
        mirror_origin(origin_of(AFTER), folder, print)

    assert [path.name for path in mine.iterdir()] == ["d.md"]
    assert (mine / "d.md").read_text() == "mine"
