import os
import subprocess
from pathlib import Path

import pytest

from ragforge.config import ChunkSettings
from ragforge.corpus.documents import read_documents
from ragforge.corpus.origins.fetching import fetch_documents


class Reader:
    """Reads documents of specs, mirrored into one place, and keeps what was told meanwhile."""

    def __init__(self, place):
        self.place = place
        self.notes = []

    def __call__(self, *specs, include=(), exclude=()):
        settings = ChunkSettings(include=include, exclude=exclude)
        with fetch_documents(specs, self.place, self.take, settings) as paths:
            found = read_documents(paths, include=include, exclude=exclude)
            return {document.doc_id: document.text for document in found}

    def take(self, event):
        """Keep what an event says."""
        self.notes.append(event.message)

    def state(self):
        """Return inode and bytes of each file of the mirrors, by name."""
        return {
            path.relative_to(self.place): (path.stat().st_ino, path.read_bytes())
            for path in self.place.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def read(tmp_path):
    return Reader(tmp_path / "sources")


class Repository:
    """A git repository with a working tree."""

    def __init__(self, path):
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words, **options):
        given = {"cwd": self.path, "check": True, "capture_output": True, "text": True}
        return subprocess.run(["git", *words], **(given | options)).stdout.strip()

    def commit(self, **files):
        """Make files as they are named, None for none, and return the commit's id."""
        for name, text in files.items():
            self.put(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        return self.git("rev-parse", "HEAD")

    def put(self, name, text):
        file = self.path / name
        if text is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def commit_tree(self, *entries):
        """Commit entries (mode, type, object id, name) as no working tree could have them."""
        rows = b"".join(
            f"{mode} {kind} {object_id}\t".encode() + os.fsencode(name) + b"\0"
            for mode, kind, object_id, name in entries
        )
        tree = self.git("mktree", "-z", input=rows, text=False).decode()
        commit = self.git("commit-tree", tree, "-m", "x")
        self.git("update-ref", "refs/heads/main", commit)

    def blob(self, text):
        return self.git("hash-object", "-w", "--stdin", input=text)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "n")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "e")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return Repository(tmp_path / "handbook")


@pytest.fixture
def in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path()
