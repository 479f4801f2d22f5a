import sys
from types import SimpleNamespace

import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import Document
from ragforge.corpus.user_chunkers import chunker_version, make_chunker
from ragforge.errors import UsageError

TEXT = "# Returns\n\nGoods go back. A fee is due.\n\n## Fees\n\nTen  percent of the price."
DOCUMENT = Document("a.md", "", TEXT, "markdown")


@pytest.fixture
def chunks(monkeypatch):
    """Cut the document with an object of a user's module."""

    def cut(found, document=DOCUMENT):
        monkeypatch.setitem(sys.modules, "users_module", SimpleNamespace(found=found))
        chunker = make_chunker("users_module:found", max_chars=2000, min_chars=200)
        return chunker(document)

    return cut


def sentences(text):
    return ["Goods go back.", "A fee is due.", "Ten  percent of the price."]


def test_headings_is_the_built_in_chunker():
    """The default must not change what was cut before."""
    chunker = make_chunker("headings", max_chars=300, min_chars=0)

    assert chunker(DOCUMENT) == chunk_document(DOCUMENT, max_chars=300, min_chars=0)


def test_pieces_get_offsets_titles_and_ids(chunks):
    """Evidence and qrels hang on them."""
    found = chunks(sentences)

    assert [(chunk.text, TEXT[chunk.start : chunk.end]) for chunk in found] == [
        (piece, piece) for piece in sentences(TEXT)
    ]
    assert [chunk.heading_path for chunk in found] == [
        ("Returns",), ("Returns",), ("Returns", "Fees"),
    ]  # fmt: skip
    assert len({chunk.chunk_id for chunk in found}) == 3
    assert [chunk.chunk_id for chunk in chunks(sentences)] == [chunk.chunk_id for chunk in found]


def test_piece_with_other_blanks_is_found_as_it_stands(chunks):
    """Splitters strip and fold; the chunk is still a part of the document."""
    [chunk] = chunks(lambda text: ["Ten percent\nof the price."])

    assert chunk.text == "Ten  percent of the price."


def test_pieces_may_overlap(chunks):
    """Most splitters repeat the end of the piece before."""
    found = chunks(lambda text: [text[at : at + 20] for at in range(0, 60, 10)])

    assert [(chunk.start, chunk.end) for chunk in found] == [
        (at, at + 20) for at in range(0, 60, 10)
    ]  # fmt: skip


def test_equal_pieces_are_found_one_behind_the_other(chunks):
    """A line that comes twice is two chunks in two places."""
    document = Document("a.txt", "", "yes no yes no yes", "text")

    found = chunks(str.split, document)

    assert [chunk.start for chunk in found] == [0, 4, 7, 11, 14]
    assert len({chunk.chunk_id for chunk in found}) == 5


def test_splitter_object_is_known_by_its_method(chunks):
    """Frameworks are recognised and never imported."""

    class Splitter:
        def split_text(self, text):
            return sentences(text)

    assert len(chunks(Splitter())) == len(chunks(Splitter)) == 3


@pytest.mark.parametrize(
    "piece",
    [
        {"text": "Goods go back.", "heading_path": ["Mine"]},
        {"start": 11, "end": 25, "heading_path": ("Mine",)},
        SimpleNamespace(page_content="Goods go back.", heading_path=["Mine"]),
    ],
)
def test_pieces_may_say_where_they_stand(chunks, piece):
    """A chunker that knows more than the text must not lose it."""
    [chunk] = chunks(lambda document: [piece])

    assert (chunk.text, chunk.heading_path, chunk.start) == ("Goods go back.", ("Mine",), 11)


def test_function_of_a_document_gets_the_document(chunks):
    """Ids and titles may decide how a document is cut."""
    seen = []

    def cut(document):
        seen.append(document)
        return [document.text]

    chunks(cut)

    assert seen == [DOCUMENT]


def test_blank_pieces_are_left_out(chunks):
    """There is nothing to retrieve in them."""
    assert chunks(lambda text: ["", " \n", "Goods go back."])[0].text == "Goods go back."


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda text: ["Goods go away."], "a.md: piece 1: is not in the document: 'Goods go aw"),
        (lambda text: "one text", "a.md: expected a list of pieces, got str"),
        (lambda text: None, "a.md: expected a list of pieces, got NoneType"),
        (lambda text: [7], "a.md: piece 1: expected text, or an object with text, got 7"),
        (lambda text: 1 / 0, "a.md: raised ZeroDivisionError: division by zero"),
        (lambda text: [{"text": "Goods", "heading_path": "x"}], "heading_path: expected a list of"),
    ],
)
def test_chunker_at_fault_is_named(chunks, cut, message):
    """The user has to find the piece in their own code."""
    with pytest.raises(UsageError, match=message):
        chunks(cut)


@pytest.mark.parametrize("raised", [SystemExit(0), GeneratorExit(), BaseException("x")])
def test_chunker_that_leaves_the_program_is_at_fault(chunks, raised):
    """`sys.exit(0)` in a user's module would end the run as if all were well."""

    def cut(text):
        raise raised

    with pytest.raises(UsageError, match=f"a.md: raised {type(raised).__name__}"):
        chunks(cut)


def test_constructor_that_leaves_the_program_is_at_fault(chunks):
    """Models that are missing make some packages exit at once."""

    class Splitter:
        def __init__(self):
            sys.exit(0)

    with pytest.raises(UsageError, match="the constructor raised SystemExit: 0"):
        chunks(Splitter)


def test_interrupt_in_a_chunker_is_the_users(chunks):
    """Control-C must stop the program whatever code is running."""

    def cut(text):
        raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        chunks(cut)


def test_async_chunker_is_refused_without_a_warning(chunks):
    """Python's own complaint about it would hide the error."""

    async def cut(text):
        return [text]

    with pytest.raises(UsageError, match=r"a\.md: is async; expected a plain function"):
        chunks(cut)


@pytest.mark.parametrize(
    "pieces",
    [["the", "the", "the"], [{"start": 0, "end": 3}, "the", {"start": 0, "end": 3}]],
)
def test_piece_that_comes_too_often_is_refused(chunks, pieces):
    """Two chunks of one place would both be relevant, and count twice."""
    document = Document("a.txt", "", "the cat, the dog", "text")

    with pytest.raises(UsageError, match="piece 3: is piece 1 again: 'the'; expected each part"):
        chunks(lambda text: pieces, document)


def test_equal_pieces_out_of_order_get_places_of_their_own(chunks):
    """A splitter may return its pieces in any order."""
    document = Document("a.txt", "", "the cat, the dog", "text")

    found = chunks(lambda text: ["the", "the dog", "cat", "the"], document)

    assert sorted(chunk.start for chunk in found) == [0, 4, 9, 9]


def test_unknown_chunker_is_a_usage_error():
    """A mistyped name must not fall back on another chunker."""
    with pytest.raises(UsageError, match="chunkers: no 'heading'; did you mean headings"):
        make_chunker("heading", max_chars=2000, min_chars=200)


def test_many_pieces_of_a_large_document_are_found_in_order(chunks):
    """A search from the start for each piece would take hours."""
    document = Document("a.txt", "", "the same line\n" * 20_000, "text")

    found = chunks(lambda text: text.splitlines(), document)

    assert found[-1].start == 14 * 19_999


def test_the_version_of_a_chunker_follows_its_file(tmp_path, monkeypatch):
    """A set whose chunker was edited has to be cut anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "my_versioned_chunker.py"
    file.write_text("def cut(text):\n    return [text]\n")
    before = chunker_version("my_versioned_chunker:cut")
    file.write_text("def cut(text):\n    return text.split('.')\n")

    assert chunker_version("my_versioned_chunker:cut") != before != ""


def test_a_chunker_without_a_file_has_no_version(monkeypatch):
    """It may be made while the program runs."""
    monkeypatch.setitem(sys.modules, "users_module", SimpleNamespace(cut=str.split))

    assert chunker_version("users_module:cut") == ""
