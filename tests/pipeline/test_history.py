"""Evaluations of real datasets, kept one after the other."""

import pytest
from ranked_sets import FAILED, ranked_set

from ragforge.config import EvaluateSettings
from ragforge.errors import UsageError
from ragforge.evaluating.history.changes import changes
from ragforge.evaluating.history.run_history import moved
from ragforge.evaluating.history.trends import trend
from ragforge.files.set.baseline import values_of
from ragforge.files.set.history import read_history
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.history import keep_evaluations, last_alike, last_other, run_histories

pytestmark = pytest.mark.slow


RR = EvaluateSettings(measures=("RR",))


@pytest.fixture
def keep(tmp_path):
    """Make a dataset with chosen ranks, evaluate its run and keep that."""

    def make(ranks, observer=None, measures=RR, **fields):
        made = ranked_set(tmp_path / "set", {"bm25": ranks}, **fields)
        told = () if observer is None else (observer,)
        return made, keep_evaluations(made, evaluate_runs(made, (), measures), *told)[0]

    return make


def texts(n, new=0):
    """Return the texts of n queries, the last of them new."""
    return [f"What is {i}?" for i in range(n - new)] + [f"What is new {i}?" for i in range(new)]


def test_the_first_evaluation_has_no_bridge(keep):
    """There is nothing to compare it with."""
    made, kept = keep([1, 2, 4, 1, 2, 4])

    assert (kept.bridge_to, kept.bridge) == ("", {})
    assert read_history(made.path).evaluations == (kept,)


def test_a_changed_system_moves_the_same_items(keep):
    """The retriever got better on the very same questions."""
    _, before = keep([2, 4, 2, 2, 4, 2, 4, 2])
    _, now = keep([1, 1, 2, 1, 1, 1, 2, 1])

    assert [item.what for item in changes(before, now)] == ["retriever"]
    assert trend([before, now], "RR").verdict == "IMPROVING"
    assert moved(before, now, "RR").cause == "system"


def test_a_changed_set_leaves_the_same_items_where_they_were(keep):
    """Thirty easier questions are no better retriever."""
    old = [1, 2, 4] * 10
    _, before = keep(old + [4] * 30, texts=texts(60))
    _, now = keep(old + [1] * 30, texts=texts(60, new=30))

    assert [item.what for item in changes(before, now)] == ["items"]
    assert now.bridge["RR"].n == 30
    assert moved(before, now, "RR").cause == "set"
    assert trend([before, now], "RR").verdict == "STABLE"


def test_a_changed_system_and_a_changed_set_are_both_seen(keep):
    """Two changes at once must not pass for one."""
    _, before = keep([2, 2, 4] * 10 + [4] * 30, texts=texts(60))
    _, now = keep([1, 2, 4] * 10 + [1] * 30, texts=texts(60, new=30))

    assert moved(before, now, "RR").cause == "both"


def test_a_tiny_rise_is_stable(keep):
    """One query of forty moved by chance is no trend."""
    _, before = keep([1, 2, 4, 2] * 10)
    _, now = keep([1, 2, 4, 1] + [1, 2, 4, 2] * 9)

    found = trend([before, now], "RR")

    assert (found.verdict, found.diff) == ("STABLE", pytest.approx(0.0125))


def test_damaged_values_cost_the_bridge_only(keep):
    """A file that rotted must not keep tonight's evaluation from being kept."""
    events = []
    made, before = keep([1, 2, 4, 1, 2, 4])
    (made.path / "history" / f"{before.evaluation_id}.jsonl.gz").write_bytes(b"rot")

    made, now = keep([1, 1, 1, 1, 1, 1], observer=events.append)

    assert now.bridge == {}
    assert "is damaged" in events[0].message
    assert read_history(made.path).evaluations == (before, now)


def test_a_torn_line_is_told_when_the_next_is_added(keep):
    """Whoever evaluates learns that the night before was killed."""
    events = []
    made, _ = keep([1, 2])
    with (made.path / "history.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("{")

    keep([2, 2], observer=events.append)

    assert "the last line was torn" in events[0].message


def test_the_last_other_evaluation_is_the_state_before(keep):
    """A gate held against what was just evaluated would always pass."""
    made, before = keep([1, 2, 4, 1])
    keep([1, 1, 1, 1])
    made, _ = keep([1, 1, 1, 1])
    [now] = evaluate_runs(made, (), RR)

    found = last_other(made, now)

    assert found == values_of(made.path, before.evaluation_id)
    assert found is not None


def test_without_a_change_there_is_no_other_evaluation(keep):
    """Nothing to be held against is not the same as a pass."""
    made, _ = keep([1, 2, 4, 1])
    [now] = evaluate_runs(made, (), RR)

    assert last_other(made, now) is None


def test_without_a_change_the_last_evaluation_is_like_now(keep):
    """A gate can be held against it: what is the same is no worse."""
    keep([1, 2, 4, 1])
    made, _ = keep([1, 2, 4, 1])
    [now] = evaluate_runs(made, (), RR)

    found = last_alike(made, now)

    assert found is not None
    assert found.items == now.baseline.items


def test_an_evaluation_of_something_else_is_not_like_now(keep):
    """It would be told as a change of nothing."""
    made, _ = keep([1, 2, 4, 1])
    [now] = evaluate_runs(ranked_set(made.path, {"bm25": [1, 1, 1, 1]}), (), RR)

    assert last_alike(made, now) is None


def test_the_window_is_from_its_first_to_its_last_evaluation(keep):
    """A slow decline is not seen from one night to the next."""
    keep([1] * 12)
    for worse in range(1, 9):
        made, _ = keep([2] * worse + [1] * (12 - worse))

    [found] = run_histories(made, read_history(made.path), window=9)

    assert found.trends[0].verdict == "STABLE"
    [window] = found.window
    assert (window.verdict, window.on, round(window.diff or 0, 3)) == (
        "DEGRADING",
        "same items",
        -0.333,
    )


def test_a_run_that_was_never_evaluated_is_named_with_those_that_were(keep):
    """A typing error is to be seen at once."""
    made, _ = keep([1, 2])

    with pytest.raises(UsageError, match="no evaluation of run 'dense'; there are: bm25"):
        run_histories(made, read_history(made.path), ["dense"])


def test_a_measure_that_was_never_computed_is_refused(keep):
    """An empty list would look like an empty history."""
    made, _ = keep([1, 2])

    with pytest.raises(UsageError, match="never measured by AP; there are: RR"):
        run_histories(made, read_history(made.path), measures=["AP"])


def test_a_run_that_failed_on_all_queries_is_kept_without_a_mean(keep):
    """A night on which the retriever was down belongs into the history, and is no 0."""
    keep([1, 2, 4, 1])
    made, now = keep([FAILED] * 4)

    assert (now.measures["RR"].mean, now.n_failed, now.bridge) == (None, 4, {})
    [found] = run_histories(made, read_history(made.path))
    assert [item.what for item in found.changes] == ["failures"]


def test_an_easier_set_without_common_items_has_no_verdict(keep):
    """Forty-seven easier questions are no better retriever."""
    keep([1, 2, 4] * 15, texts=texts(45))
    made, _ = keep([1] * 45, texts=texts(45, new=45))

    [found] = run_histories(made, read_history(made.path))

    assert [(item.verdict, item.on) for item in found.trends] == [("UNKNOWN", "all items")]


def test_a_retriever_that_fails_on_hard_queries_did_not_change_the_set(keep):
    """The mean of the easy ones is higher, on the very same set."""
    keep([1, 2, 1, 1, 2] * 3 + [4, 0] * 17 + [0])
    made, _ = keep([1, 2, 1, 1, 2] * 3 + [FAILED] * 35)

    [found] = run_histories(made, read_history(made.path))

    assert [item.what for item in found.changes] == ["failures"]
    assert [item.cause for item in found.moved] == ["failures"]


def test_the_same_items_are_known_past_an_evaluation_by_other_measures(keep):
    """One look at AP must not cost the pairs of RR."""
    keep([2, 4, 2, 2, 4, 2, 4, 2])
    keep([2, 4, 2, 2, 4, 2, 4, 2], measures=EvaluateSettings(measures=("AP",)))
    made, _ = keep([1, 1, 2, 1, 1, 1, 2, 1])

    [found] = run_histories(made, read_history(made.path))

    assert [(item.verdict, item.on) for item in found.trends] == [("IMPROVING", "same items")]
    assert [item.verdict for item in found.window] == ["IMPROVING"]
