from itertools import pairwise

import pytest
from pipeline.generation.making import run
from refresh.changed_corpora import FIRST, folder_of

from ragforge.files.set.dataset import Dataset
from ragforge.files.set.versions import open_version
from ragforge.stages.generate.gates.repeated_questions import QuestionsAsked

CHANGES = (
    (("returns-2025",), ("privacy",)),
    (("shipping-2025", "privacy"), ("payment",)),
    (("payment", "warranty-2025"), ("returns-2024",)),
)
"""Documents that come and go from version to version."""


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Four versions of a set, whose documents come, go and come back."""
    place = tmp_path_factory.mktemp("row")
    documents, out = folder_of(place / "documents", FIRST), place / "set"
    named = ["--documents", str(documents)]
    run(["generate", *named, "-n", "12", "--out", str(out)])
    for added, removed in CHANGES:
        folder_of(documents, added)
        for name in removed:
            (documents / f"{name}.md").unlink()
        run(["refresh", *named, "--dataset", str(out), "--accept-churn", "-q"])
    return [open_version(out, number) for number in range(1, 2 + len(CHANGES))]


def clashes(dataset: Dataset):
    """Return the queries that ask what an earlier one does."""
    taken, found = QuestionsAsked(), []
    for query in dataset.all_queries():
        if taken.clash(query.asked) is not None:
            found.append(query.query)
        taken.add(query.query_id, query.asked)
    return found


@pytest.mark.slow
def test_no_version_asks_anything_twice(versions):
    """What was retired, came back or was replaced stays one query over all versions."""
    assert [clashes(version) for version in versions] == [[], [], [], []]


def test_no_query_leaves_its_split(versions):
    """What was tuned on once is known for ever."""
    splits = [{q.query_id: q.split for q in version.all_queries()} for version in versions]

    assert all(before.items() <= after.items() for before, after in pairwise(splits))
    assert {split for found in splits for split in found.values()} <= {"dev", "test"}


def test_no_version_has_fewer_than_the_first(versions):
    """A set that loses a little each night is worthless within weeks."""
    first, *later = [len(version.queries()) for version in versions]

    assert min(later) >= first


def test_every_version_has_what_it_aims_at(versions):
    """What one version cannot replace the next one does."""
    aims = [version.manifest.aim for version in versions[1:]]

    assert all(aim.accepted >= aim.wanted >= 12 for aim in aims)


def test_what_was_written_later_tells_so_in_the_plan(versions):
    """Two slots of one id could not be told apart."""
    plans = [[slot.slot_id for slot in version.plan()] for version in versions]

    assert all(after[: len(before)] == before for before, after in pairwise(plans))
