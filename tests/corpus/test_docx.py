import zipfile

import docx as python_docx
import pytest

from ragforge.corpus import docx
from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.docx import read_docx
from ragforge.corpus.formats import ExtractedText, UnreadableError


@pytest.fixture
def file(tmp_path):
    """A document with a title, two levels of headings, a list and a table."""
    made = python_docx.Document()
    made.add_heading("Handbook", 0)
    made.add_paragraph("How to send things back.")
    made.add_heading("Returns", 1)
    made.add_paragraph("Unopened goods", style="List Bullet")
    made.add_paragraph("Opened goods", style="List Bullet")
    made.add_heading("Fees", 2)
    table = made.add_table(2, 2)
    for cell, text in zip(table._cells, ["kind", "fee", "opened", "10 %"], strict=True):
        cell.text = text
    made.save(tmp_path / "a.docx")
    return tmp_path / "a.docx"


def test_headings_lists_and_tables_are_kept(file):
    """Structure is what chunks are cut by."""
    assert read_docx(file) == ExtractedText(
        "Handbook",
        "# Handbook\n\nHow to send things back.\n\n## Returns\n\n- Unopened goods\n- Opened goods"
        "\n\n### Fees\n\nkind | fee\nopened | 10 %",
    )


def test_bar_in_a_cell_is_no_end_of_it(tmp_path):
    """`a | b` in one cell would read as two."""
    made = python_docx.Document()
    made.add_paragraph("plain a|b")
    table = made.add_table(1, 2)
    for cell, text in zip(table._cells, ["a|b", "c <d>"], strict=True):
        cell.text = text
    made.save(tmp_path / "a.docx")

    assert read_docx(tmp_path / "a.docx").text == "plain a|b\n\na\\|b | c <d>"


def test_headings_become_heading_paths(file):
    """A chunk is told apart by the titles around it."""
    [document] = read_documents([file])

    assert [chunk.heading_path for chunk in chunk_document(document, min_chars=0)] == [
        ("Handbook",), ("Handbook", "Returns"), ("Handbook", "Returns", "Fees"),
    ]  # fmt: skip


def test_without_a_title_the_first_heading_is_it(tmp_path):
    """Most documents of Word have headings only."""
    made = python_docx.Document()
    made.add_heading("Returns", 1)
    made.add_paragraph("Goods may go back.")
    made.save(tmp_path / "a.docx")

    assert read_docx(tmp_path / "a.docx").title == "Returns"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"plain text", b"\x00" * 200])
def test_broken_file_is_unreadable(tmp_path, content):
    """Whatever the library raises must not end the run."""
    (tmp_path / "a.docx").write_bytes(content)

    with pytest.raises(UnreadableError, match="is no whole Word document: "):
        read_docx(tmp_path / "a.docx")


def test_encrypted_file_is_told_from_a_broken_one(tmp_path):
    """Word wraps what it encrypts into the container of the old format."""
    (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600)

    with pytest.raises(UnreadableError, match=r"is encrypted or of the old \.doc format"):
        read_docx(tmp_path / "a.docx")


def test_bomb_is_not_unpacked(file, monkeypatch):
    """A file of a megabyte can unpack into more than the memory holds."""
    monkeypatch.setattr(docx, "_MAX_UNPACKED_BYTES", 1000)

    with pytest.raises(UnreadableError, match="bytes unpacked; expected at most 1,000"):
        read_docx(file)


def test_entities_do_not_multiply(file, tmp_path):
    """Nested XML entities are the other way to make much of little."""
    entities = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 20}">' for level in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e0 "lol">{entities}]><d>&e9;</d>'
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(tmp_path / "b.docx", "w") as out:
        for name in whole.namelist():
            out.writestr(name, bomb if name == "word/document.xml" else whole.read(name))

    with pytest.raises(UnreadableError, match="is no whole Word document"):
        read_docx(tmp_path / "b.docx")


def repacked(file, changes):
    """Return a document with the contents of some parts replaced, and others added."""
    with zipfile.ZipFile(file) as old:
        parts = {name: old.read(name) for name in old.namelist()} | changes
    bomb = file.with_name("bomb.docx")
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            new.writestr(name, content)
    return bomb


def test_countless_elements_are_not_parsed(file):
    """100 kB of them unpack to what takes twenty minutes."""
    bomb = repacked(file, {"word/document.xml": b"<w:body>" + b"<w:p/>" * 500_000})

    with pytest.raises(UnreadableError, match=r"holds 5\d\d,\d{3} elements; expected"):
        read_docx(bomb)


@pytest.mark.parametrize("start", [b"<x/>", b"\xff\xfe<", b" \n<x/>", b" " * 100])
def test_text_among_the_pictures_counts_too(file, monkeypatch, start):
    """A document says itself which part is its text."""
    bomb = repacked(file, {"word/media/image1.png": start + b" " * 2_000_000})
    monkeypatch.setattr(docx, "_MAX_UNPACKED_BYTES", 2_000_000)

    with pytest.raises(UnreadableError, match="bytes unpacked"):
        read_docx(bomb)


def test_pictures_do_not_count(file, monkeypatch):
    """They are not read."""
    whole = repacked(file, {"word/media/image1.png": b"\x89PNG" + b" " * 2_000_000})
    monkeypatch.setattr(docx, "_MAX_UNPACKED_BYTES", 2_000_000)

    assert read_docx(whole).title == "Handbook"
