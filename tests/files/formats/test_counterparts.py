import json

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.counterparts import WrittenPassage, read_translations, read_written


def write(path, *rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_translations_go_by_their_chunk(tmp_path):
    """Tables and near names are read as everywhere else."""
    lines = write(tmp_path / "a.jsonl", {"chunk_id": "a", "translation": "Ein Text."})
    table = tmp_path / "b.csv"
    table.write_text("id,text\na,Ein Text.\n", encoding="utf-8")

    assert read_translations(lines) == read_translations(table) == {"a": "Ein Text."}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"chunk_id": "a"}], "chunk_id"),
        ([{"chunk_id": "a", "translation": " "}], "translation: expected text"),
        ([{"chunk_id": "a", "translation": "x"}] * 2, "chunk 'a': has two translations"),
    ],
)
def test_translations_that_cannot_be_taken_are_named(tmp_path, rows, message):
    """A chunk without its translation would be compared with itself."""
    with pytest.raises(DataError, match=message):
        read_translations(write(tmp_path / "a.jsonl", *rows))


def test_passages_have_a_writer(tmp_path):
    """Who wrote a passage decides which of two it is."""
    row = {"query": "How?", "model": "gpt-5", "text": "So."}
    path = write(tmp_path / "a.jsonl", row, {**row, "writer": "people", "chunk_id": 7, "grade": 2})

    assert read_written(path) == [
        WrittenPassage("How?", "How?", "", "gpt-5", "So.", None),
        WrittenPassage("How?", "How?", "7", "people", "So.", 2),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query": "How?", "text": "So."}], "writer"),
        ([{"query": "How?", "writer": "a", "text": ""}], "text: expected text"),
        ([{"query": "How?", "writer": "a", "text": "So."}] * 2, "'a' has two passages of the same"),
        ([{"query": "How?", "writer": "a", "text": "So.", "grade": "good"}], "grade: expected"),
    ],
)
def test_passages_that_cannot_be_taken_are_named(tmp_path, rows, message):
    """Before any call is paid."""
    with pytest.raises(DataError, match=message):
        read_written(write(tmp_path / "a.jsonl", *rows))
