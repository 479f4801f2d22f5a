import json

import pytest

from ragforge.errors import DataError
from ragforge.files.set.sorted_records import DocumentLines
from ragforge.records import Chunk

CHUNKS = [
    Chunk(chunk_id="a", doc_id="two", text="Zwei.", start=9, end=14),
    Chunk(chunk_id="b", doc_id='o"ne\u00e9', text="Eins."),
    Chunk(chunk_id="c", doc_id="two", text="Eins.", start=0, end=5),
    Chunk(chunk_id="d", doc_id="three", text='A doc_id":"two" in the text.'),
]


def written(folder, lines):
    path = folder / "chunks.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, [chunk.model_dump_json() for chunk in CHUNKS])


def ids(path, doc_id):
    with DocumentLines(path, {doc_id}) as lines:
        return [chunk.chunk_id for chunk in lines.chunks_of(doc_id)]


def test_chunks_of_a_document_come_in_its_order(path):
    """The file is sorted by id, and a page by where its chunks stand."""
    assert ids(path, "two") == ["c", "a"]


def test_id_that_json_escapes_is_found(path):
    """A file name may have a quotation mark."""
    assert ids(path, 'o"ne\u00e9') == ["b"]


def test_unknown_document_has_no_chunks(path):
    """A document may be gone."""
    assert ids(path, "four") == []


def test_document_that_was_not_asked_for_has_no_chunks(path):
    """Only what is asked for is remembered."""
    with DocumentLines(path, {"two"}) as lines:
        assert lines.chunks_of("three") == []


def test_lines_that_another_program_wrote_are_read(tmp_path):
    """Blanks, order of fields and escapes are free in JSON."""
    lines = [json.dumps({"doc_id": "two\u00e9", "text": "x", "chunk_id": "a"}), ""]
    path = written(
        tmp_path,
        ["\ufeff" + lines[0], lines[1], ' { "chunk_id": "b", "doc_id":"two\u00e9", "text":"y"}'],
    )

    assert ids(path, "two\u00e9") == ["a", "b"]


def test_line_that_is_no_chunk_is_named(tmp_path):
    """Bad data must not pass for nothing."""
    path = written(tmp_path, [CHUNKS[0].model_dump_json(), "{}"])

    with pytest.raises(DataError, match=r"chunks\.jsonl:2: chunk_id: field required"):
        DocumentLines(path, {"two"})


def test_missing_file_is_told(tmp_path):
    """It may have been removed under a refresh."""
    with pytest.raises(DataError, match="cannot be read"):
        DocumentLines(tmp_path / "none.jsonl", {"two"})
