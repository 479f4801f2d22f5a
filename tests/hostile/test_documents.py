"""Documents whose names, links or sizes are attacks, cut on the command line."""

import pytest
from hostile_commands import MOST_MB, ran
from hostile_corpus import (
    write_deep_pdf,
    write_docx_bomb,
    write_line_bomb,
    write_links,
    write_names,
    write_pdf_bomb,
)

QUARTER = 1 << 28
SECRET = "The password of the shop is beeswax and honey."


def test_names_are_shown_and_not_obeyed(tmp_path):
    """A name is a text of whoever made the file; two of these are hidden files, one is no text."""
    write_names(tmp_path / "docs")

    done = ran(tmp_path, "chunk", "docs", "--out", "chunks.jsonl")

    assert (done.code, done.raw, done.obeyed) == (0, [], [])
    assert "passed over" in done.err
    assert (tmp_path / "chunks.jsonl").read_text(encoding="utf-8").count("\n") == 11


@pytest.fixture
def linked(tmp_path):
    """A folder with links that lead out of it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text(f"# Secret\n\n{SECRET}\n")
    return write_links(tmp_path / "docs", tmp_path / "outside" / "secret.md")


def test_links_are_not_followed_out_of_a_folder(tmp_path, linked):
    """A password file must not become a chunk that is sent to a model."""
    done = ran(tmp_path, "chunk", "docs", "--out", "chunks.jsonl")
    text = (tmp_path / "chunks.jsonl").read_text(encoding="utf-8")

    assert (done.code, SECRET in text, "jar of wax" in text) == (0, False, True)
    assert "file.md: passed over" in done.err


def test_links_are_followed_for_who_wants_it(tmp_path, linked):
    """Some corpora are made of links."""
    done = ran(tmp_path, "chunk", "docs", "--follow-links", "--out", "chunks.jsonl")

    assert done.code == 0
    assert SECRET in (tmp_path / "chunks.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("bomb.docx", lambda path: write_docx_bomb(path, QUARTER)),
        ("bomb.pdf", lambda path: write_pdf_bomb(path, QUARTER)),
        ("deep.pdf", write_deep_pdf),
        ("bomb.jsonl.gz", lambda path: write_line_bomb(path, QUARTER)),
    ],
)
def test_a_bomb_is_passed_over_and_the_rest_is_read(tmp_path, name, write):
    """A megabyte from a stranger must not take the memory of a machine, nor its night."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "own.md").write_text("# Own\n\nShelf 1 holds the jar of wax.\n")
    write(tmp_path / "docs" / name)

    done = ran(tmp_path, "chunk", "docs", "--out", "chunks.jsonl", "--include", "**")

    assert (done.code, done.mb < MOST_MB) == (0, True)
    assert f"{name}: passed over" in done.err
    assert (tmp_path / "chunks.jsonl").read_text(encoding="utf-8").count("jar of wax") == 1


def test_a_packed_file_of_one_endless_line_is_refused(tmp_path):
    """Judgments, runs and golden sets come packed, too: 100 kB of Zstandard are a gigabyte."""
    write_line_bomb(tmp_path / "golden.jsonl.zst")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "own.md").write_text("# Own\n\nShelf 1 holds the jar of wax.\n")

    done = ran(tmp_path, "import", "golden.jsonl.zst", "--documents", "docs", "--out", "set")

    assert (done.code, done.mb < MOST_MB) == (3, True)
    assert "holds a line of more than" in done.err
