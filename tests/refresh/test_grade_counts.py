"""The figures of grades, as anybody can count them in the files."""

from collections import Counter

import pytest
from nights import SIX, make_night
from pipeline.generation.making import endpoint
from refresh.two_versions import JUDGE, OTHER, graded, make_parent

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions import open_version
from ragforge.refresh.grades.carrying import count_grades

PARTS = ("kept", "carried", "judged", "evidence", "failed")
TEXTS = {"a": ("One.",)}


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """A set after two nights in which queries are kept, lost and added."""
    with endpoint() as served:
        night = make_night(tmp_path_factory.mktemp("counts") / "set", served.url, *SIX)
        night.add_beside("privacy.md")
        night.lose("payment.md")
        (night.docs / "returns-2024.md").rename(night.docs / "old-returns.md")
        assert night.refresh().code == 0
        night.add_document()
        (night.docs / "shipping-2024.md").unlink()
        assert night.refresh().code == 0
    return night


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3])
def test_the_parts_add_up_to_the_rows(nights, number):
    """A figure that nobody can recompute is not believed."""
    version = open_version(nights.set, number)

    found = version.past.diff().judgments

    assert sum(getattr(found, part) for part in PARTS) == len(version.judgments())


@pytest.mark.parametrize("number", [2, 3])
def test_each_part_is_counted_in_the_files(nights, number):
    """Sources and equal rows say it all."""
    before = {one.model_dump_json() for one in open_version(nights.set, number - 1).judgments()}
    version = open_version(nights.set, number)
    sources = Counter(
        "kept" if one.source != "evidence" and one.model_dump_json() in before else one.source
        for one in version.judgments()
    )

    found = version.past.diff().judgments

    assert (found.kept, found.judged, found.evidence) == (
        sources["kept"],
        sources["judge"],
        sources["evidence"],
    )


def test_each_row_is_of_one_kind(tmp_path):
    """A row that is counted twice hides one that is not counted."""
    old = [graded("q", "c_1", 1), graded("q", "c_2", 3, "evidence"), graded("q", "c_3", 2)]
    new = [
        graded("q", "c_1", 1),
        graded("q", "c_2", 3, "evidence"),
        graded("q", "c_3", 2, "carried"),
        graded("q", "c_4", 0),
        graded("q", "c_5", 2, "human", OTHER),
        graded("q", "c_6", None, by=JUDGE),
        graded("q", "c_7", 2, "evidence"),
    ]
    parent: Dataset = make_parent(tmp_path / "old", TEXTS, (), old)
    staged = make_parent(tmp_path / "new", TEXTS, (), new)

    found = count_grades(parent, staged, dropped=4)

    assert found.model_dump() == {
        "kept": 1,
        "carried": 2,
        "dropped": 4,
        "judged": 1,
        "evidence": 2,
        "failed": 1,
        "dormant": 0,
    }
