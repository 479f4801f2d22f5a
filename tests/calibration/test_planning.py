"""How many labels for which width."""

import numpy as np
import pytest
from labelled_sets import AS_DRAWN, drawn, graded_set, label_all

from ragforge.calibration.correcting import apply_labels
from ragforge.calibration.planning import plan_labels
from ragforge.calibration.population import Question
from ragforge.errors import UsageError
from ragforge.evaluating.formatting import signed
from ragforge.files.set.calibrations import calibration_files
from ragforge.report.calibration import plan_text


def widths(plan, measure, run, against=""):
    """Return planned widths by the number of labels."""
    asked = (measure, run, against)
    return {w.n: w.width for w in plan.widths if (w.measure, w.run, w.against) == asked}


def test_more_labels_make_narrower_intervals(tmp_path):
    """Else nobody would label more."""
    found = widths(plan_labels(graded_set(tmp_path), None, AS_DRAWN), "P@10", "a")

    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_labels_on_all_pairs_leave_nothing_open_on_these_queries(tmp_path):
    """The last column is a census."""
    plan = plan_labels(graded_set(tmp_path), None, AS_DRAWN)

    assert widths(plan, "P@10", "a")[plan.n_pairs] == 0.0


def test_a_plan_says_what_it_does_not_count(tmp_path):
    """Intervals over these queries come out narrower than planned."""
    assert "a label tells of its query's other pairs too" in plan_text(
        plan_labels(graded_set(tmp_path), None, AS_DRAWN)
    )


@pytest.mark.parametrize(("measure", "run", "against"), [("P@10", "a", ""), ("DCG@10", "b", "a")])
def test_the_width_planned_is_about_that_which_comes(tmp_path, measure, run, against):
    """A plan that is wrong by half has people label for nothing."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    files = label_all(made)

    planned = widths(plan_labels(made, files, None, [150]), measure, run, against)[150]

    corrected = apply_labels(made, files).figure(measure, run, against).corrected
    assert planned == pytest.approx(corrected.high - corrected.low, rel=0.2)


def test_queries_differ_by_more_than_the_judge_shows(tmp_path):
    """Labels of a query are alike: the width over queries like these was half of what came."""

    def truth_of(query, chunk):
        ease = np.random.default_rng([query, 9]).normal()
        own = np.random.default_rng([query, chunk, 9]).normal()
        return int(np.digitize(0.6 * ease + own, (0.0, 0.7, 1.4)))

    made = graded_set(tmp_path, 40, judge=lambda q, c: (7 * q + 3 * c) % 4)
    drawn(made, 200)
    files = label_all(made, grade=truth_of)

    [planned] = [
        width.wide_width
        for width in plan_labels(made, files, None, [200]).widths
        if (width.measure, width.run, width.against, width.n) == ("P@10", "a", "", 200)
    ]

    corrected = apply_labels(made, files).figure("P@10", "a").corrected
    assert planned == pytest.approx(corrected.wide_high - corrected.wide_low, rel=0.25)


def test_labels_that_are_there_say_how_labels_spread(tmp_path):
    """This judge is not those of other sets."""
    made = graded_set(tmp_path)
    drawn(made, 100)
    label_all(made)

    plan = plan_labels(made, calibration_files(made), None)

    assert plan.n_labels == 100


def test_a_difference_that_is_too_small_needs_more_queries(tmp_path):
    """No number of labels makes up for queries that are not there."""
    made = graded_set(tmp_path, 6)
    made.write_run("b", [*made.run("a")[:-1], made.run("b")[-1]])

    [found] = plan_labels(made, None, Question(("a", "b"), ("P@10",), "differences")).differences

    assert found.n_wide is None


def test_a_plan_tells_what_people_may_find_from_what_the_judge_finds(tmp_path):
    """It called the one the other, and `apply` showed another difference by the same grades."""
    made = graded_set(tmp_path)
    drawn(made, 150)
    files = label_all(made)

    plan = plan_labels(made, files, None)

    applied = apply_labels(made, files)
    assert plan.differences
    for item in plan.differences:
        figure = applied.figure(item.measure, item.run, item.against)
        assert item.by_judge == pytest.approx(figure.judge_only.value)
        assert item.expected != pytest.approx(item.by_judge)
    assert f"the judge finds {signed(plan.differences[0].by_judge)}" in plan_text(plan)


def test_one_query_has_no_width_over_queries_like_it(tmp_path):
    """Infinity is no JSON, and one query tells nothing of others."""
    found = plan_labels(graded_set(tmp_path, 1), None, AS_DRAWN)

    assert {width.wide_width for width in found.widths} == {None}


def test_a_plan_of_nothing_is_refused(tmp_path):
    """There is no calibration to plan for, and nothing named."""
    with pytest.raises(UsageError, match="name runs and measures"):
        plan_labels(graded_set(tmp_path), None, None)
