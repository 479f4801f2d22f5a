"""Where the texts of documents stand, once files have other names."""

import pytest

from ragforge.corpus.document_matches import DocumentMatches
from ragforge.corpus.moved_documents import find_moved_documents


def find(before, now, edited=(), stayed=None, homes=None):
    changed = {name for name in before if before[name] == now.get(name)}
    before, now = (
        {name: digest for name, digest in one.items() if name not in changed}
        for one in (before, now)
    )
    matches = DocumentMatches(frozenset(edited), homes or {})
    return find_moved_documents(before, now, stayed or {}, lambda names, places: matches)


@pytest.mark.parametrize(
    ("before", "now", "moved", "gone"),
    [
        ({"a": "A"}, {"b": "A"}, {"a": "b"}, set()),
        ({"a": "A", "b": "B"}, {"a": "B", "b": "A"}, {"a": "b", "b": "a"}, set()),
        ({"1": "A", "2": "B"}, {"1": "new", "2": "A", "3": "B"}, {"1": "2", "2": "3"}, set()),
        ({"1": "A", "2": "B", "3": "C"}, {"1": "B", "2": "C"}, {"2": "1", "3": "2"}, {"1"}),
        ({"a": "A"}, {"a": "new", "old": "A"}, {"a": "old"}, set()),
        ({"a": "A"}, {"a": "other"}, {}, {"a"}),
        ({"a": "A"}, {}, {}, {"a"}),
    ],
    ids="renamed swapped shifted closed-up another-under-its-name rewritten removed".split(),
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


def test_a_text_that_is_edited_and_renamed_is_followed():
    """No digest is the same; the label of each stayed with the text of the other."""
    before, now = {"x": "X", "y": "Y"}, {"x": "Y, edited"}

    found = find(before, now, homes={"y": "x"})

    assert (found.now, found.gone, found.replaced) == ({"y": "x"}, {"x"}, {"x"})


def test_one_that_is_there_word_for_word_is_sought_no_more():
    """It stands in the archive, whatever else is like it."""
    found = find({"a": "A"}, {"a": "new", "old": "A", "b": "like A"}, homes={"a": "b"})

    assert found.now == {"a": "old"}


def test_a_hit_on_a_text_that_is_gone_finds_back():
    """Under no name that a document has, and first under its own."""
    former = find({"a": "A"}, {}).renamed("a")

    assert former == "former:a@A"
    assert find({}, {"a": "other", "b": "A", "c": "A"}).renamed(former) == "b"
    assert find({}, {"a": "A", "archive/a": "A"}).renamed(former) == "a"
    assert find({}, {"a": "other"}).renamed(former) is None
