"""What a scheduler reads."""

import json

import pytest

from ragforge.evaluating.versions import RefreshSummary


@pytest.mark.parametrize(
    ("status", "code"),
    [("unchanged", 0), ("planned", 0), ("published", 0), ("rejected", 1), ("pins broken", 2)],
)
def test_each_status_has_its_exit_code(status, code):
    """Schedulers tell a night that needs a person from one that does not by this number alone."""
    assert RefreshSummary(status, "set", "set", 3, 4).exit_code == code


def test_the_whole_diff_is_in_the_object(diff):
    """What was published has to be known without a second look at the disk."""
    found = RefreshSummary("published", "set", "set", 3, 4, diff=diff).as_json()
    kept = {"items", "changes", "documents", "judgments", "calls", "checks", "n_bridge", "version"}
    assert kept <= found.keys()


def test_the_object_is_plain_json(diff):
    """It is printed, posted and piped."""
    found = RefreshSummary("published", "set", "set", 3, 4, diff=diff).as_json()
    assert json.loads(json.dumps(found)) == found
