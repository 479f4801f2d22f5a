import gzip
import json

import pytest

from ragforge.corpus.documents import read_documents
from ragforge.corpus.row_documents import Export, ExportedRow
from ragforge.errors import DataError


def write(path, *rows):
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


def names(path):
    return [row.name for row in Export(path).rows()]


def test_row_has_its_id_title_and_text_and_nothing_else(tmp_path):
    """A field such as updated_at must not make a document look changed."""
    file = write(tmp_path / "a.jsonl", {"id": 7, "title": "Oak", "body": "A tree.", "seen": "now"})

    assert list(Export(file).rows()) == [ExportedRow("7", "Oak", "A tree.", "text")]


@pytest.mark.parametrize("name", ["id", "doc_id", "docId", "_id", "url"])
def test_id_goes_by_several_names(tmp_path, name):
    """Each system exports its own."""
    assert names(write(tmp_path / "a.jsonl", {name: "x", "text": "t"})) == ["x"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a.ndjson.gz"])
def test_documents_are_named_after_file_and_row(tmp_path, name):
    """As those of a table are."""
    file = write(tmp_path / name, {"id": "x", "text": "t"})

    assert [document.doc_id for document in read_documents([file])] == [f"{name}#x"]


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("markdown", "# Oak\n\nA tree.", ("Oak", "markdown")),
        ("text/markdown; charset=utf-8", "# Oak\n\nA tree.", ("Oak", "markdown")),
        ("HTML", "<title>Oak</title><p>A tree.", ("Oak", "html")),
        (None, "# Oak", ("", "text")),
    ],
)
def test_row_says_what_form_its_text_has(tmp_path, form, text, expected):
    """Headings make better chunks, and plain text has none."""
    file = write(tmp_path / "a.jsonl", {"id": "x", "text": text, "format": form})

    [document] = read_documents([file])

    assert (document.title, document.format) == expected


@pytest.mark.parametrize(
    "mark", [{"deleted": True}, {"is_deleted": 1}, {"_deleted": "true"}, {"deleted_at": "May"}]
)
def test_row_that_is_deleted_is_no_document(tmp_path, mark):
    """A tombstone says that a document is gone; it needs no text."""
    file = write(tmp_path / "a.jsonl", {"id": "x", "text": "t"}, {"id": "y", **mark})

    assert names(file) == ["x"]


def test_last_word_on_a_document_counts(tmp_path):
    """An export that is a log of changes tells first what was, then that it is gone, or back."""
    there, gone = {"id": "x", "text": "t"}, {"id": "x", "deleted": True}

    assert names(write(tmp_path / "gone.jsonl", there, gone)) == []
    assert names(write(tmp_path / "back.jsonl", there, gone, there)) == ["x"]


def test_empty_text_is_told_and_passed_over(tmp_path):
    """It must not end the reading of all others."""
    file = write(tmp_path / "a.jsonl", {"id": "x", "text": None}, {"id": "y", "text": "t"})
    notes = []

    found = list(read_documents([file], skipped=lambda *note: notes.append(note)))

    assert [document.doc_id for document in found] == ["a.jsonl#y"]
    assert notes == [(f"{file}#x", "holds no text")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "t"}, r"a\.jsonl:2: id: expected one of id, doc_id, .* got 'text'"),
        ({"id": None, "text": "t"}, r"a\.jsonl:2: id: expected an id"),
        ({"id": "y"}, r"a\.jsonl:2: text: expected one of text, content, "),
        ({"id": "y", "text": ["t"]}, r"a\.jsonl:2: text: expected text, got \['t'\]"),
        ({"id": "x", "text": "t"}, r"a\.jsonl:2: id 'x' comes twice"),
        ({"id": "y", "text": "t", "format": "doc"}, r"a\.jsonl:2: format: expected one of text,"),
        ({"id": "y", "text": "t", "deleted": "maybe"}, r"deleted: expected true or false, got"),
    ],
)
def test_fault_in_the_last_row_shows_before_the_first_is_taken(tmp_path, row, message):
    """Half of an export would look like many deletions."""
    file = write(tmp_path / "a.jsonl", {"id": "x", "text": "t"}, row)

    with pytest.raises(DataError, match=message):
        Export(file)


def test_exports_in_a_folder_are_read_where_include_names_them(tmp_path):
    """The files of a dataset below the documents are JSON Lines too."""
    write(tmp_path / "rows.jsonl", {"id": "x", "text": "t"})
    (tmp_path / "a.md").write_text("text")

    without = [document.doc_id for document in read_documents([tmp_path])]
    included = read_documents([tmp_path], include=["*.md", "*.jsonl"])

    assert without == ["a.md"]
    assert [document.doc_id for document in included] == ["a.md", "rows.jsonl#x"]


def test_folder_of_exports_alone_says_how_to_read_them(tmp_path):
    """The hint saves the search for it."""
    write(tmp_path / "rows.jsonl", {"id": "x", "text": "t"})

    with pytest.raises(DataError, match=r"got 1 files \(\.jsonl: 1\); exports .* include names"):
        list(read_documents([tmp_path]))
