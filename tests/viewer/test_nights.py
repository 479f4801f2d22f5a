import pytest
from versioned_sets import make_set, refreshed

from ragforge.files.set.opening import open_dataset
from ragforge.files.set.versions import next_version, refresh_lock, reject, stage_version
from ragforge.records import (
    CallCounts,
    Cause,
    DocumentsDiff,
    ItemChange,
    JudgmentsDiff,
    VersionDiff,
)
from ragforge.records.refresh import VersionCheck

pytestmark = pytest.mark.slow


@pytest.fixture
def home(folder):
    """A set with the versions 1 and 2."""
    path = make_set(folder / "nightly").path
    refreshed(path, "b")
    return path


def refuse(path):
    """Leave a version that a check stopped, as a night does."""
    cause = Cause(kind="document changed", doc_id="d", detail="<b>gone</b>")
    with refresh_lock(path):
        parent = open_dataset(path)
        with stage_version(parent, next_version(path)) as staged:
            staged.past.write_diff(
                VersionDiff(
                    version=3,
                    parent=2,
                    documents=DocumentsDiff(changed=("d",)),
                    items={"kept": 39, "retired": 1},
                    changes=(
                        ItemChange(
                            version=3, query_id="q07", action="retired", revision=1, causes=(cause,)
                        ),
                    ),
                    judgments=JudgmentsDiff(),
                    calls=CallCounts(verify=5, judge=6),
                    bridge=(),
                    checks=(VersionCheck(name="churn", passed=False, found=0.3, limit=0.15),),
                )
            )
            reject(staged, path)


def test_nights_are_listed_with_what_became_of_them(site, home):
    """The last one, which was refused, is what one looks for in the morning."""
    refuse(home)
    page = site.ask("/datasets/nightly/nights").text

    assert page.index("version 3") < page.index("version 2") < page.index("version 1")
    for text in ("refused", "1 changed, 39 kept", ">11<", "churn FAILED (0.3, limit 0.15)"):
        assert text in page


def test_a_night_says_which_queries_changed_and_why(site, home):
    """Each leads to its page, and texts of documents are texts."""
    refuse(home)
    page = site.ask("/datasets/nightly/nights").text

    assert 'href="query?q=q07"' in page
    assert "retired: document changed d: &lt;b&gt;gone&lt;/b&gt;" in page


def test_another_night_is_another_page(site, home):
    """The page is open all night."""
    tag = site.ask("/datasets/nightly/nights").getheader("ETag")
    same = site.ask("/datasets/nightly/nights", If_None_Match=tag).status
    refuse(home)

    assert (same, site.ask("/datasets/nightly/nights", If_None_Match=tag).status) == (304, 200)


def test_a_set_that_was_never_refreshed_has_no_nights(site):
    """Most sets begin so."""
    assert "It was never refreshed" in site.ask("/datasets/first/nights").text
