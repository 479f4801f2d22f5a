import csv
import gzip
import json
import os
from threading import Thread

import pytest

from ragforge.errors import DataError
from ragforge.files.formats.chunks import read_chunks
from ragforge.records import Chunk

NATIVE = {
    "chunk_id": "c_1",
    "doc_id": "a.md",
    "text": "body",
    "heading_path": ["Top", "Sub"],
    "start": 3,
    "end": 7,
}


def lines(path, *rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def chunk(chunk_id="1", doc_id="1", text="body", heading_path=()):
    return Chunk(chunk_id=chunk_id, doc_id=doc_id, text=text, heading_path=heading_path)


def test_native_rows_come_back_whole(tmp_path):
    """What `chunk` wrote must be read with its offsets and headings."""
    assert list(read_chunks(lines(tmp_path / "chunks.jsonl", NATIVE))) == [
        Chunk.model_validate(NATIVE)
    ]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"id": "1", "document": "a.md", "text": "body"}, chunk(doc_id="a.md")),
        ({"id": "1", "text": "body"}, chunk()),
        ({"id": 1, "text": "body"}, chunk()),
        ({"_id": "1", "title": "Top", "text": "body"}, chunk(heading_path=("Top",))),
        ({"_id": "1", "title": "", "text": "body"}, chunk()),
        ({"_id": "1", "title": "Top", "text": ""}, chunk(text="Top")),
        ({"chunkId": "1", "docId": 7, "content": "body"}, chunk(doc_id="7")),
        ({"chunk_id": "1", "document_id": "d", "page_content": "body"}, chunk(doc_id="d")),
        ({"id": "1", "text": "body", "metadata": {"source": "s.md"}}, chunk(doc_id="s.md")),
        ({"chunk_id": "1", "doc_id": "d", "text": "body", "tokens": 5}, chunk(doc_id="d")),
    ],
)
def test_foreign_rows_are_taken_as_they_are(tmp_path, row, expected):
    """Users have chunk files already, and converting them first is where people give up."""
    assert list(read_chunks(lines(tmp_path / "x.jsonl", row))) == [expected]


def test_json_list_holds_chunks(tmp_path):
    """Many exporters write one list."""
    file = tmp_path / "chunks.json"
    file.write_text('[{"id": "1", "text": "body"}]', encoding="utf-8")

    assert list(read_chunks(file)) == [chunk()]


def test_json_object_holds_chunks(tmp_path):
    """Some exporters wrap the list."""
    file = tmp_path / "chunks.json"
    file.write_text('{"version": 2, "chunks": [{"id": "1", "text": "body"}]}', encoding="utf-8")

    assert list(read_chunks(file)) == [chunk()]


def test_json_file_of_one_object_a_line_is_read(tmp_path):
    """Many a JSON Lines file is named .json."""
    file = lines(tmp_path / "x.json", {"id": 1, "content": "a"}, {"id": 2, "content": "b"})

    assert list(read_chunks(file)) == [chunk(text="a"), chunk("2", "2", "b")]


def test_chunks_are_found_beside_other_lists(tmp_path):
    """Some exporters put queries and chunks into one file."""
    file = lines(tmp_path / "x.json", {"queries": [{"id": 7}], "chunks": [{"id": 1, "text": "a"}]})

    assert list(read_chunks(file)) == [chunk(text="a")]


def test_json_of_a_single_chunk_is_read(tmp_path):
    """A pipe of one row does not show that more could have come."""
    assert list(read_chunks(lines(tmp_path / "x", {"id": 1, "content": "a"}))) == [chunk(text="a")]


@pytest.mark.parametrize("name", ["chunks.jsonl.gz", "chunks.json.gz"])
def test_gzip_is_unpacked(tmp_path, name):
    """Corpora are large, and lie packed on the disk."""
    file = tmp_path / name
    file.write_bytes(gzip.compress(f"{json.dumps(NATIVE)}\n".encode()))

    assert list(read_chunks(file)) == [Chunk.model_validate(NATIVE)]


def test_pipe_is_read(tmp_path):
    """`--chunks <(make-chunks)` saves a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lines, args=(pipe, NATIVE, {**NATIVE, "chunk_id": "c_2"}))
    writer.start()

    assert [found.chunk_id for found in read_chunks(pipe)] == ["c_1", "c_2"]
    writer.join()


def test_csv_with_semicolons_is_read(tmp_path):
    """Spreadsheets write them where the comma is the decimal sign."""
    file = tmp_path / "chunks.csv"
    file.write_text("id;document;text\n 1 ; d ;body, more\n", encoding="utf-8")

    assert list(read_chunks(file)) == [chunk(doc_id="d", text="body, more")]


def test_blanks_around_the_text_of_a_cell_stay(tmp_path):
    """Offsets count them, and in code they carry meaning."""
    file = tmp_path / "chunks.csv"
    file.write_text('chunk_id,doc_id,text,start,end\nc,d,"  body\n",3,10\n', encoding="utf-8")

    assert [found.text for found in read_chunks(file)] == ["  body\n"]


def test_limit_of_the_csv_module_is_left_as_it_was(tmp_path):
    """The limit holds for the whole process, which may be somebody else's."""
    limit = csv.field_size_limit()
    file = tmp_path / "chunks.csv"
    file.write_text("id,text\n1,a\n2,b\n", encoding="utf-8")

    next(read_chunks(file))

    assert csv.field_size_limit() == limit


def test_csv_with_a_byte_order_mark_and_line_ends_in_cells_is_read(tmp_path):
    """Spreadsheets write both."""
    file = tmp_path / "chunks.csv"
    file.write_bytes('\ufeffid,document,text\r\n1,a.md,"one,\ntwo"\r\n'.encode())

    assert list(read_chunks(file)) == [chunk(doc_id="a.md", text="one,\ntwo")]


def test_tsv_is_read(tmp_path):
    """Retrieval collections come with tabs."""
    file = tmp_path / "chunks.tsv"
    file.write_text("chunk_id\tdoc_id\ttext\n1\td\tbody\n", encoding="utf-8")

    assert list(read_chunks(file)) == [chunk(doc_id="d")]


def test_csv_with_native_columns_keeps_headings_and_offsets(tmp_path):
    """A table edited by hand must not lose where its chunks stand."""
    file = tmp_path / "chunks.csv"
    file.write_text(
        "chunk_id,doc_id,text,heading_path,start,end\nc_1,a.md,body,Top > Sub,3,7\n", "utf-8"
    )

    assert list(read_chunks(file)) == [Chunk.model_validate(NATIVE)]


def test_cell_longer_than_the_csv_limit_is_read(tmp_path):
    """The csv module refuses 128 KiB unless told otherwise."""
    file = tmp_path / "chunks.csv"
    file.write_text(f"id,text\n1,{'x' * 200_000}\n", encoding="utf-8")

    assert [len(found.text) for found in read_chunks(file)] == [200_000]


def test_beir_folder_is_read_by_its_corpus(tmp_path):
    """BEIR sets are given as a folder."""
    lines(tmp_path / "corpus.jsonl", {"_id": "1", "title": "Top", "text": "body"})

    assert list(read_chunks(tmp_path)) == [chunk(heading_path=("Top",))]


def test_dataset_folder_is_read_by_its_chunks(tmp_path):
    """A dataset directory can be given where a chunk file can."""
    lines(tmp_path / "chunks.jsonl", NATIVE)

    assert list(read_chunks(tmp_path)) == [Chunk.model_validate(NATIVE)]


def test_folder_without_chunks_says_what_is_looked_for(tmp_path):
    """The user must learn which file is missing."""
    with pytest.raises(DataError, match=r"expected a folder with chunks\.jsonl or corpus\.jsonl"):
        list(read_chunks(tmp_path))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"id": "1", "text": "a"}, {"text": "b"}],
            r":2: chunk_id: expected one of chunk_id, id.*, got 'text'$",
        ),
        (
            [{"id": "1", "text": "a"}, {"id": "2"}],
            r":2: text: expected one of text, content.*, got 'id'$",
        ),
        ([{"id": "1", "text": ""}], r":1: text: expected text, got ''"),
        ([{"id": "1", "text": " \n"}], r":1: text: expected text, got ' \\n'"),
        ([{"id": "1", "text": 5}], r":1: text: expected text, got 5"),
        ([{"id": "", "text": "a"}], r":1: id: expected an id .*, got ''"),
        ([{"id": True, "text": "a"}], r":1: id: expected an id .*, got True"),
        ([{"id": 1.5, "text": "a"}], r":1: id: expected an id .*, got 1\.5"),
        ([{"id": "1", "document": None, "text": "a"}], r":1: document: expected an id .*None"),
        ([{"id": "1", "text": "a"}, {"id": 1, "text": "b"}], r":2: id: expected an id that is"),
        ([{**NATIVE, "extra": 1}], r":1: extra: expected one of chunk_id, doc_id, text"),
        ([{**NATIVE, "start": "x"}], r":1: start: expected a valid integer.*got 'x'"),
        ([{**NATIVE, "heading_path": "Top"}], r":1: heading_path: expected a valid tuple"),
        ([{**NATIVE, "end": 9}], r":1: end: expected 7 .*, got 9"),
        ([{"id": "1", "text": "x\ud800"}], r":1: text: expected text, got 'x\\ud800'"),
        ([{"key": "1", "passage": "a"}], r":1: expected one of these.*'key', 'passage':"),
    ],
)
def test_faulty_row_is_named_by_line_field_and_value(tmp_path, rows, message):
    """A chunk file is fixed by the message alone."""
    with pytest.raises(DataError, match=message):
        list(read_chunks(lines(tmp_path / "x.jsonl", *rows)))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b"", "is empty: no chunks"),
        ("x.jsonl", b"\n \n", "is empty: no chunks"),
        ("x.json", b"[]", "holds no chunks"),
        ("x.csv", b"", "is empty: no chunks"),
        ("x.csv", b"id,text\n", "holds no chunks"),
        ("x.jsonl", b'{"id": "1", "text": "a"}\n{"id": "2", "te', "x.jsonl:2: is not one complete"),
        ("x.jsonl", b"\x89PNG\r\n\x1a\n\xff\xfe", "x.jsonl:1: byte 0 .* is not UTF-8"),
        ("x.jsonl", b'["a"]\n', "x.jsonl:1: expected a JSON object"),
        ("x.json", b'[{"id": "1", "text": "a"}, {"id', "x.json:1: is not whole JSON"),
        ("x.json", b'{"id": 1}\n{"id": 2}\n', "x.json:1: expected one of these shapes"),
        ("x.json", b'{"rows": []}', "has none of the shapes"),
        ("x.json", b'[{"id": 1, "text": "a", "id": 2}]', "'id' comes twice in one object"),
        ("x.jsonl", b'{"id": 1, "text": "a", "id": 2}', "x.jsonl:1: 'id' comes twice"),
        ("x.jsonl", b'{"id": 1, "text": "a", "ID": 2}', "x.jsonl:1: 'id' and 'ID' are one field"),
        ("x.json", b"[1]", "item 1: expected an object, got 1"),
        ("x.json", b"[" * 200_000, "x.json:1: is nested too deeply"),
        ("x.json", b"\x00\x01", "is binary"),
        ("x.csv", b"\x00\x01", "is binary"),
        ("x.csv", b'id,text\n1,"torn', "x.csv:2: is no line of a table"),
        ("x.csv", b'id,text\n1,a\n2,"torn\n3,b\n', "x.csv:3: is no line of a table"),
        ("x.csv", b'id,text\n1,"a\nb"\n2\n', "x.csv:4: expected 2 cells"),
        ("x.csv", b'id,text\n1,"a\nb",c\n', "x.csv:2: expected 2 cells"),
        ("x.csv", b"id,text,id\n1,a,2\n", "x.csv:1: column 'id' comes twice"),
        ("x.csv", b"key,name\n1,a\n", "x.csv:2: expected one of these.*'key', 'name':"),
        ("x.md", b"# Title\n\nBody, with commas\n", "x.md: expected one of these.*got a table"),
        ("x.jsonl.gz", b"not packed", "x.jsonl.gz: is not a whole .gz file: Not a gzipped file"),
        ("x.jsonl.bz2", b"", "only .gz and .zst are; unpack it first"),
        ("x.csv", b"id,text\n1,\n", "x.csv:2: text: expected text, got ''"),
        ("x.tsv", b"1\tsome text\n2\tmore\n", "x.tsv: expected one of these.*headed"),
    ],
)
def test_file_that_is_no_chunk_file_is_refused(tmp_path, name, content, message):
    """Nothing half-read may pass for a corpus."""
    (tmp_path / name).write_bytes(content)

    with pytest.raises(DataError, match=message):
        list(read_chunks(tmp_path / name))


def test_missing_file_is_a_data_error(tmp_path):
    """A mistyped path is the user's to fix, not a traceback."""
    with pytest.raises(DataError, match="cannot be read"):
        list(read_chunks(tmp_path / "absent.jsonl"))
