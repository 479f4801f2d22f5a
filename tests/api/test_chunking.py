"""Chunks of documents, and what is wrong with them, as the command has them."""

import asyncio
import json

import pytest

import ragforge as rf
from ragforge.cli import main

DOCUMENTS = {"gate.md": "# Gate\n\nThe gate opens at nine.\n", "shop.md": "# Shop\n\nOpen.\n"}


@pytest.fixture
def folder(place):
    """A folder with two documents."""
    for name, text in DOCUMENTS.items():
        (place / "docs").mkdir(exist_ok=True)
        (place / "docs" / name).write_text(text)
    return place / "docs"


def test_chunks_are_there_to_be_looped_over(folder):
    """Whoever cuts in a notebook wants the chunks, not a file."""
    found = rf.chunk(folder, quiet=True)

    assert [chunk.doc_id for chunk in found] == ["gate.md", "shop.md"]
    assert len(found) == 2
    assert [row["heading_path"] for row in found.rows()] == ["Gate", "Shop"]


def test_a_file_is_the_one_of_the_command(folder, place, capsys):
    """The same bytes, the same counts."""
    main(["chunk", str(folder), "--out", "one.jsonl", "-q", "--json"])
    shown = json.loads(capsys.readouterr().out)

    found = rf.chunk(folder, out="two.jsonl", quiet=True)

    assert found.to_dict() == {**shown, "out": "two.jsonl"}
    assert (place / "two.jsonl").read_bytes() == (place / "one.jsonl").read_bytes()
    assert {chunk.doc_id for chunk in found} == set(DOCUMENTS)


def test_the_quality_is_that_of_the_command(folder, capsys):
    """Faults are counted the same way, and each has its fix."""
    main(["chunk", str(folder), "--report", "-q", "--json"])
    shown = json.loads(capsys.readouterr().out)

    quality = rf.chunk(folder, quiet=True).quality()

    assert json.loads(json.dumps(quality.to_dict())) == shown
    assert {row["kind"]: row["chunks"] for row in quality.rows()}["too_small"] == 2
    assert quality.table().startswith("2 documents, 2 chunks")


def test_chunks_can_be_given_on(folder, place):
    """Cut once, look, and generate from what was looked at."""
    found = rf.chunk(folder, quiet=True)

    made = rf.generate(chunks=found, out="set", n=1, allow_shortfall=True, quiet=True)

    assert {chunk.chunk_id for chunk in made.chunks()} == {chunk.chunk_id for chunk in found}


def test_ready_made_chunks_are_taken():
    """Those of an index that is there are looked at as well."""
    found = rf.chunk(chunks=[{"id": "a", "text": "A gate."}], quiet=True)

    assert found.to_dict() == {
        "out": None,
        "documents": 1,
        "chunks": 1,
        "median_chars": 7,
        "largest_chars": 7,
    }


def test_a_corpus_is_named_once():
    """Two would be cut into one."""
    with pytest.raises(rf.UsageError, match="either documents or chunks"):
        rf.chunk({"a.md": "A gate."}, chunks=[{"id": "a", "text": "A gate."}])


def test_chunking_can_be_awaited():
    """A service cuts what is uploaded, and answers meanwhile."""
    found = asyncio.run(rf.aio.chunk(DOCUMENTS, quiet=True))

    assert len(found) == 2
