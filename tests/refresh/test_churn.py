import pytest
from corpora import SETTINGS, page, set_of, write_pages

from ragforge.config import ChunkSettings, RefreshSettings
from ragforge.errors import ChurnError
from ragforge.observe import silent
from ragforge.refresh.corpus.diff import diff_corpus
from ragforge.refresh.version_checks import check_churn, chunks_lost

NAMES = ("ant", "bee", "cow", "dog")
GUARD = RefreshSettings()


@pytest.fixture
def docs(tmp_path):
    return write_pages(tmp_path / "docs", NAMES)


@pytest.fixture
def diff(tmp_path, docs):
    """Compare the documents as they are now with those of a set."""
    parent = set_of(tmp_path / "set", docs)
    return lambda settings=SETTINGS: diff_corpus(
        parent, [docs], settings, tmp_path / "place", silent, 2
    )


def rewrite(docs, names):
    for name in names:
        (docs / f"{name}.md").write_text(page(f"new {name}"))


def test_many_vanished_documents_are_refused(diff, docs):
    """Half a corpus that is gone is most often a mount that is missing."""
    for name in ("ant", "bee"):
        (docs / f"{name}.md").unlink()

    with pytest.raises(ChurnError, match=r"2 of 4 documents vanished, such as ant\.md, bee\.md"):
        check_churn(diff(), GUARD)


def test_the_refusal_says_how_to_go_on(diff, docs):
    """A corpus may shrink on purpose."""
    for name in ("ant", "bee"):
        (docs / f"{name}.md").unlink()

    with pytest.raises(ChurnError, match=r"at most 30% may .*mount.*--accept-churn"):
        check_churn(diff(), GUARD)


def test_the_guard_ends_with_the_code_of_bad_data():
    """Schedulers tell by it that nothing is broken but the corpus."""
    assert ChurnError.exit_code == 3


def test_few_vanished_documents_pass(diff, docs):
    """Pages are deleted every day."""
    (docs / "ant.md").unlink()

    assert check_churn(diff(), GUARD) is None


def test_renamed_documents_have_not_vanished(diff, docs):
    """A new folder structure is no loss."""
    for name in NAMES:
        (docs / f"{name}.md").rename(docs / f"moved-{name}.md")

    assert check_churn(diff(), GUARD) is None


def test_unreadable_documents_have_not_vanished(diff, docs):
    """They are there, and stay as they were."""
    for name in NAMES[:3]:
        (docs / f"{name}.md").write_bytes(b"caf\xe9")

    assert check_churn(diff(), GUARD) is None


def test_much_lost_text_is_refused(diff, docs):
    """Another language of the same pages has the same names."""
    rewrite(docs, NAMES[:3])

    with pytest.raises(ChurnError, match="the text of 9 of 12 chunks is gone; at most 50%"):
        check_churn(diff(), GUARD)


def test_text_under_another_id_is_not_lost(diff, docs):
    """Documents that were merged have all their text."""
    everything = "\n".join(page(name) for name in NAMES)
    (docs / "ant.md").write_text(everything)
    for name in NAMES[1:]:
        (docs / f"{name}.md").unlink()
    found = diff()

    assert chunks_lost(found) == 0


def test_text_that_stands_twice_is_not_lost_with_one_of_them(tmp_path):
    """Its other place is one that did not change."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a", "b"):
        (docs / f"{name}.md").write_text(page("same"))
    parent = set_of(tmp_path / "set", docs)
    (docs / "b.md").unlink()
    found = diff_corpus(parent, [docs], SETTINGS, tmp_path / "place", silent, 2)

    assert (found.documents.chunks_removed, chunks_lost(found)) == (3, 0)


def test_chunks_cut_anew_are_no_loss(diff):
    """Another size of chunks changes all of them, and no document."""
    assert check_churn(diff(ChunkSettings(max_chars=150)), GUARD) is None


def test_the_limits_are_settings(diff, docs):
    """Some corpora turn over every night."""
    rewrite(docs, NAMES)
    free = RefreshSettings(vanished_most=1, chunks_gone_most=1)

    assert check_churn(diff(), free) is None


def test_nothing_changed_passes(diff):
    """Nothing is read for it."""
    assert check_churn(diff(), RefreshSettings(vanished_most=0, chunks_gone_most=0)) is None
