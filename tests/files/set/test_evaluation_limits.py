"""Numbers that no evaluation can have are found; those that one can have pass."""

import pytest
from evaluations import evaluation

from ragforge.files.set.history import impossibility
from ragforge.records import BridgeMean, MeasuredMean


def measured(name="RR", **fields):
    numbers = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 50, "least": 0.4, "most": 0.7, **fields}
    return evaluation(measures={name: MeasuredMean(**numbers)})


def bridged(**fields):
    numbers = {"n": 9, "before": 0.4, "now": 0.5, "diff": 0.1, "low": 0.0, "high": 0.2, **fields}
    return evaluation(bridge_to="ab", bridge={"RR": BridgeMean(**numbers)})


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (measured(low=0.6, high=0.7), "RR: mean 0.5 is not between 0.6 and 0.7"),
        (measured(least=0.6), "RR: mean 0.5 is not between 0.6 and 0.7"),
        (measured(mean=1.5, low=1.4, high=1.6, most=1.5), "RR: mean 1.5 is not in its range"),
        (measured("NumRel", mean=-1.0), "NumRel: mean -1 is not in its range, 0 or more"),
        (bridged(now=1.2), "bridge of RR: now 1.2 is not in its range, 0 to 1"),
        (bridged(diff=0.3), "bridge of RR: diff 0.3 is not between 0.1 and 0.1"),
        (bridged(low=0.15), "bridge of RR: diff 0.1 is not between 0.15 and 0.2"),
        (evaluation(n_failed=51), "n_failed 51 is more than its 50 queries"),
        (evaluation(n_holes=501), "n_holes 501 is more than its 500 retrieved chunks"),
    ],
)
def test_numbers_that_cannot_be_are_named(made, told):
    """A line that was made by hand must not become a trend."""
    assert impossibility(made).startswith(told)


@pytest.mark.parametrize(
    "made",
    [
        evaluation(),
        measured(),
        measured("NumRel", mean=7.0, low=6.0, high=9.0, least=7.0, most=7.0),
        measured("OfLater@5", mean=7.0, low=6.0, high=9.0, least=7.0, most=7.0),
        measured(mean=None, low=None, high=None, least=0.0, most=1.0),
        measured(mean=0.1 + 0.2, low=0.3, high=0.3, least=0.3, most=0.3),
        bridged(),
        bridged(low=None, high=None),
    ],
)
def test_numbers_that_can_be_pass(made):
    """What was measured must never be left out."""
    assert impossibility(made) == ""
