import json

import pytest

from ragforge.errors import DataError
from ragforge.records import Chunk
from ragforge.refresh.corpus.chunk_merge import ChunkFiles, merge_chunks


def line(chunk_id, doc_id="a", text="text", **more):
    return f"{Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text, **more).model_dump_json()}\n"


@pytest.fixture
def merge(tmp_path):
    """Merge lines; returns what it came to and the three files."""

    def run(old, new, replaced=(), touched=lambda doc_id: None):
        path = tmp_path / "old.jsonl"
        path.write_bytes("".join(old).encode())
        files = ChunkFiles(*(tmp_path / name for name in ("chunks", "added", "removed")))
        found = merge_chunks(path, new, replaced.__contains__, files, touched)
        return found, *(
            path.read_text().splitlines(keepends=True)
            for path in (files.chunks, files.added, files.removed)
        )

    return run


def test_lines_of_other_documents_are_copied_as_they_stand(merge):
    """Whoever wrote them, in whatever form."""
    odd = json.dumps({"doc_id": 'b"ä', "text": "x", "chunk_id": "c2"}) + "\n"
    found, chunks, added, removed = merge([line("c1"), odd, line("c3")], [], {"a"})

    assert chunks == [odd]
    assert (added, removed) == ([], [line("c1"), line("c3")])
    assert (found.kept, found.added, found.removed) == (1, 0, 2)


def test_ids_with_escapes_are_read_as_they_are_meant(merge):
    """A document with quotes in its name is replaced like any other."""
    name = 'b "quoted" \\ name'
    _, chunks, _, _ = merge([line("c1", name)], [line("c1", name, "changed")], {name})

    assert chunks == [line("c1", name, "changed")]


def test_a_last_line_without_an_end_is_a_line(merge):
    """Two chunks in one line would be none."""
    _, chunks, _, _ = merge([line("c1").rstrip("\n")], [line("c2", "b")])

    assert chunks == [line("c1"), line("c2", "b")]


def test_one_id_for_chunks_of_two_documents_is_refused(merge):
    """Judgments would be of either."""
    with pytest.raises(DataError, match="chunk c1 comes twice, in a and b"):
        merge([line("c1", "a")], [line("c1", "b")], {"b"})


def test_a_file_that_is_not_sorted_is_refused(merge):
    """Merging it would lose chunks."""
    with pytest.raises(DataError, match=r"old\.jsonl:2: chunk_id: expected one above 'c2'"):
        merge([line("c2"), line("c1")], [])


def test_a_line_that_is_no_chunk_is_refused(merge):
    """The file is broken, and the next version must not be."""
    with pytest.raises(DataError, match=r"old\.jsonl:1: expected a chunk with chunk_id"):
        merge(['{"chunk_id":"c1"}\n'], [])


def test_documents_with_other_chunks_are_told(merge):
    """Where documents are not recorded, this is how they are compared."""
    told = []
    old = [line("c1"), line("c2", "b", "x y"), line("c3", "c")]
    merge(old, [line("c1"), line("c2", "b", "x  y")], {"a", "b", "c"}, told.append)

    assert set(told) == {"b", "c"}
