"""Files put together from chunks, and texts of any splitter in them."""

import pickle

import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import chunk_places, file_texts, laid_out_text, rebuilt_documents
from ragforge.corpus.laid_out import BLANK, LaidOut, beyond, joined
from ragforge.records import Chunk

FEES = "## Fees { #fees }\n\nSee the [price list](https://x.org/a_b): the fee is **ten** percent."
DUES = "## Dues { #dues }\n\nPay [here](https://x.org/pay) in March, or `later`, by any card."
TEXT = f"---\ntitle: Money\n---\n\n{FEES}\n\n{DUES}\n"


@pytest.fixture
def chunks(tmp_path):
    (tmp_path / "a.md").write_text(TEXT)
    [document] = read_documents([tmp_path])
    return chunk_document(document, min_chars=0)


def test_each_character_stands_at_its_place_in_the_file(chunks):
    """Offsets of evidence and of retrieved texts lead into one text."""
    text = file_texts(chunks)["a.md"]

    assert all(char in (TEXT[at], BLANK, "\n") for at, char in enumerate(text))
    assert "".join(text.split()) == "".join("".join(chunk.text for chunk in chunks).split())


def test_document_is_what_a_reader_sees(chunks):
    """A sweep cuts it anew, and its chunks lead into the same file."""
    [document] = rebuilt_documents(chunks)

    again = chunk_document(document, min_chars=0)

    assert [chunk.text for chunk in again] == [chunk.text for chunk in chunks]
    assert [chunk.start for chunk in again] == [chunk.start for chunk in chunks]


@pytest.mark.parametrize("text", [FEES, DUES, f"{FEES}\n\n{DUES}", "the fee is ten percent."])
def test_text_is_placed_with_its_markup_and_without(chunks, text):
    """An index of the user's often holds files as they are; else most texts were only alike."""
    found = FileTextLocator(file_texts(chunks)).locate(text, doc_ids=["a.md"])

    assert found is not None
    assert found.likeness == 1
    [span] = found.spans
    said = "".join(filter(str.isalpha, TEXT[span.start : span.end]))
    assert said.endswith("".join(filter(str.isalpha, text))[-8:])


NAMED = {
    "n.adoc": "= Manual\n:prod: Delta Hub Nine\n\n== Lids\n\nThe {prod} has two lids.\n\n"
    "== Logs\n\nWrite 11 lines into the log of {prod}, then close {prod}.\n",
    "n.rst": "Manual\n======\n\n.. |p| replace:: Delta Hub Nine\n\nLids\n----\n\n"
    "The |p| has two lids.\n\nLogs\n----\n\n"
    "Write 11 lines into the log of |p|, then close |p|.\n",
}


@pytest.fixture(params=NAMED)
def named(request, tmp_path):
    """Return the chunks of a file with names for longer texts, its id and its text."""
    (tmp_path / request.param).write_text(NAMED[request.param])
    [document] = read_documents([tmp_path])
    return chunk_document(document, min_chars=0), request.param, NAMED[request.param]


@pytest.mark.parametrize(
    "text", ["The Delta Hub Nine has two lids.", "into the log of Delta Hub Nine, then close"]
)
def test_text_is_placed_where_a_name_stands_for_a_longer_text(named, text):
    """A reader, and an index, have what the name stands for; the file is shorter there."""
    chunks, doc_id, file = named
    found = FileTextLocator(file_texts(chunks)).locate(text, doc_ids=[doc_id])

    assert found is not None
    assert found.likeness == 1
    [span] = found.spans
    first, last = text.split()[0], text.split()[-1]
    assert file[span.start :].startswith(first)
    assert file[: span.end].endswith(last)


def test_names_for_longer_texts_are_read_again_as_they_were(named):
    """A sweep would cut documents in which letters lack, and no quote would stand there."""
    chunks, doc_id, _ = named
    [document] = rebuilt_documents(chunks)

    again = chunk_document(document, min_chars=0)

    assert [chunk.text for chunk in again] == [chunk.text for chunk in chunks]
    assert [chunk.start for chunk in again] == [chunk.start for chunk in chunks]
    assert laid_out_text(document) == file_texts(chunks)[doc_id]
    assert [*beyond(laid_out_text(document))] == [*beyond(file_texts(chunks)[doc_id])]


def test_what_is_beyond_a_text_goes_with_its_slices_and_to_other_processes():
    """Places are told apart by stretches, and sweeps rank in processes."""
    text = joined(["abc", LaidOut("defg", ((2, "xy"), (4, "z")))])

    assert [*beyond(text)] == [(5, "xy"), (7, "z")]
    assert [*beyond(text[4:6])] == [(1, "xy")]
    assert [*beyond(text[5:])] == [(2, "z")]
    assert [*beyond(pickle.loads(pickle.dumps(text)))] == [*beyond(text)]
    assert (text[::-1], text[0], type(text[:4])) == ("gfedcba", "a", str)


RAW = {
    "g.adoc": "The `Client` keeps *9* lines, see xref:pool[the pool guide] for "
    "https://x/1[details] on it.",
    "g.rst": "The :class:`~pkg.mod.Client` keeps 9 lines, see :ref:`the pool guide <pool>` for "
    "`details <http://x/1>`_ on it.",
    "tool.1": ".TP\n.B \\-\\-opt\nSets the \\fIvalue\\fR of slot 1 to 7 units and reads it from\n"
    ".BR file (5)\nbefore the next start.",
    "r.md": "The client keeps 9 lines, see [the pool guide][pool] for [details][] on it.",
}
HEADS = {
    "g.adoc": "= Guide\n\n== Lines\n\n",
    "g.rst": "Guide\n=====\n\nLines\n-----\n\n",
    "tool.1": ".TH TOOL 1\n.SH NAME\ntool \\- do things\n.SH OPTIONS\n",
    "r.md": "# Guide\n\n",
}


@pytest.mark.parametrize("name", RAW)
def test_a_piece_of_the_file_as_it_is_finds_its_place(tmp_path, name):
    """An index may hold files of any format unread, cut away from what their links refer to."""
    end = "\n\n[pool]: https://x.org/pool_guide\n[details]: https://x.org/more\n" * (name == "r.md")
    (tmp_path / name).write_text(f"{HEADS[name]}{RAW[name]}\n{end}")
    [document] = read_documents([tmp_path])

    found = FileTextLocator(file_texts(chunk_document(document, min_chars=0))).locate(RAW[name])

    assert found is not None
    assert found.likeness == 1


@pytest.mark.parametrize("offsets", [[(0, 0), (0, 0)], [(0, 3), (7, 12)], [(0, 3), (0, 0)]])
def test_chunks_stand_where_their_text_is(offsets):
    """With offsets and without: retrieved texts are looked for in the same documents."""
    chunks = [
        Chunk(chunk_id=text, doc_id="d", text=text, start=start, end=end)
        for text, (start, end) in zip(("one", "three"), offsets, strict=True)
    ]
    found = file_texts(chunks)

    assert {
        each.chunk_id: found[each.doc_id][each.start : each.end] for each in chunk_places(chunks)
    } == {"one": "one", "three": "three"}


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("store it at \u2212**20** degrees or below", "store it at \u221220 degrees or below"),
        ("store it if x &gt;= 12 holds for all", "store it if x >= 12 holds for all"),
        ("store it in 1\\.10 GB of space or more", "store it in 1.10 GB of space or more"),
    ],
)
def test_a_sign_before_markup_is_that_of_its_number(tmp_path, raw, seen):
    """Else each text with it was only like its place."""
    (tmp_path / "a.md").write_text(f"A page.\n\nPlease {raw}. There is more.\n")
    [document] = read_documents([tmp_path])
    locator = FileTextLocator(file_texts(chunk_document(document, min_chars=0)))

    for text in (seen, raw):
        found = locator.locate(text, doc_ids=["a.md"])
        assert found is not None
        assert found.likeness == 1
