import pytest

from ragforge.errors import DataError
from ragforge.records import SourceDocument
from ragforge.refresh.corpus.reading import KnownDocuments

ROWS = [
    SourceDocument(doc_id=name, sha256=f"digest of {name}", n_chars=number, n_chunks=1)
    for number, name in enumerate(("a.md", "b/ü.md", "c#1"))
]


def write(path, rows=ROWS, end="\n"):
    path.write_text("\n".join(row.model_dump_json() for row in rows) + end, encoding="utf-8")
    return path


@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
def test_documents_are_found_by_id(tmp_path, end):
    """Also the last one of a file that ends otherwise."""
    known = KnownDocuments.of(write(tmp_path / "documents.jsonl", end=end))

    assert [known.get(row.doc_id) for row in ROWS] == ROWS
    assert known.get("nothing.md") is None


def test_every_one_of_many_is_found(tmp_path):
    """Digests end in zeros now and then, which arrays of bytes drop."""
    ids = sorted(f"{number}.md" for number in range(3000))
    rows = [SourceDocument(doc_id=name, sha256="s", n_chars=0, n_chunks=0) for name in ids]
    known = KnownDocuments.of(write(tmp_path / "documents.jsonl", rows))

    assert [known.find(name) for name in ids] == list(range(3000))


def test_a_digest_is_told_from_another(tmp_path):
    """It says whether a document is as it was."""
    known = KnownDocuments.of(write(tmp_path / "documents.jsonl"))

    assert (known.says(1, "digest of b/ü.md"), known.says(1, "digest of a.md")) == (True, False)


def test_lines_are_those_of_the_file(tmp_path):
    """Rows that stay are copied as bytes."""
    path = write(tmp_path / "documents.jsonl")
    known = KnownDocuments.of(path)

    assert b"".join(map(known.line, range(len(known)))) == path.read_bytes()


def test_rows_are_read_when_the_file_has_moved(tmp_path):
    """It becomes a file of the next version while it is still asked for rows."""
    path = write(tmp_path / "documents.jsonl")
    known = KnownDocuments.of(path)
    path.rename(tmp_path / "elsewhere.jsonl")

    assert known.get("a.md") == ROWS[0]


def test_an_empty_file_has_no_documents(tmp_path):
    """Nothing can be mapped of it."""
    path = tmp_path / "documents.jsonl"
    path.write_text("")

    assert (len(KnownDocuments.of(path)), KnownDocuments.of(path).get("a.md")) == (0, None)


def test_a_file_that_is_not_sorted_is_refused(tmp_path):
    """Merging it would lose rows."""
    path = write(tmp_path / "documents.jsonl", ROWS[::-1])
    with pytest.raises(DataError, match=r"documents\.jsonl:2: doc_id: expected one above 'c#1'"):
        KnownDocuments.of(path)
