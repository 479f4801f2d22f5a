import contextlib
import sqlite3
from pathlib import Path

import pytest

from ragforge.cli import main
from ragforge.config import ChunkSettings
from ragforge.corpus.chunk_files import corpus_documents
from ragforge.corpus.origins.fetching import fetch_documents
from ragforge.errors import DataError, UsageError
from ragforge.observe import silent
from ragforge.pipeline.generation.source import ChunkSource


def test_files_and_folders_come_back_as_they_are(tmp_path):
    """They need no mirror, and none is made."""
    place = tmp_path / "sources"

    with fetch_documents(["docs/", Path("a.md")], place, silent, ChunkSettings()) as paths:
        assert paths == [Path("docs"), Path("a.md")]
    assert not place.exists()


def test_several_origins_are_one_corpus(repository, read, tmp_path):
    """Documentation lies where each team puts it."""
    repository.commit(**{"a.md": "A"})
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.md").write_text("B")

    assert read(f"git:{repository.path}", str(tmp_path / "docs")) == {"a.md": "A", "b.md": "B"}


def test_same_id_in_two_origins_is_an_error(repository, read, tmp_path):
    """As it is for two folders."""
    repository.commit(**{"a.md": "A"})
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("B")

    message = r"has the doc_id 'a\.md' of git:.*@HEAD: a\.md; .*another folder"
    with pytest.raises(DataError, match=message) as caught:
        read(f"git:{repository.path}", tmp_path / "docs")
    assert "sources" not in str(caught.value)


def test_origin_that_comes_twice_is_an_error(repository, read):
    """One mirror cannot be at two revisions."""
    repository.commit(**{"a.md": "A"})

    with pytest.raises(UsageError, match=r"@HEAD~0: comes twice; expected each origin once"):
        read(f"git:{repository.path}", f"git:{repository.path}@HEAD~0")


def test_another_revision_uses_the_mirror_of_the_first(repository, read):
    """Ids and files do not depend on it."""
    first = repository.commit(**{"a.md": "A"})
    repository.commit(**{"a.md": "A2"})

    texts = [read(f"git:{repository.path}@{revision}") for revision in (first, "main")]

    assert texts == [{"a.md": "A"}, {"a.md": "A2"}]
    assert len(list(read.place.iterdir())) == 1


def test_mirror_is_not_changed_while_it_is_read(repository, read):
    """A second command at the same time would mix two states."""
    repository.commit(**{"a.md": "A"})
    specs = [f"git:{repository.path}"]

    with (
        fetch_documents(specs, read.place, silent, ChunkSettings()),
        pytest.raises(UsageError, match="another command is reading it"),
    ):
        read(*specs)


def test_chunk_keeps_the_mirror_beside_what_it_writes(repository, tmp_path, capsys):
    """The next run fetches only what changed."""
    repository.commit(**{"a.md": "# A\n\nText of A."})
    out = tmp_path / "out" / "chunks.jsonl"

    assert main(["chunk", f"git:{repository.path}@main", "--out", str(out), "-q"]) == 0
    assert '"doc_id":"a.md"' in out.read_text()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {".ragforge", "chunks.jsonl"}


def test_report_alone_leaves_nothing(repository, in_tmp_path, capsys):
    """Looking must not change what is there."""
    repository.commit(**{"a.md": "# A\n\nText of A."})

    assert main(["chunk", f"git:{repository.path}@main", "--report", "-q"]) == 0
    assert [path.name for path in in_tmp_path.iterdir()] == ["handbook"]


def test_corpus_of_a_set_comes_from_a_database(tmp_path):
    """Its mirror stays beside the set's call store for the next refresh."""
    with contextlib.closing(sqlite3.connect(tmp_path / "kb.db")) as connection, connection:
        connection.execute("CREATE TABLE a (id, body)")
        connection.execute("INSERT INTO a VALUES (1, 'Text of one.')")
    spec = f"sql:sqlite:///{tmp_path}/kb.db#SELECT id, body FROM a"
    source = ChunkSource([spec], None, ChunkSettings(), silent)

    with source.prepared(tmp_path / "own") as prepared:
        assert b'"doc_id":"kb.jsonl#1"' in prepared.path.read_bytes()
    assert len(list((tmp_path / "own" / "sources").glob("kb-*/files/kb.jsonl"))) == 1


def test_generate_ends_where_an_origin_cannot_be_reached(tmp_path, capsys, monkeypatch):
    """With exit code 3, no set, and without the password in what it says."""
    monkeypatch.setenv("PW", "top-secret")
    spec = f"sql:sqlite://me:${{PW}}@/{tmp_path}/absent.db#SELECT id, body FROM a"

    code = main(["generate", "-n", "1", "-q", "--out", str(tmp_path / "set"), "--documents", spec])

    told = capsys.readouterr().err
    assert code == 3
    assert "sql:sqlite://…@/" in told
    assert "top-secret" not in told
    assert not (tmp_path / "set" / "chunks.jsonl").exists()


def test_notes_name_the_origin_and_not_its_mirror(repository, read):
    """Nobody knows the folders of mirrors."""
    repository.commit(**{"a.md": "A", "b.md": " "})
    spec = f"git:{repository.path}"

    with fetch_documents([spec], read.place, silent, ChunkSettings()) as paths:
        list(corpus_documents(paths, ChunkSettings(), paths.observer_naming_origins(read.take)))

    assert read.notes == [f"{spec}@HEAD: b.md: passed over: holds no text"]


def test_a_name_with_a_line_feed_stays_on_one_line(repository, read):
    """Anybody who may name a file could write lines of the log."""
    repository.commit(**{"a.md": "A", "b\nc.md": "B"})

    read(f"git:{repository.path}")

    assert read.notes == [
        f"git:{repository.path}@HEAD: b\\nc.md: passed over: has control characters in its path"
    ]


@pytest.mark.parametrize(
    "spec",
    ["simplecache::s3://k:hunter2@b/x", "postgresql:me:hunter2@db/kb", " https://me:hunter2@h/x"],
)
def test_what_is_no_proper_address_is_not_taken_for_a_file(read, spec):
    """The message about the missing file would repeat the password."""
    with pytest.raises(UsageError, match="expected an address such as") as caught:
        read(spec)

    assert "hunter2" not in str(caught.value)
