"""What a gate says of a check in a sentence: the figure that decided, and no other."""

from dataclasses import replace

import pytest

from ragforge.evaluating.gate import Decision, bound_sentence, drop_sentence, parse_thresholds

SAME = Decision(
    value=0.0,
    low=-0.1157,
    high=0.1157,
    decided=-0.6333,
    best=-0.3667,
    n=30,
    n_failed=30,
    worst=True,
    by_point=False,
)
[[DROP]] = [parse_thresholds(["nDCG@10=0.02"], "--max-drop")]
[[LEAST]] = [parse_thresholds(["nDCG@10=0.6"], "--min")]


def test_a_drop_that_failures_make_is_no_drop_of_the_interval():
    """The interval held 0, and the sentence said that all of it was a drop."""
    said = drop_sentence(SAME, DROP, "FAIL")

    assert said == (
        "nDCG@10 changed by 0.0000 on 30 items, and by -0.3667 at best with all failures at their "
        "worst: 0.0200 is allowed."
    )


def test_a_mean_that_decides_with_failures_is_told():
    """No change was "a drop of more than 0.0200"."""
    said = drop_sentence(replace(SAME, by_point=True, decided=-0.5), DROP, "FAIL")

    assert "and by -0.5000 with all failures at their worst: that is a drop of more" in said


@pytest.mark.parametrize(("by_point", "figure"), [(True, "0.5000"), (False, "0.6000")])
def test_a_mean_below_a_bound_is_the_one_with_failures(by_point, figure):
    """A mean of 1.0000 "with all failures at their worst" was below 0.6000."""
    decision = replace(SAME, value=1.0, decided=0.5, best=0.6, by_point=by_point)

    said = bound_sentence("min", decision, LEAST, "FAIL")

    at_best = "" if by_point else "at best "
    assert f"and {at_best}{figure} with all failures at their worst, which is below" in said
