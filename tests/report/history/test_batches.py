"""A series of batches: each by itself, weighted as it was asked, and never taken for a trend."""

import pytest
from evaluations import JUDGE, baseline

from ragforge.evaluating.history.batches import BatchRun, batch_series
from ragforge.measures.rates import difference_of_means
from ragforge.records import Baseline, LogDraw
from ragforge.report.history import BATCH_NOTE, batches_text


def draw(count=1, inclusion=1.0, share=1.0, how="frequency"):
    return LogDraw(
        batch="any",
        log="ab",
        draw=how,
        seed=0,
        wanted=9,
        count=count,
        inclusion=inclusion,
        share=share,
    )


def batches(*sizes, **fields):
    """Return batches w1, w2 … of so many queries, one after the other."""
    found, start = {}, 0
    for week, size in enumerate(sizes, start=1):
        found[f"w{week}"] = {f"q{n}": draw(**fields) for n in range(start, start + size)}
        start += size
    return found


def run(values, *, missing=(), is_logged=False, judges=None, **fields):
    """Return a run with such values of q0, q1 …, which has no ranking for some."""
    made = baseline(values, digests={"rankings": "r2"}, **fields)
    items = tuple(
        item.model_copy(update={"n_retrieved": 0 if place in missing else 10})
        for place, item in enumerate(made.items)
    )
    return BatchRun(Baseline(evaluation=made.evaluation, items=items), is_logged, judges or {})


def series(weeks, *runs, newest=20):
    return batch_series("RR", weeks, runs, newest=newest)


OLD = [1.0, 0.5, 0.5, 0.0, 0.25, 0.75]
NEW = [1.0, 1.0, 0.5, 0.25, 0.5, 0.75]


def test_each_batch_has_its_own_mean():
    """3 of 6, and 4 of 6: the mean of the whole set, 7/12, is that of neither."""
    rows = series(batches(6, 6), run(OLD + NEW)).rows

    assert [(row.batch, row.n, row.over_queries.mean) for row in rows] == [
        ("w1", 6, 0.5),
        ("w2", 6, pytest.approx(4 / 6)),
    ]


def test_a_difference_is_one_of_two_samples():
    """The questions are others: pairing them would make the interval far too short."""
    _, row = series(batches(6, 6), run(OLD + NEW)).rows
    unpaired = difference_of_means(OLD, NEW)

    assert (row.since, row.diff) == ("w1", pytest.approx(unpaired.mean))
    assert row.interval.low == pytest.approx(unpaired.interval.low)
    assert row.interval.high == pytest.approx(unpaired.interval.high)


def test_a_mean_as_asked_weighs_by_how_often_and_how_likely():
    """One question asked twice and eight once: 2 of 10 found; over queries it is 1 of 9."""
    weeks = {"w1": {"q0": draw(count=2), **{f"q{n}": draw() for n in range(1, 9)}}}
    halved = {"w1": {name: draw(one.count, 0.5) for name, one in weeks["w1"].items()}}

    [row], [same] = (series(of, run([1.0] + [0.0] * 8)).rows for of in (weeks, halved))

    assert row.over_queries.mean == pytest.approx(1 / 9)
    assert row.as_asked.mean == pytest.approx(0.2)
    assert row.as_asked.interval.low < 0.2 < row.as_asked.interval.high
    assert same.as_asked == row.as_asked


def test_a_draw_that_did_not_go_by_frequency_tells_nothing_of_the_traffic():
    """It may lack what is asked most, and an interval of the others would not know."""
    weeks = batches(6, 6, 6, inclusion=0.5, how="even")
    weeks["w3"] = {name: draw(inclusion=0.5, how="rarity") for name in weeks["w3"]}

    first, second, third = series(weeks, run(OLD + NEW + OLD)).rows

    assert [row.as_asked for row in (first, second, third)] == [None, None, None]
    assert (second.diff, second.is_as_asked) == (pytest.approx(4 / 6 - 3 / 6), False)
    assert third.unknown == "it was drawn by rarity, and w2 by even"


def test_a_head_of_the_traffic_without_a_value_leaves_no_mean_as_asked():
    """Ten of eleven queries have a value, and they are half of what was asked."""
    weeks = {"w1": {"q10": draw(count=10), **{f"q{n}": draw() for n in range(10)}}}
    found = series(weeks, run([1.0] * 10))

    assert [(row.n, row.as_asked, row.over_queries.mean) for row in found.rows] == [(10, None, 1.0)]
    assert found.notes == ("batch w1, run bm25: 50% of what was asked has no value",)


def test_all_of_a_log_tells_of_its_traffic_however_it_was_drawn():
    """Nothing can be missing."""
    [row] = series(batches(6, how="even"), run(OLD)).rows

    assert row.as_asked == row.over_queries


def test_a_question_that_is_most_of_the_traffic_leaves_no_interval():
    """Weights 5, 1, 1, 1, 1, 1 tell as much as 100/30 equal ones: fewer than five."""
    weeks = {"w1": {"q0": draw(count=5), **{f"q{n}": draw() for n in range(1, 6)}}, "w2": {}}
    weeks["w2"] = {f"q{n}": draw() for n in range(6, 12)}

    first, second = series(weeks, run([1.0, 0, 0, 0, 0, 0, *NEW])).rows

    assert (first.as_asked.mean, first.as_asked.interval) == (0.5, None)
    assert (second.diff, second.unknown) == (
        None,
        "too few questions of w1 or of this batch weigh enough",
    )


def test_a_log_of_another_week_has_no_row_for_the_heads_it_shares():
    """They are the easy ones, and what the log does not hold would count as 0."""
    found = series(batches(10, 10), run([1.0] * 20, missing=range(2, 10), is_logged=True))

    assert [row.batch for row in found.rows] == ["w2"]
    assert found.notes == ("batch w1, run bm25: not shown, it has rankings for 2 of 10 queries",)


def test_what_a_log_lacks_is_left_out_and_what_a_retriever_lacks_is_a_miss():
    """Nobody asked the log; the retriever was asked."""
    values = [1.0] * 9 + [0.0]

    [logged] = series(batches(10), run(values, missing=[9], is_logged=True)).rows
    [asked] = series(batches(10), run(values, missing=[9])).rows

    assert (logged.n, logged.n_queries, logged.over_queries.mean) == (9, 10, 1.0)
    assert (asked.n, asked.over_queries.mean) == (10, pytest.approx(0.9))


def test_a_run_from_before_a_batch_is_not_shown_as_0():
    """Its retriever never saw these questions."""
    found = series(batches(6, 6), run(OLD + [0.0] * 6, missing=range(6, 12)))

    assert [row.batch for row in found.rows] == ["w1"]
    assert "batch w2, run bm25: not shown, it has rankings for 0 of 6 queries" in found.notes


def test_a_batch_that_nobody_judged_is_said_to_have_no_values():
    """It is not 0."""
    found = series(batches(6, 6), run(OLD))

    assert [row.batch for row in found.rows] == ["w1"]
    assert found.notes == (
        "batch w2, run bm25: not shown, nothing of it was judged when the run was evaluated",
    )


def test_runs_of_logs_make_one_series():
    """Each week has its own log: production is what they have in common."""
    first = run(OLD, run="w1", is_logged=True)
    second = run(OLD + NEW, missing=range(6), run="w2", is_logged=True)

    found = series(batches(6, 6), first, second)

    assert [(row.run, row.since) for row in found.rows] == [("w1", ""), ("w2", "w1")]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"graders": (JUDGE.model_copy(update={"kind": "baseline"}),)},
            "by shared words, which says nothing about quality",
        ),
        (
            {"judges": {"w1": frozenset({"a"}), "w2": frozenset({"a", "b"})}},
            "they were graded by several judges: a, b",
        ),
    ],
)
def test_grades_that_allow_no_verdict_leave_the_difference_unknown(change, reason):
    """A difference of judges would pass for one of weeks."""
    _, row = series(batches(6, 6), run(OLD + NEW, **change)).rows

    assert (row.diff, row.interval) == (None, None)
    assert reason in row.unknown


def test_a_batch_of_which_a_part_has_values_is_not_held_against_another():
    """The judged ones may be the easy ones: 6 of 8."""
    weeks = batches(8, 6)
    values = run(OLD + [0.0] * 2 + NEW)
    items = tuple(i for i in values.baseline.items if i.query_id not in ("q6", "q7"))
    part = BatchRun(values.baseline.model_copy(update={"items": items}), False, {})

    first, second = series(weeks, part).rows

    assert (first.n, first.n_queries) == (6, 8)
    assert second.unknown == "only 6 of 8 queries of w1 have a value"


def test_weeks_come_in_the_order_of_their_numbers():
    """Week 9 is before week 10."""
    weeks = dict(zip(("week10", "week9", "2026-W47"), batches(6, 6, 6).values(), strict=True))

    rows = series(weeks, run(OLD + NEW + OLD)).rows
    newest = series(weeks, run(OLD + NEW + OLD), newest=1).rows

    assert [row.batch for row in rows] == ["2026-W47", "week9", "week10"]
    assert [row.batch for row in newest] == ["week10"]


def test_the_text_says_what_a_series_is_not():
    """A figure of one week beside another looks like a trend."""
    told = batches_text(series(batches(6, 6, share=0.925), run(OLD + NEW)))

    assert told.splitlines()[0].split("  ")[0] == "batch"
    assert "6 of 6" in told
    assert "92.5%" in told
    assert told.endswith(BATCH_NOTE)
    assert "no trend of the set" in told
    assert "IMPROVING" not in told


def test_names_of_batches_cannot_steer_the_terminal():
    """They are data."""
    weeks = {"\x1b[2J": batches(6)["w1"]}

    assert "\x1b" not in batches_text(series(weeks, run(OLD)))
