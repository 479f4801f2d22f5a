"""Chunkers of a size: what they promise of length, overlap and what is left out."""

from itertools import pairwise

import pytest

from ragforge.corpus.documents import Document
from ragforge.corpus.sized_chunkers import SPLITTERS, sized_chunker, takes_size
from ragforge.errors import UsageError
from ragforge.plugins import HandedOver

TEXT = "# Harbour\n\n" + "\n\n".join(
    f"## Pier {n}\n\nPier {n} is a place where boats lie. It has {n} bollards, and no crane! "
    f"Who comes at night?\nThe warden of pier {n} does; he counts ropes, lamps and gulls."
    for n in range(12)
)
DOCUMENT = Document("harbour.md", "Harbour", TEXT, "markdown")


def chunks(splitter, size, overlap, document=DOCUMENT):
    """Cut a document."""
    return sized_chunker(splitter, size, overlap)(document)


@pytest.mark.parametrize("overlap", [0, 20, 60])
@pytest.mark.parametrize("splitter", SPLITTERS)
def test_no_chunk_is_longer_than_its_size(splitter, overlap):
    """A size that does not hold makes the axis of the picture a lie."""
    assert max(len(chunk.text) for chunk in chunks(splitter, 150, overlap)) <= 150


@pytest.mark.parametrize("overlap", [0, 30])
@pytest.mark.parametrize("splitter", SPLITTERS)
def test_nothing_but_blanks_is_left_out(splitter, overlap):
    """Evidence that no chunk holds cannot be found by any retriever."""
    covered = set()
    for chunk in chunks(splitter, 150, overlap):
        assert chunk.text == TEXT[chunk.start : chunk.end]
        covered |= set(range(chunk.start, chunk.end))

    assert "".join(char for at, char in enumerate(TEXT) if at not in covered).strip() == ""


def test_neighbours_share_no_more_than_the_overlap():
    """An overlap is paid for in every prompt."""
    cut = chunks("recursive", 150, 40)

    shared = [one.end - other.start for one, other in pairwise(cut)]
    assert max(shared) <= 40
    assert sum(n > 0 for n in shared) > len(shared) / 2


def test_an_overlap_begins_with_a_word():
    """Half a word is found by nothing."""
    starts = [chunk.start for chunk in chunks("recursive", 150, 40)[1:]]

    assert all(TEXT[start - 1].isspace() for start in starts)


@pytest.mark.parametrize("overlap", [0, 40])
@pytest.mark.parametrize("splitter", ["recursive", "sentences"])
def test_pieces_are_under_the_titles_that_the_same_pieces_of_a_user_are_under(splitter, overlap):
    """Else a sweep names a winner between texts that are the same, as titles are searched."""
    own = chunks(splitter, 150, overlap)
    given = chunks(HandedOver("mine", lambda text, size: [chunk.text for chunk in own]), 150, 0)

    assert [chunk.heading_path for chunk in own] == [chunk.heading_path for chunk in given]
    assert own[-1].heading_path == ("Harbour", "Pier 11")


def test_sentences_are_kept_whole():
    """That is what this splitter is for."""
    text = "One boat came. Two boats went! Did three stay? Nobody knows."

    cut = chunks("sentences", 35, 0, Document("a.txt", "", text, "text"))

    assert [chunk.text for chunk in cut] == [
        "One boat came. Two boats went!",
        "Did three stay? Nobody knows.",
    ]


def test_a_text_without_blanks_is_cut_anywhere():
    """Some scripts have none."""
    cut = chunks("recursive", 50, 10, Document("a.txt", "", "x" * 200, "text"))

    assert "".join(chunk.text for chunk in cut) == "x" * 200


def test_a_class_above_may_take_the_size():
    """Splitters of LangChain hand their sizes on as `**kwargs`."""

    class Splitter:
        def __init__(self, chunk_size=4000, chunk_overlap=200):
            self.told = chunk_size, chunk_overlap

    class Special(Splitter):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)

        def split_text(self, text):
            size, overlap = self.told
            return [text[at : at + size] for at in range(0, len(text), size - overlap)]

    spec = HandedOver("mine", Special)

    assert takes_size(spec)
    assert len(chunks(spec, 100, 20)[0].text) == 100


def test_a_constructor_that_raises_is_named():
    """The cause is in the user's code."""

    class Broken:
        def __init__(self, chunk_size):
            raise ValueError("no size is good enough")

        def split_text(self, text):
            return [text]

    with pytest.raises(UsageError, match="constructor raised ValueError: no size is good"):
        sized_chunker(HandedOver("broken", Broken), 100, 0)
