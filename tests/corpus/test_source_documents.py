import pytest

from ragforge.corpus.documents import Document
from ragforge.corpus.source_documents import (
    carry_histories,
    carry_history,
    chunks_sha256,
    document_sha256,
    refuse_duplicate_documents,
    rows_of_chunks,
)
from ragforge.errors import DataError
from ragforge.records import Chunk, SourceDocument


def row(doc_id="a", sha256="s", **more):
    return SourceDocument(doc_id=doc_id, sha256=sha256, n_chars=1, n_chunks=1, **more)


DOCUMENT = Document("a.md", "Title", "Text", "markdown")


@pytest.mark.parametrize(
    "other",
    [
        Document("a.md", "Another", "Text", "markdown"),
        Document("a.md", "Title", "Other text", "markdown"),
        Document("a.md", "Title", "Text", "text"),
        Document("a.md", "Title\nText", "", "markdown"),
    ],
)
def test_a_digest_is_of_title_format_and_text(other):
    """Each of them decides which chunks a document has."""
    assert document_sha256(DOCUMENT) != document_sha256(other)


def test_a_digest_says_nothing_of_the_id():
    """A document that was renamed is known by it."""
    renamed = Document("b.md", "Title", "Text", "markdown")

    assert document_sha256(DOCUMENT) == document_sha256(renamed)


def test_a_document_that_goes_back_to_its_first_name_has_the_other_as_alias():
    """Its own id is none of its former ones."""
    before = row("b", aliases=("a",))

    assert carry_history(row("a"), before, 3, is_changed=False).aliases == ("b",)


def test_rows_are_renewed_by_id():
    """Cutting again forgets nothing, and what is gone stays gone."""
    before = [row("a", first_version=2, last_version=3), row("b"), row("c", last_version=2)]
    now = [row("a"), row("c", "changed"), row("d")]

    found = list(carry_histories(now, before, 5))
    assert [(item.doc_id, item.first_version, item.last_version) for item in found] == [
        ("a", 2, 3),
        ("c", 1, 5),
        ("d", 5, 5),
    ]


def test_an_id_that_comes_twice_is_refused():
    """Two documents under one id would be one."""
    with pytest.raises(DataError, match="document a comes twice"):
        list(refuse_duplicate_documents([row("a"), row("a", "t")]))


def test_rows_of_chunks_do_not_depend_on_their_order(tmp_path):
    """A ready-made file is in any order, and a set's own in that of ids."""
    chunks = [
        Chunk(chunk_id="3", doc_id="b", text="three"),
        Chunk(chunk_id="1", doc_id="a", text="one"),
        Chunk(chunk_id="2", doc_id="a", text="zwei"),
    ]

    found = list(rows_of_chunks(chunks, tmp_path))
    assert found == list(rows_of_chunks(chunks[::-1], tmp_path))
    assert [(item.doc_id, item.n_chars, item.n_chunks) for item in found] == [
        ("a", 7, 2),
        ("b", 5, 1),
    ]
    assert found[0].sha256 == chunks_sha256(chunks[1:])
