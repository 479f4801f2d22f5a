import json
import random
import shutil
import sys
from types import SimpleNamespace

import pytest
from corpora import SETTINGS, page, section, set_of, write_pages

from ragforge.config import ChunkSettings
from ragforge.errors import DataError, UsageError
from ragforge.files.record_files import read_records
from ragforge.observe import silent
from ragforge.records import Chunk, SourceDocument
from ragforge.refresh.corpus import reading
from ragforge.refresh.corpus.diff import diff_chunks, diff_corpus
from ragforge.refresh.corpus.reading import KnownDocuments

NAMES = ("ant", "bee", "cow", "dog")


@pytest.fixture
def docs(tmp_path):
    return write_pages(tmp_path / "docs", NAMES)


@pytest.fixture
def parent(tmp_path, docs):
    """A set of four pages of three chunks each."""
    return set_of(tmp_path / "set", docs)


@pytest.fixture
def diff(tmp_path, docs, parent):
    """Compare the documents as they are now with the set."""

    def run(settings=SETTINGS, observer=silent, place="place", dataset=parent):
        return diff_corpus(dataset, [docs], settings, tmp_path / place, observer, 2)

    return run


def edit(docs, name, before, after):
    path = docs / f"{name}.md"
    path.write_text(path.read_text().replace(before, after))


def test_an_unchanged_corpus_writes_nothing(diff, tmp_path, parent):
    """Most nights are like that, and must cost next to nothing."""
    found = diff()

    assert found.is_empty
    assert list((tmp_path / "place").iterdir()) == []
    assert (found.chunks_path, found.chunks) == (
        parent.chunks_path,
        parent.manifest.files["chunks.jsonl"],
    )
    assert (list(found.added()), list(found.removed()), dict(found.moves)) == ([], [], {})


def test_an_unchanged_document_is_not_cut(diff, docs, monkeypatch):
    """Cost grows with what changed, not with the corpus."""
    cut = []
    whole = reading.configured_chunker

    def bought(settings):
        chunker = whole(settings)
        return lambda document: cut.append(document.doc_id) or chunker(document)

    monkeypatch.setattr(reading, "configured_chunker", bought)
    edit(docs, "bee", "It says", "It now says")
    diff()

    assert cut == ["bee.md"]


@pytest.mark.parametrize(
    "change",
    [
        lambda docs: edit(docs, "bee", "It says bee1", "It now says bee1"),
        lambda docs: (docs / "cow.md").unlink(),
        lambda docs: write_pages(docs, ["emu", "fox"]),
        lambda docs: (docs / "ant.md").rename(docs / "zebra.md"),
        lambda docs: edit(docs, "dog", "## Part 1", "## Section 1"),
        lambda docs: edit(docs, "dog", "says", "  says"),
    ],
    ids=["changed", "removed", "added", "renamed", "heading", "blanks"],
)
def test_chunks_are_those_of_cutting_everything_anew(diff, docs, tmp_path, change):
    """A corpus that was followed for a year must be the one that is there."""
    change(docs)
    found = diff()

    fresh = set_of(tmp_path / "fresh", docs)
    assert found.chunks_path.read_bytes() == fresh.chunks_path.read_bytes()
    assert found.chunks == fresh.manifest.files["chunks.jsonl"]


def test_added_and_removed_chunks_are_the_difference(diff, docs, parent):
    """What is judged and what is dropped follows from them."""
    before = {chunk.chunk_id for chunk in parent.chunks()}
    edit(docs, "bee", "It says bee1", "It now says bee1")
    (docs / "cow.md").unlink()
    write_pages(docs, ["emu"])
    found = diff()

    now = {chunk.chunk_id for chunk in read_records(found.chunks_path, Chunk)}
    assert [chunk.chunk_id for chunk in found.added()] == sorted(now - before)
    assert [chunk.chunk_id for chunk in found.removed()] == sorted(before - now)
    counts = found.documents
    assert (counts.chunks_kept, counts.chunks_added, counts.chunks_removed) == (8, 4, 4)


def test_each_document_is_told_by_what_happened_to_it(diff, docs):
    """Causes of what becomes of queries are taken from here."""
    edit(docs, "bee", "It says bee1", "It now says bee1")
    (docs / "cow.md").unlink()
    (docs / "dog.md").rename(docs / "wolf.md")
    write_pages(docs, ["emu"])
    found = diff().documents

    assert (found.added, found.changed, found.removed) == (("emu.md",), ("bee.md",), ("cow.md",))
    assert [(item.before, item.after) for item in found.renamed] == [("dog.md", "wolf.md")]
    assert (found.n_before, found.n_now) == (4, 4)


def test_a_move_has_the_document_before_and_now(diff, docs):
    """Whoever looks at a quote asks by the id that the quote names, or by the one it has now."""
    edit(docs, "bee", "It says bee1", "It now says bee1")
    (docs / "cow.md").unlink()
    (docs / "dog.md").rename(docs / "wolf.md")
    write_pages(docs, ["emu"])
    moves = diff().moves

    assert list(moves) == ["bee.md", "cow.md", "dog.md", "emu.md", "wolf.md"]
    assert len(moves) == 5
    assert moves["cow.md"].now is None
    assert moves["emu.md"].before is None
    assert moves["dog.md"] == moves["wolf.md"]
    assert moves["bee.md"].before.sha256 != moves["bee.md"].now.sha256
    assert moves.get("ant.md") is None


def test_rows_keep_the_past_of_a_document(diff, docs):
    """The version in which a document came, and its former names, cannot be found out again."""
    edit(docs, "bee", "It says bee1", "It now says bee1")
    (docs / "dog.md").rename(docs / "wolf.md")
    write_pages(docs, ["emu"])
    found = diff()

    rows = {row.doc_id: row for row in read_records(found.documents_path, SourceDocument)}
    past = {name: (row.first_version, row.last_version) for name, row in rows.items()}
    assert past == {
        "ant.md": (1, 1),
        "bee.md": (1, 2),
        "cow.md": (1, 1),
        "emu.md": (2, 2),
        "wolf.md": (1, 2),
    }
    assert rows["wolf.md"].aliases == ("dog.md",)
    assert list(rows) == sorted(rows)
    assert found.documents_entry.records == 5


def test_half_of_the_documents_renamed_is_no_removal(diff, docs):
    """A new folder structure is the commonest night of all, and loses nothing."""
    (docs / "guide").mkdir()
    for name in ("ant", "bee"):
        (docs / f"{name}.md").rename(docs / "guide" / f"{name}.md")
    found = diff()

    assert [item.after for item in found.documents.renamed] == ["guide/ant.md", "guide/bee.md"]
    assert (found.documents.removed, found.documents.added) == ((), ())
    texts = [sorted(chunk.text for chunk in chunks) for chunks in (found.added(), found.removed())]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 6


def test_equal_documents_are_renamed_in_the_order_of_their_ids(tmp_path):
    """Which of two copies is which cannot be known, but must not depend on chance."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.md").write_text(page("same"))
    parent = set_of(tmp_path / "set", docs)
    (docs / "a.md").rename(docs / "z.md")
    (docs / "b.md").rename(docs / "y.md")
    found = diff_corpus(parent, [docs], SETTINGS, tmp_path / "place", silent, 2).documents

    assert [(item.before, item.after) for item in found.renamed] == [
        ("a.md", "y.md"),
        ("b.md", "z.md"),
    ]


@pytest.mark.parametrize("raw", [b"caf\xe9, and more of it", "é and more".encode("utf-16")])
def test_a_document_in_another_encoding_stays_as_it_was(diff, docs, parent, raw):
    """An editor that saves otherwise must not cost the queries of a page."""
    (docs / "bee.md").write_bytes(raw)
    found = diff()

    assert found.documents.unreadable == ("bee.md",)
    assert found.is_empty
    assert (found.documents.removed, found.documents.n_now) == ((), 4)


def test_an_unreadable_document_is_kept_beside_what_changed(diff, docs, parent):
    """Its chunks and its row are copied as they are."""
    rows = {row.doc_id: row for row in parent.documents()}
    (docs / "bee.md").write_bytes(b"caf\xe9")
    edit(docs, "cow", "It says cow1", "It now says cow1")
    found = diff()

    now = {row.doc_id: row for row in read_records(found.documents_path, SourceDocument)}
    assert now["bee.md"] == rows["bee.md"]
    kept = [c for c in read_records(found.chunks_path, Chunk) if c.doc_id == "bee.md"]
    assert kept == [c for c in parent.chunks() if c.doc_id == "bee.md"]
    assert "bee.md" not in found.moves


def test_unreadable_documents_are_told(diff, docs):
    """Somebody has to repair them."""
    (docs / "bee.md").write_bytes(b"caf\xe9")
    told = []
    diff(observer=lambda event: told.append(event.message))

    assert "1 known documents cannot be read now and stay as they were: bee.md" in told


def test_the_rows_of_a_broken_table_stay(tmp_path):
    """A table that is cut off half-way has not lost its rows."""
    docs = write_pages(tmp_path / "docs", ["ant"])
    table = docs / "faq.csv"
    table.write_text("id,title,text\n1,one,first answer\n2,two,second answer\n")
    parent = set_of(tmp_path / "set", docs)
    table.write_text("id,title,text\n1,one,first answer\n2,two\n")
    found = diff_corpus(parent, [docs], SETTINGS, tmp_path / "place", silent, 2)

    assert found.documents.unreadable == ("faq.csv#1", "faq.csv#2")
    assert found.is_empty


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
    ],
    ids=["byte order mark", "CRLF"],
)
def test_marks_and_line_ends_change_nothing(diff, docs, encoded):
    """A checkout on another system has other bytes and the same documents."""
    for path in docs.iterdir():
        path.write_bytes(encoded(path.read_text()))

    assert diff().is_empty


def test_blanks_alone_change_lines_and_no_ids(diff, docs):
    """Offsets move with them, so that the file is another; no grade and no quote is lost."""
    edit(docs, "bee", "It says bee1", "It   says bee1")
    found = diff()

    counts = found.documents
    assert (counts.changed, counts.chunks_added, counts.chunks_removed) == (("bee.md",), 0, 0)
    assert found.chunks_rewritten == 2
    assert not found.is_empty


def test_what_touches_no_chunk_is_no_change(diff, docs):
    """A newline at the end of a file must not make a version."""
    path = docs / "bee.md"
    path.write_text(f"{path.read_text()}\n\n")
    found = diff()

    assert found.documents.changed == ("bee.md",)
    assert found.is_empty


def test_a_document_split_in_two_is_told_as_such(diff, docs):
    """A chunk that moved reads the same in both."""
    (docs / "bee.md").write_text(f"# The bee page\n\n{section('bee', 0)}")
    (docs / "bee2.md").write_text(f"# The bee page\n\n{section('bee', 1)}\n{section('bee', 2)}")
    found = diff()

    assert (found.documents.changed, found.documents.added) == (("bee.md",), ("bee2.md",))
    both = {chunk.text for chunk in found.added()} & {chunk.text for chunk in found.removed()}
    assert both == {section("bee", 2).strip()}


def test_two_documents_merged_into_one_are_told_as_such(diff, docs):
    """Deletions are seen, and so is where the text went."""
    (docs / "ant.md").write_text(f"{page('ant')}\n{page('bee')}")
    (docs / "bee.md").unlink()
    found = diff()

    assert (found.documents.changed, found.documents.removed) == (("ant.md",), ("bee.md",))
    added = "".join(chunk.text for chunk in found.added())
    assert section("bee", 1).strip() in added


def test_a_renamed_heading_gives_other_chunks(diff, docs):
    """Titles are part of what a retriever sees of a chunk."""
    edit(docs, "bee", "# The bee page", "# All about bees")
    found = diff()

    assert (found.documents.chunks_added, found.documents.chunks_removed) == (3, 3)


def test_other_settings_cut_all_documents_anew(diff, docs):
    """Documents that say what they said did not change, though every chunk did."""
    edit(docs, "bee", "It says bee1", "It now says bee1")
    found = diff(ChunkSettings(max_chars=150))

    assert found.documents.is_cut_anew
    assert found.documents.changed == ("bee.md",)
    assert list(found.moves) == [f"{name}.md" for name in NAMES]
    assert len(found.moves) == 4
    same = found.moves["ant.md"]
    assert same.before.sha256 == same.now.sha256
    assert same.before.n_chunks < same.now.n_chunks
    assert (same.now.first_version, same.now.last_version) == (1, 1)


def test_a_document_that_could_not_be_cut_anew_is_cut_when_it_can_be_read(diff, docs, parent):
    """Else it would keep its old chunks until somebody edits it."""
    smaller = ChunkSettings(max_chars=150)
    text = (docs / "bee.md").read_text()
    (docs / "bee.md").write_bytes(b"caf\xe9")
    first = diff(smaller)
    parent.take_chunks(first.chunks_path, first.chunks)
    parent.take_documents(first.documents_path, first.documents_entry)
    parent.write_manifest(parent.manifest.model_copy(update={"cutting": first.chunking}))
    (docs / "bee.md").write_text(text)
    found = diff(smaller)

    assert found.documents.changed == ("bee.md",)
    assert {chunk.doc_id for chunk in found.added()} == {"bee.md"}


def test_patterns_do_not_cut_anew(diff):
    """Which documents are read says nothing about how they are cut."""
    found = diff(SETTINGS.model_copy(update={"include": ("*.md",)}))

    assert found.is_empty


def test_settings_that_change_no_chunk_change_nothing(diff):
    """A version without a difference helps nobody."""
    found = diff(SETTINGS.model_copy(update={"max_chars": 401}))

    assert (found.documents.is_cut_anew, found.is_empty) == (True, True)


def test_a_set_that_records_no_documents_is_compared_by_its_chunks(diff, parent):
    """Sets that were made before have to be followed as well."""
    parent.drop_documents()
    found = diff()

    assert found.is_empty
    assert found.documents.changed == ()
    assert found.documents_entry.records == 4


def test_changes_of_a_set_without_documents_are_seen(diff, docs, parent):
    """By the chunks that each has."""
    parent.drop_documents()
    edit(docs, "bee", "It says bee1", "It now says bee1")
    (docs / "cow.md").unlink()
    (docs / "dog.md").rename(docs / "wolf.md")
    write_pages(docs, ["emu"])
    found = diff().documents

    assert (found.added, found.changed, found.removed) == (("emu.md",), ("bee.md",), ("cow.md",))
    assert [(item.before, item.after) for item in found.renamed] == [("dog.md", "wolf.md")]
    assert not found.is_cut_anew


def test_chunks_changed_by_hand_are_not_taken_for_those_of_the_documents(diff, parent):
    """What is recorded of documents says nothing about other chunks."""
    lines = parent.chunks_path.read_bytes().splitlines(keepends=True)
    parent.chunks_path.write_bytes(b"".join(lines[1:]))
    found = diff()

    assert (found.documents.chunks_added, found.documents.chunks_removed) == (1, 0)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_missing_or_empty_folder_is_refused(parent, tmp_path, make):
    """A mount that is not there must not retire every query."""
    make(tmp_path / "mount")
    with pytest.raises(DataError, match=r"mount: (does not exist|expected documents)"):
        diff_corpus(parent, [tmp_path / "mount"], SETTINGS, tmp_path / "place", silent, 2)

    assert list((tmp_path / "place").iterdir()) == []


def test_documents_without_any_text_are_refused(diff, docs, tmp_path):
    """Files that were emptied are no corpus."""
    for path in docs.iterdir():
        path.write_text("\n")
    with pytest.raises(DataError, match="no text to cut into chunks"):
        diff()

    assert list((tmp_path / "place").iterdir()) == []


@pytest.mark.parametrize("names", [("faq.csv", "faq.csv#1.md"), ("new.csv", "new.csv#1.md")])
def test_an_id_that_comes_twice_is_refused(tmp_path, names):
    """Two documents under one id would be one."""
    docs = write_pages(tmp_path / "docs", ["ant"])
    (docs / "faq.csv").write_text("id,title,text\n1.md,one,first answer\n")
    parent = set_of(tmp_path / "set", docs)
    (docs / names[0]).write_text("id,title,text\n1.md,one,first answer\n")
    (docs / names[1]).write_text("Another text.\n")

    with pytest.raises(DataError, match=r"document \w+\.csv#1\.md comes twice"):
        diff_corpus(parent, [docs], SETTINGS, tmp_path / "place", silent, 2)


def test_the_same_documents_give_the_same_bytes(diff, docs, tmp_path):
    """A run that was killed is repeated, and comes to the same."""
    edit(docs, "bee", "It says", "It now says")
    write_pages(docs, ["emu"])
    diff(place="one")
    diff(place="two")

    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two
    assert sorted(one) == ["added.jsonl", "chunks.jsonl", "documents.jsonl", "removed.jsonl"]


def test_the_order_of_the_documents_does_not_matter(parent, docs, tmp_path):
    """File systems list as they like."""
    edit(docs, "bee", "It says", "It now says")
    (docs / "dog.md").rename(docs / "wolf.md")
    files = sorted(docs.iterdir())
    for number in (1, 2):
        random.Random(number).shuffle(files)
        diff_corpus(parent, files, SETTINGS, tmp_path / f"place{number}", silent, 2)

    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("place1", "place2")
    )
    assert one == two


def test_what_is_interrupted_leaves_nothing(diff, docs, tmp_path, monkeypatch):
    """Half of a corpus must not be taken for one."""
    edit(docs, "bee", "It says", "It now says")

    def interrupted(*_):
        raise KeyboardInterrupt("half-way")

    monkeypatch.setattr("ragforge.refresh.corpus.diff.renames", interrupted)
    with pytest.raises(KeyboardInterrupt, match="half-way"):
        diff()

    assert list((tmp_path / "place").iterdir()) == []


def test_the_set_is_not_touched(diff, docs, parent):
    """It is published while the next version is made."""
    before = {path.name: path.read_bytes() for path in parent.path.glob("*.json*")}
    edit(docs, "bee", "It says", "It now says")
    diff()

    assert {path.name: path.read_bytes() for path in parent.path.glob("*.json*")} == before


def test_a_chunker_that_gives_nothing_any_more_is_refused(diff, monkeypatch):
    """A broken chunker must not empty a set."""
    monkeypatch.setitem(sys.modules, "users_module", SimpleNamespace(cut=lambda text: []))
    settings = SETTINGS.model_copy(update={"chunker": "users_module:cut"})

    with pytest.raises(UsageError, match="gave no chunk for any of 4 documents"):
        diff(settings)


def write_chunks(path, rows):
    lines = (json.dumps({"id": i, "document": d, "text": t}) + "\n" for i, d, t in rows)
    path.write_text("".join(lines))
    return path


@pytest.fixture
def ready_made(tmp_path):
    """A set of ready-made chunks, and what compares others with them."""
    rows = [("1", "a", "one"), ("2", "a", "two"), ("3", "b", "three"), ("4", "c", "four")]
    parent = set_of(
        tmp_path / "set", None, chunk_file=write_chunks(tmp_path / "chunks.jsonl", rows)
    )

    def run(rows, dataset=parent, place="place", version=2):
        file = write_chunks(tmp_path / "now.jsonl", rows)
        return diff_chunks(dataset, file, tmp_path / place, silent, version)

    return SimpleNamespace(rows=rows, parent=parent, diff=run)


def test_unchanged_ready_made_chunks_change_nothing(ready_made):
    """In any order."""
    assert ready_made.diff(ready_made.rows[::-1]).is_empty


def test_documents_of_ready_made_chunks_are_told_by_their_chunks(ready_made):
    """A document that moved has the same texts under another name."""
    rows = [("1", "a", "one"), ("2", "a", "deux"), ("3", "z", "three"), ("5", "d", "five")]
    found = ready_made.diff(rows)

    told = found.documents
    assert (told.added, told.changed, told.removed) == (("d",), ("a",), ("c",))
    assert [(item.before, item.after) for item in told.renamed] == [("b", "z")]


def test_a_ready_made_chunk_with_other_words_is_another_chunk(ready_made):
    """Its grades were given to a text that is gone."""
    found = ready_made.diff([("1", "a", "un"), *ready_made.rows[1:]])

    assert [chunk.text for chunk in found.added()] == ["un"]
    assert [chunk.text for chunk in found.removed()] == ["one"]


def test_ready_made_chunks_are_followed_from_version_to_version(ready_made, tmp_path):
    """What the first refresh recorded of documents serves the next one."""
    first = ready_made.diff([*ready_made.rows[:3], ("4", "moved", "four")])
    parent = ready_made.parent
    shutil.copy(first.chunks_path, tmp_path / "c")
    shutil.copy(first.documents_path, tmp_path / "d")
    parent.take_chunks(tmp_path / "c", first.chunks)
    parent.take_documents(tmp_path / "d", first.documents_entry)
    parent.write_manifest(parent.manifest.model_copy(update={"cutting": first.chunking}))
    found = ready_made.diff([*ready_made.rows[:3], ("4", "again", "four")], version=3, place="two")

    rows = {row.doc_id: row for row in read_records(found.documents_path, SourceDocument)}
    assert rows["again"].aliases == ("c", "moved")
    assert (rows["again"].first_version, rows["again"].last_version) == (1, 3)
    assert not found.documents.is_cut_anew


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
