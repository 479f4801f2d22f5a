import pytest

from ragforge.corpus.near_duplicates import Repeats
from ragforge.corpus.staleness import Staleness
from ragforge.records import Chunk

SHARED = "The client sends its requests over one connection and keeps it open for a while. "


def stale(*chunks):
    """Return the (older, newer) rows found in chunks of (doc_id, heading, text)."""
    found = Staleness()
    words = Repeats()
    for row, (doc_id, heading, text) in enumerate(chunks):
        path = (heading,) if heading else ()
        found.add(row, Chunk(chunk_id=str(row), doc_id=doc_id, text=text, heading_path=path))
        words.add(text)
    return [(older, newer) for older, newer, _ in found.stale(words.numbers)]


def test_section_of_an_older_version_is_stale():
    """Both are retrieved, and one of them is wrong."""
    assert stale(
        ("v1/api.md", "Fees", "Ten."),
        ("v10/api.md", "Fees", "Twelve."),
        ("v9/api.md", "Fees", "Ten."),
    ) == [(0, 1), (2, 1)]  # fmt: skip


def test_section_that_the_newer_version_dropped_is_stale_too():
    """It describes what is no more."""
    assert stale(("v1/api.md", "Gone", "Old."), ("v2/api.md", "Fees", "New.")) == [(0, 1)]


def test_newest_version_of_each_document_is_not_stale():
    """A page that release 2 did not touch is still the latest."""
    assert stale(("v1/a.md", "A", "One."), ("v2/b.md", "B", "Two.")) == []


def test_like_texts_that_name_other_versions_are_ordered():
    """A copied page is often told by nothing else."""
    assert stale(
        ("new.md", "", SHARED + "This holds for version 2.10 of it."),
        ("old.md", "", SHARED + "This holds for version 2.9 of it."),
    ) == [(1, 0)]


def test_like_texts_that_name_other_dates_are_ordered():
    """Price lists and policies are dated."""
    assert stale(
        ("a.md", "", SHARED + "Valid from 2023-01-01 on."),
        ("b.md", "", SHARED + "Valid from 2024-01-01 on."),
    ) == [(0, 1)]


def test_other_texts_that_name_other_versions_are_not_stale():
    """Two products have two version numbers."""
    assert stale(
        ("a.md", "", SHARED + "This holds for version 2.9."),
        ("b.md", "", "A parcel locker takes small deliveries since version 3.0 of its box."),
    ) == []  # fmt: skip


def test_entries_of_one_changelog_are_not_stale():
    """It is there to name all versions."""
    assert stale(
        ("log.md", "", SHARED + "Since version 1.1."),
        ("log.md", "", SHARED + "Since version 1.2."),
    ) == []  # fmt: skip


def test_corpus_without_versions_has_nothing_stale():
    """Most corpora have none."""
    assert stale(("a.md", "", SHARED), ("b.md", "", SHARED)) == []


def test_a_document_of_an_earlier_year_that_says_so_is_stale():
    """Policies are kept by year; the old one answers with old numbers."""
    assert stale(
        ("returns-2024.md", "Returns 2024 (superseded)", "Thirty days."),
        ("returns-2025.md", "Returns 2025", "Forty-five days."),
        ("returns-2024.md", "Refunds", "Seven days."),
    ) == [(0, 1), (2, 1)]


def test_documents_of_several_years_may_all_be_valid():
    """Nobody is to leave out the annual report of last year."""
    assert stale(
        ("report-2024.md", "Report 2024", "Sales rose."),
        ("report-2025.md", "Report 2025", "Sales fell."),
    ) == []  # fmt: skip


def test_a_document_that_says_it_is_archived_without_a_newer_one_is_not_stale():
    """There is nothing it could be replaced by."""
    assert stale(("returns-2024.md", "Returns", "Archived. Thirty days.")) == []


@pytest.mark.parametrize("name", ["fees-old.md", "old/fees.md", "archive/fees.md", "fees_old.md"])
def test_a_document_called_old_is_stale_beside_its_namesake(name):
    """People rename what they do not dare to delete."""
    assert stale((name, "Fees", "Ten."), ("fees.md", "Fees", "Twelve.")) == [(0, 1)]


def test_a_word_within_another_is_no_sign_of_age():
    """Gold is not old."""
    assert stale(("gold.md", "Gold", "Au."), ("g.md", "G", "G.")) == []
