from evaluations import evaluation

from ragforge.evaluating.formatting import MISSING
from ragforge.evaluating.history.run_history import (
    ChangesSince,
    changes_at,
    changes_since,
    changes_since_last,
    evaluation_rounds,
)
from ragforge.files.set.history import History
from ragforge.report.history import changes_table, trends_table

BEFORE, AFTER = evaluation(0.6), evaluation(0.9, digests={"rankings": "r2"})


def of(*evaluations):
    return History(evaluations=evaluations)


def test_runs_evaluated_one_after_the_other_are_one_sitting():
    """A chart over time has one place for what was looked at together."""
    found = evaluation_rounds(of(BEFORE, evaluation(run="dense"), AFTER))

    assert [list(one.evaluations) for one in found] == [["bm25", "dense"], ["bm25"]]


def test_an_evaluation_that_repeats_another_hides_no_change():
    """Evaluating twice is not to make the page forget what changed."""
    again = evaluation(0.9, digests={"rankings": "r2"}, at="2026-01-02T00:00:00+00:00")

    found = changes_since(of(BEFORE, AFTER, again), ["bm25"])

    assert found.evaluation == BEFORE
    assert [item.change.what for item in found.changed] == ["retriever"]


def test_where_nothing_ever_changed_that_is_said_of_the_last_sitting():
    """No change is a finding, and no history is none."""
    again = evaluation(0.6, at="2026-01-02T00:00:00+00:00")

    assert changes_since(of(BEFORE, again), ["bm25"]) == ChangesSince(BEFORE, ())
    assert changes_since(of(BEFORE), ["bm25"]) is None


def test_a_change_of_all_runs_is_told_once():
    """What changed is the set, and six lines of it hide the seventh."""
    pairs = [
        evaluation(run=run, tool_version=version) for version in ("1", "2") for run in ("a", "b")
    ]

    [found] = changes_since_last(of(*pairs), ["a", "b"])

    assert (found.change.what, found.runs) == ("tool", ())


def test_a_change_of_one_run_names_it():
    """Whose retriever changed is the question."""
    first = [evaluation(run="a"), evaluation(run="b")]
    second = [evaluation(run="a", digests={"rankings": "r2"}), evaluation(run="b", at="later")]

    table = changes_table(of(*first, *second), ["a", "b"])

    assert [(row[0], row[2]) for row in table.rows] == [("retriever", "a")]


def test_changes_of_a_sitting_are_against_the_evaluation_of_that_run_before():
    """A run may have been left out in between."""
    found = evaluation_rounds(of(BEFORE, evaluation(run="dense"), evaluation(run="dense"), AFTER))

    assert [item.change.what for item in changes_at(found, 1)] == ["retriever"]


def test_full_scores_stand_beside_the_trend():
    """A difference without the two means cannot be weighed."""
    table = trends_table(of(BEFORE, AFTER), ["bm25"])

    assert table.title == "RR since the last evaluation"
    assert table.rows == (
        ("bm25", "0.600", "0.900", "all", "+0.300", "[+0.229, +0.371]", "IMPROVING"),
    )


def test_a_first_evaluation_is_no_trend():
    """There is nothing to hold it against."""
    assert trends_table(of(BEFORE), ["bm25"]).rows == ()
    assert changes_table(of(), ["bm25"]).rows == ()


def test_another_set_without_common_items_is_no_trend():
    """The page must not call easier questions an improvement."""
    easier = evaluation(0.9, digests={"queries": "q2"})

    assert trends_table(of(BEFORE, easier), ["bm25"]).rows == (
        ("bm25", "0.600", "0.900", "all", "+0.300", MISSING, "UNKNOWN"),
    )


def test_the_trend_is_of_the_measure_that_decides():
    """A report by P@5 showed over time what moved in nDCG@10."""
    (rr,) = BEFORE.measures.values()
    both = {"nDCG@10": rr, "P@5": rr}
    history = of(*(item.model_copy(update={"measures": both}) for item in (BEFORE, AFTER)))

    assert trends_table(history, ["bm25"]).title == "nDCG@10 since the last evaluation"
    assert trends_table(history, ["bm25"], "P@5").title == "P@5 since the last evaluation"
    assert trends_table(history, ["bm25"], "R@10").title == "nDCG@10 since the last evaluation"
