"""A history in a terminal: what changed first, then trends, the list, and a picture."""

from evaluations import evaluation

from ragforge.records import MeasuredMean
from ragforge.report.history.of_run import run_history
from ragforge.report.history.text import history_text


def text(*evaluations, rows=20, width=80):
    return history_text(run_history(evaluations), rows, width)


def test_what_changed_comes_before_the_numbers():
    """Whoever sees a fall asks what was changed."""
    found = text(evaluation(), evaluation(0.7, digests={"rankings": "r2"})).splitlines()

    assert found[:3] == [
        "bm25: 2 evaluations, the last of 50 queries at 2026-01-01 02:00",
        "Changed from 2026-01-01 02:00 to 2026-01-01 02:00:",
        "  - The retriever ranks otherwise on the same corpus and queries: it changed, or does "
        "not repeat itself.",
    ]


def test_a_history_that_stands_still_says_when_it_last_moved():
    """The last change is what a steady line rests on."""
    new = {"rankings": "r2"}
    found = text(
        evaluation(at="2026-01-01T02:00:00+00:00"),
        evaluation(0.7, at="2026-01-02T02:00:00+00:00", digests=new),
        evaluation(0.7, at="2026-01-03T02:00:00+00:00", digests=new),
    ).splitlines()

    assert found[1] == "Changed from 2026-01-01 02:00 to 2026-01-02 02:00; 1 repeat since:"


def test_evaluations_that_are_all_alike_say_so():
    """Nothing ever changed, so that nothing is to be told of."""
    found = text(evaluation(at="1"), evaluation(at="2")).splitlines()

    assert found[1] == "All evaluations are alike."


def test_the_picture_draws_intervals_on_one_axis():
    """Whether two intervals overlap is seen where they share an axis."""
    found = text(evaluation(0.5), evaluation(0.6), width=60)

    assert found.splitlines()[-3:] == [
        "RR                0.450                              0.650",
        "2026-01-01 02:00  [---------o---------]",
        "2026-01-01 02:00                     [---------o---------]",
    ]


def test_an_evaluation_without_a_value_is_no_zero():
    """A run that failed on all queries has no mean to draw."""
    nothing = MeasuredMean(mean=None, low=None, high=None, n=0, n_failed=50)
    found = text(evaluation(), evaluation(measures={"RR": nothing}))

    assert found.splitlines()[-1].endswith("(no value)")


def test_only_the_newest_rows_are_listed():
    """A year of nights does not fit a screen."""
    many = [evaluation(n / 100, at=f"2026-01-{n:02}T02:00:00+00:00") for n in range(10, 20)]

    found = text(*many, rows=3)

    assert "2026-01-16 02:00" not in found
    assert "2026-01-17 02:00" in found


def test_names_of_runs_cannot_steer_the_terminal():
    """The name of a run is data."""
    assert "\x1b" not in text(evaluation(run="\x1b[2Jrun"))
