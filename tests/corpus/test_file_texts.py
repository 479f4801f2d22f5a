"""Files put together from chunks, and texts of any splitter in them."""

import pytest

from ragforge.corpus.chunking import chunk_document
from ragforge.corpus.documents import read_documents
from ragforge.corpus.file_text_locator import FileTextLocator
from ragforge.corpus.file_texts import file_texts, rebuilt_documents

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

    assert all(char in (TEXT[at], " ", "\n") for at, char in enumerate(text))
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
