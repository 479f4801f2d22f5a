import json

import pytest
from corpora import SETTINGS, page, set_of, write_pages

from ragforge.corpus.chunk_files import describe_chunking
from ragforge.files.set.dataset import Dataset


@pytest.fixture
def docs(tmp_path):
    return write_pages(tmp_path / "docs", ["ant", "bee"])


@pytest.fixture
def dataset(tmp_path, docs):
    """A set of two pages."""
    return set_of(tmp_path / "set", docs)


def contents(dataset):
    return {path.name: path.read_bytes() for path in dataset.path.iterdir() if path.is_file()}


def test_documents_are_recorded_with_how_they_were_cut(dataset):
    """A refresh reads from them what changed."""
    rows = list(dataset.documents())

    assert [(row.doc_id, row.n_chunks) for row in rows] == [("ant.md", 3), ("bee.md", 3)]
    assert rows[0].n_chars == len(page("ant"))
    assert dataset.manifest.cutting == describe_chunking(SETTINGS)
    assert dataset.manifest.files["documents.jsonl"].records == 2
    assert not dataset.changed_by_hand("documents.jsonl")


def test_taking_the_same_again_changes_nothing(dataset, tmp_path, docs):
    """A rerun gives the same bytes."""
    before = contents(dataset)
    set_of(tmp_path / "set", docs)

    assert contents(dataset) == before


def test_documents_that_were_known_keep_their_past(dataset, tmp_path):
    """Chunking again must not forget former names."""
    old = [row.model_copy(update={"aliases": ("former.md",)}) for row in dataset.documents()]
    path = dataset.path / "documents.jsonl"
    path.write_text("".join(f"{row.model_dump_json()}\n" for row in old))
    set_of(tmp_path / "set", tmp_path / "docs")

    assert list(dataset.documents()) == old


def test_ready_made_chunks_have_no_documents(tmp_path):
    """Nothing is known of what they were cut from."""
    rows = [{"id": "1", "document": "a", "text": "one"}]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) for row in rows))
    made = set_of(tmp_path / "other", None, chunk_file=file)

    assert (list(made.documents()), made.manifest.cutting) == ([], "")


def test_documents_can_be_forgotten(dataset):
    """Chunks that took the place of those of the documents are not of them."""
    dataset.drop_documents()

    assert list(Dataset(dataset.path).documents()) == []
    assert (dataset.manifest.cutting, "documents.jsonl" in dataset.manifest.files) == ("", False)
