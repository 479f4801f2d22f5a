import json

import pytest

from ragforge.cli import main


@pytest.fixture
def run(capsys):
    """Run `ragforge chunk` and return exit code, stdout and stderr."""

    def run(*words):
        code = main(["chunk", *map(str, words)])
        return code, *capsys.readouterr()

    return run


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_chunks_are_written_and_summed_up(run, documents, tmp_path):
    """The path on stdout feeds the next command."""
    out = tmp_path / "new" / "chunks.jsonl"

    code, said, told = run(documents, "--out", out)

    assert (code, said) == (0, f"{out}\n")
    assert "chunks of 3 documents, median" in told
    assert [row["chunk_id"] for row in lines(out)] == sorted(row["chunk_id"] for row in lines(out))


def test_summary_is_one_json_object(run, documents, tmp_path):
    """Scripts read it."""
    out = tmp_path / "chunks.jsonl"

    _, said, _ = run(documents, "--out", out, "--json")

    found = json.loads(said)
    assert (found["documents"], found["chunks"]) == (3, len(lines(out)))


def test_report_writes_nothing(run, documents, tmp_path):
    """Looking must not change what is there."""
    before = sorted(tmp_path.rglob("*"))

    code, said, _ = run(documents, "--report")

    assert code == 0
    assert said.startswith("3 documents, ")
    assert sorted(tmp_path.rglob("*")) == before


def test_report_of_ready_made_chunks_is_the_same(run, documents, tmp_path):
    """Whoever cut the chunks elsewhere needs it most."""
    out = tmp_path / "chunks.jsonl"
    _, of_documents, _ = run(documents, "--report", "--json", "--out", out)

    _, of_chunks, _ = run("--chunks", out, "--report", "--json")

    assert json.loads(of_chunks) == json.loads(of_documents)


def test_ready_made_chunks_can_be_written_in_the_own_shape(run, tmp_path):
    """Other tools have other field names."""
    (tmp_path / "foreign.jsonl").write_text('{"id": "x", "document": "d", "text": "Words."}\n')

    run("--chunks", tmp_path / "foreign.jsonl", "--out", tmp_path / "own.jsonl")

    assert [row["chunk_id"] for row in lines(tmp_path / "own.jsonl")] == ["x"]


def test_chunker_of_the_user_is_taken(run, documents, tmp_path, monkeypatch):
    """A set must be made of the chunks that the system under test retrieves."""
    (tmp_path / "paragraphs.py").write_text("def cut(text):\n    return text.split('\\n\\n')\n")
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "chunks.jsonl"

    code, _, _ = run(documents, "--out", out, "--chunker", "paragraphs:cut")

    assert code == 0
    assert "# Returns" in [row["text"] for row in lines(out)]


def test_piece_that_is_not_in_the_document_ends_the_run(run, documents, tmp_path, monkeypatch):
    """Evidence could not be anchored in it."""
    (tmp_path / "summaries.py").write_text("def cut(text):\n    return ['A summary.']\n")
    monkeypatch.syspath_prepend(tmp_path)

    code, _, told = run(documents, "--report", "--chunker", "summaries:cut")

    assert code == 2
    assert "care.txt: piece 1: is not in the document: 'A summary.'" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected documents, or --chunks FILE, and not both"),
        (["docs", "--chunks", "x.jsonl", "--report"], "and not both"),
        (["docs"], "expected --out FILE, or --report, or both"),
    ],
)
def test_wrong_flags_are_told(run, words, message):
    """A missing flag must not write a file somewhere."""
    code, said, told = run(*words)

    assert (code, said) == (2, "")
    assert message in told


def test_empty_documents_are_a_data_error(run, tmp_path):
    """A report on nothing would look like a clean corpus."""
    (tmp_path / "a.md").write_text("")

    code, _, told = run(tmp_path, "--report")

    assert code == 3
    assert "no text to cut into chunks" in told


def test_links_out_of_a_folder_are_read_on_demand(tmp_path, documents, capsys):
    """A folder from elsewhere could bring any file of its reader's into the chunks."""
    (tmp_path / "passwords.md").write_text("# Passwords\n\nThe password of the house is tulip.\n")
    (documents / "link.md").symlink_to(tmp_path / "passwords.md")
    out = tmp_path / "chunks.jsonl"

    assert main(["chunk", str(documents), "--out", str(out)]) == 0
    assert "tulip" not in out.read_text()
    assert "link.md: passed over: links out of the folder" in capsys.readouterr().err
    assert main(["chunk", str(documents), "--out", str(out), "--follow-links"]) == 0
    assert "tulip" in out.read_text()
