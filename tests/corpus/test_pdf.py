import pytest
from pdf_pages import write_pdf

from ragforge.corpus import pdf
from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.formats import ExtractedText, UnreadableError
from ragforge.corpus.pdf import read_pdf, whole_words


def test_page_break_is_no_paragraph_break(tmp_path):
    """A sentence that runs over two pages is one sentence."""
    file = write_pdf(tmp_path / "a.pdf", [["The fee is ten"], ["percent of the price."]])

    assert read_pdf(file) == ExtractedText("", "The fee is ten\npercent of the price.")


def test_words_at_line_ends_become_whole():
    """A retriever does not find `restock` and `ing`."""
    assert whole_words("a re-\nstocking fee") == "a restocking fee"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a well-\nknown and well-known fee", "a well-known and well-known fee"),
        ("the Franco-\nPrussian war", "the Franco-Prussian war"),
        ("pages 3-\n4 are", "pages 3-\n4 are"),
        ("a dash -\nhere", "a dash -\nhere"),
    ],
)
def test_hyphens_that_belong_stay(text, expected):
    """Compounds and ranges are spelt with theirs."""
    assert whole_words(text) == expected


def test_headers_and_page_numbers_are_left_out(tmp_path):
    """They stand in every chunk and match every query."""
    pages = [
        ["Handbook of Returns", *(f"{word} words {word}" for word in body), f"Page {number} of 4"]
        for number, body in enumerate(["abcdefg", "hijklmn", "opqrstu", "vwxyzab"], start=1)
    ]

    text = read_pdf(write_pdf(tmp_path / "a.pdf", pages)).text

    assert "Handbook" not in text
    assert "ExtractedText" not in text
    assert len(text.split("\n")) == 28


def test_outline_gives_headings(tmp_path):
    """Chunks without titles around them are hard to tell apart."""
    file = write_pdf(
        tmp_path / "a.pdf",
        [["Returns", "Goods may go back.", "Deadlines"], ["Thirty days.", "Shipping", "Free."]],
        outline=[("Returns", 0, False), ("Deadlines", 0, True), ("Shipping", 1, False)],
    )

    [document] = read_documents([file])
    chunks = chunk_document(document, min_chars=0)

    assert [(chunk.heading_path, chunk.text.split("\n")[-1]) for chunk in chunks] == [
        (("Returns",), "Goods may go back."),
        (("Returns", "Deadlines"), "Thirty days."),
        (("Shipping",), "Free."),
    ]


def test_outline_may_leave_out_the_numbers_of_sections(tmp_path):
    """TeX writes them so."""
    file = write_pdf(
        tmp_path / "a.pdf", [["2.1 Deadlines", "Thirty days."]], outline=[("Deadlines", 0, False)]
    )

    assert read_pdf(file).text == "\n# 2.1 Deadlines\n\nThirty days."


def test_lines_that_look_like_headings_are_text(tmp_path):
    """A comment in a listing must not open a section."""
    file = write_pdf(tmp_path / "a.pdf", [["Run this:", "# as root"]])

    [document] = read_documents([file])

    assert [chunk.heading_path for chunk in chunk_document(document)] == [()]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("Returns in short", "Returns in short"), ("Microsoft Word - x.doc", ""), ("draft.docx", "")],
)
def test_title_of_the_file_counts_unless_a_program_left_it(tmp_path, stated, expected):
    """It heads the path of every chunk."""
    assert read_pdf(write_pdf(tmp_path / "a.pdf", [["Text."]], title=stated)).title == expected


def test_file_that_needs_no_password_is_read(tmp_path):
    """Many files are locked only against printing."""
    file = write_pdf(tmp_path / "a.pdf", [["Free to read."]], password="")

    assert read_pdf(file).text == "Free to read."


def test_encrypted_file_is_unreadable(tmp_path):
    """It must be told from an empty one."""
    with pytest.raises(UnreadableError, match="is encrypted; save it without a password"):
        read_pdf(write_pdf(tmp_path / "a.pdf", [["Secret."]], password="x"))


def test_pages_without_text_are_called_pictures(tmp_path):
    """A scan needs another tool, and the user must learn which."""
    with pytest.raises(UnreadableError, match="pictures of pages and no text; run it through OCR"):
        read_pdf(write_pdf(tmp_path / "a.pdf", [[], []]))


def test_scanned_pages_among_others_are_told(tmp_path):
    """Nothing else tells that a part of the document is in no chunk."""
    file = write_pdf(tmp_path / "a.pdf", [["Text."], [], [], ["More."], []], pictures={1, 4})
    told = []

    [document] = read_documents([tmp_path], skipped=lambda *what: told.append(what))

    assert document.text.split() == ["Text.", "More."]
    reason = "pages 2, 5 of 5, without text but with a picture; OCR reads it"
    assert told == [(str(file), reason)]


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4\n", b"\x00" * 100, b"%PDF-1.7\ntrailer<<>>"])
def test_broken_file_is_unreadable(tmp_path, content):
    """Whatever the library raises must not end the run."""
    (tmp_path / "a.pdf").write_bytes(content)

    with pytest.raises(UnreadableError, match="is no whole PDF: "):
        read_pdf(tmp_path / "a.pdf")


def test_file_cut_off_anywhere_is_read_or_unreadable(tmp_path):
    """An upload that broke off is the usual broken file."""
    whole = write_pdf(tmp_path / "a.pdf", [["One."], ["Two."]]).read_bytes()
    outcomes = set()
    for length in range(0, len(whole), 97):
        (tmp_path / "b.pdf").write_bytes(whole[:length])
        try:
            outcomes.add(type(read_pdf(tmp_path / "b.pdf")))
        except UnreadableError as error:
            outcomes.add(type(error))

    assert outcomes <= {ExtractedText, UnreadableError}


def test_text_beyond_the_limit_is_unreadable(tmp_path, monkeypatch):
    """A small file can unpack into more than the memory holds."""
    monkeypatch.setattr(pdf, "_MAX_CHARS", 10)

    with pytest.raises(UnreadableError, match="holds more than 10 characters"):
        read_pdf(write_pdf(tmp_path / "a.pdf", [["More than ten characters."]]))


def test_leaders_of_a_table_of_contents_are_cut_short(tmp_path):
    """Lines of dots fill chunks and say nothing."""
    file = write_pdf(
        tmp_path / "a.pdf", [["Returns . . . . . . . . . . 12", "Fees ........... 14"]]
    )

    assert read_pdf(file).text == "Returns … 12\nFees … 14"
