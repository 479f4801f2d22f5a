"""Where the texts of documents stand, once files have other names."""

import pytest

from ragforge.corpus.moved_documents import edited_documents, find_moved_documents
from ragforge.records import Chunk


def find(before, now, edited=(), stayed=None):
    changed = {name for name in before if before[name] == now.get(name)}
    before, now = (
        {name: digest for name, digest in one.items() if name not in changed}
        for one in (before, now)
    )
    return find_moved_documents(before, now, stayed or {}, lambda names: {*edited} & {*names})


@pytest.mark.parametrize(
    ("before", "now", "moved", "gone"),
    [
        ({"a": "A"}, {"b": "A"}, {"a": "b"}, set()),
        ({"a": "A", "b": "B"}, {"a": "B", "b": "A"}, {"a": "b", "b": "a"}, set()),
        ({"1": "A", "2": "B"}, {"1": "new", "2": "A", "3": "B"}, {"1": "2", "2": "3"}, set()),
        ({"1": "A", "2": "B", "3": "C"}, {"1": "B", "2": "C"}, {"2": "1", "3": "2"}, {"1"}),
        ({"a": "A"}, {"a": "new", "old": "A"}, {"a": "old"}, set()),
        ({"a": "A"}, {"a": "other"}, {}, set()),
        ({"a": "A"}, {}, {}, {"a"}),
    ],
    ids="renamed swapped shifted closed-up another-under-its-name edited removed".split(),
)
def test_a_text_is_followed(before, now, moved, gone):
    """A name says nothing of what stands under it."""
    found = find(before, now)

    assert (found.now, found.gone) == (moved, gone)


def test_what_was_copied_and_edited_stays():
    """An archive keeps the old version; the page that people labelled is the one they edit."""
    found = find({"a": "A"}, {"a": "edited", "archive/a": "A"}, edited=["a"])

    assert (found.now, found.gone) == ({}, set())


def test_a_page_that_always_holds_the_version_before_is_no_move():
    """Its own text made room for nobody's."""
    before, now = {"now": "B", "previous": "A"}, {"now": "C", "previous": "B"}

    assert find(before, now, edited=["now"]).now == {}


def test_a_copy_that_stayed_has_the_text():
    """Copied one night and removed the next, it was renamed."""
    found = find({"a": "A"}, {}, stayed={"A": "copy"})

    assert (found.now, found.gone) == ({"a": "copy"}, set())


def chunk(doc_id, text):
    return Chunk(chunk_id=f"{doc_id}-{len(text)}", doc_id=doc_id, text=text, start=0, end=len(text))


def test_an_edited_text_has_most_of_its_words():
    """Two texts of one language share the small words."""
    before = [chunk("a", "Wax keeps oak from drying out in rooms."), chunk("b", "We are ten.")]
    now = [chunk("a", "Wax keeps oak from drying out in halls."), chunk("b", "Ships sail.")]

    assert edited_documents({"a", "b"}, before, now) == {"a"}
