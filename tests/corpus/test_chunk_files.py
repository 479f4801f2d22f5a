import sys
from types import SimpleNamespace

import pytest

from ragforge.config import Settings
from ragforge.corpus.chunk_files import (
    carry_histories,
    carry_history,
    chunk_documents,
    chunks_sha256,
    document_sha256,
    refuse_duplicate_documents,
    rows_of_chunks,
    write_corpus,
    write_ready_made,
)
from ragforge.corpus.documents import Document
from ragforge.errors import DataError, UsageError
from ragforge.files import record_files
from ragforge.observe import silent
from ragforge.records import Chunk, SourceDocument

SETTINGS = Settings().chunk
DOCUMENT = Document("a.md", "Title", "Text", "markdown")


@pytest.fixture
def documents(tmp_path):
    """Three documents of two sections."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(
            f"# {name}\n\n## One\n\n{name} one. {'x ' * 120}\n\n## Two\n\n{name} two. {'y ' * 120}"
        )
    return [folder]


@pytest.mark.parametrize("part", [1, 2, 100])
def test_written_chunks_are_those_that_are_loaded(tmp_path, documents, monkeypatch, part):
    """A large corpus goes to disk as a small one goes to memory, in the same order."""
    monkeypatch.setattr(record_files, "_PART_RECORDS", part)
    out = tmp_path / "new" / "chunks.jsonl"

    count = write_corpus(documents, SETTINGS, silent, out)

    loaded = sorted(chunk_documents(documents, SETTINGS, silent), key=lambda chunk: chunk.chunk_id)
    assert out.read_text() == "".join(f"{chunk.model_dump_json()}\n" for chunk in loaded)
    assert count == len(loaded) > 3
    assert [path.name for path in out.parent.iterdir()] == ["chunks.jsonl"]


def test_chunks_of_a_file_are_written_sorted(tmp_path):
    """Chunks are looked up by bisection."""
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "b", "text": "two"}\n{"id": "a", "text": "one"}\n')

    assert write_ready_made(file, silent, tmp_path / "out.jsonl") == 2
    assert (tmp_path / "out.jsonl").read_text().index('"a"') == len('{"chunk_id":')


def test_one_id_for_two_chunks_is_refused_and_the_old_file_stays(tmp_path, documents, monkeypatch):
    """Judgments would be of either."""
    monkeypatch.setattr("ragforge.corpus.chunking.chunk_id", lambda *_: 'c","doc_id":1')
    (tmp_path / "out.jsonl").write_text("old")
    with pytest.raises(DataError, match=r"comes twice, in a\.md and a\.md"):
        write_corpus(documents, SETTINGS, silent, tmp_path / "out.jsonl")

    assert (tmp_path / "out.jsonl").read_text() == "old"


def test_documents_without_text_are_refused_in_the_same_words(tmp_path):
    """It tells what was given."""
    (tmp_path / "a.md").write_text("# Only a title\n")
    with pytest.raises(DataError, match=r"a\.md: no text to cut into chunks"):
        write_corpus([tmp_path / "a.md"], SETTINGS, silent, tmp_path / "out.jsonl")


def test_a_place_that_cannot_be_written_is_told(tmp_path, documents):
    """A file in the way is the user's to move."""
    (tmp_path / "file").write_text("")

    with pytest.raises(DataError, match=r"out\.jsonl: cannot be written"):
        write_corpus(documents, SETTINGS, silent, tmp_path / "file" / "out.jsonl")


@pytest.fixture
def cut_by(monkeypatch, documents):
    """Cut the documents with a function."""

    def run(function, observer=silent):
        monkeypatch.setitem(sys.modules, "users_module", SimpleNamespace(cut=function))
        settings = SETTINGS.model_copy(update={"chunker": "users_module:cut"})
        return list(chunk_documents(documents, settings, observer))

    return run


def test_documents_that_a_chunker_drops_are_told(cut_by):
    """Whole documents would be missing from the corpus, and nobody would know."""
    told = []

    found = cut_by(lambda text: [] if text.startswith("# b") else [text], told.append)

    assert {chunk.doc_id for chunk in found} == {"a.md", "c.md"}
    assert [event.message for event in told] == ["1 documents gave no chunk: b.md"]


def test_chunker_that_gives_nothing_is_named(cut_by):
    """The documents are not empty; the fault is elsewhere."""
    with pytest.raises(UsageError, match="users_module:cut: gave no chunk for any of 3 documents"):
        cut_by(lambda text: [])


def row(doc_id="a", sha256="s", **more):
    return SourceDocument(doc_id=doc_id, sha256=sha256, n_chars=1, n_chunks=1, **more)


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
