"""A history in a terminal: what changed first, then trends, the list, and a picture."""

from evaluations import evaluation

from ragforge.evaluating.history.run_history import run_history
from ragforge.evaluating.history.trends import trend_of_means
from ragforge.records import BridgeMean, MeasuredMean
from ragforge.report.history import history_text

AP = {"AP": MeasuredMean(mean=0.5, low=0.4, high=0.6, n=50)}


def text(*evaluations, rows=20, width=80):
    return history_text(run_history(evaluations), rows, width)


def test_what_changed_comes_before_the_numbers():
    """Whoever sees a fall asks what was changed."""
    found = text(evaluation(), evaluation(0.7, digests={"rankings": "r2"})).splitlines()

    assert found[:3] == [
        "bm25: 2 evaluations, the last of 50 queries at 2026-01-01 02:00",
        "Changed from 2026-01-01 02:00:00 to 2026-01-01 02:00:00:",
        "  - The retriever ranks otherwise on the same corpus and queries: it changed, does not "
        "repeat itself, or the run lacks queries.",
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


def test_a_measure_that_a_repeat_brought_has_its_newest_value():
    """The state is older than the measure: nothing changed when it was first looked at."""
    new = {"rankings": "r2"}
    changed = evaluation(0.7, at="2026-01-02T02:00:00+00:00", digests=new)
    repeat = evaluation(measures=AP, at="2026-01-03T02:00:00+00:00", digests=new)
    found = history_text(run_history([evaluation(), changed, repeat], ["AP"]))

    assert "\u2192 0.500" in found


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


def test_times_of_the_same_minute_have_seconds():
    """From 15:18 to 15:18 says nothing."""
    old, new = (
        evaluation(at=f"2026-01-01T02:00:{s}+00:00", digests={"rankings": s}) for s in ("07", "31")
    )

    assert "Changed from 2026-01-01 02:00:07 to 2026-01-01 02:00:31:" in text(old, new)


def test_an_unknown_verdict_over_another_set_says_why():
    """The rise is there to be seen, and must not be believed."""
    found = text(evaluation(), evaluation(0.9, digests={"queries": "q2"}))

    assert "UNKNOWN over all items: the set changed and none of its items is known" in found


def test_same_items_that_none_can_be_scored_of_are_not_said_to_be_others():
    """The list of changes says how many are the same; the table must not say that none is."""
    before = evaluation(measures={**AP, "RR": AP["AP"]})
    same = BridgeMean(n=3, before=0.5, now=0.5, diff=0.0, low=None, high=None, n_left_out=21)
    now = evaluation(
        measures={**AP, "RR": AP["AP"]},
        digests={"queries": "q2"},
        bridge_to=before.evaluation_id,
        bridge={"RR": same},
    )

    found = text(before, now)

    assert "24 are the same" in found
    assert "none of its items is known to be the same" not in found
    assert (
        "UNKNOWN over all items of AP: the set changed and none of its 24 same items can be scored "
        "in both, as the earlier ranking held chunks that are gone, or was not kept as deep"
        in found
    )


def test_a_trend_past_other_measures_says_between_which_evaluations_it_is():
    """The head names the evaluations of what changed last."""
    first = evaluation(at="2026-01-01T02:00:00+00:00")
    by_ap = evaluation(at="2026-01-02T02:00:00+00:00", measures=AP, tool_version="1.1")
    last = evaluation(
        0.7, at="2026-01-03T02:00:00+00:00", tool_version="1.2", digests={"rankings": "r2"}
    )

    found = text(first, by_ap, last)

    assert "0.600 → 0.700" in found
    assert (
        "RR: from 2026-01-01 02:00 to 2026-01-03 02:00, the last two states measured by it."
        in found
    )


def test_same_items_that_are_left_out_are_told_of():
    """Else 33 of 40 items look like a miscount."""
    before = evaluation()
    same = BridgeMean(n=33, before=0.5, now=0.5, diff=0.0, low=-0.1, high=0.1, n_left_out=7)
    now = evaluation(
        digests={"rankings": "r2"}, bridge_to=before.evaluation_id, bridge={"RR": same}
    )

    assert (
        "7 of 40 same items are left out of RR: the earlier ranking held chunks that are gone, or "
        "was not kept as deep." in text(before, now).splitlines()
    )


def test_the_same_rankings_are_told_as_such():
    """An interval around 0 would leave open whether a run differs from itself."""
    before = evaluation()
    same = BridgeMean(n=50, before=0.6, now=0.6, diff=0.0, low=0.0, high=0.0)
    now = evaluation(
        digests={"judgments": "j2"}, bridge_to=before.evaluation_id, bridge={"RR": same}
    )

    assert "0.000, the same rankings" in text(before, now)


def test_failures_that_moved_the_mean_are_told_as_such():
    """Nobody is to look for a changed set where the retriever was down."""
    before = evaluation()
    same = BridgeMean(n=15, before=0.95, now=0.95, diff=0.0, low=-0.1, high=0.1)
    lost = MeasuredMean(mean=0.95, low=0.9, high=1.0, n=15, n_failed=35, least=0.285, most=0.985)
    now = evaluation(
        measures={"RR": lost},
        n_failed=35,
        digests={"rankings": "r2"},
        bridge_to=before.evaluation_id,
        bridge={"RR": same},
    )

    assert text(before, now).splitlines()[2:4] == [
        "  - Failures: 0 of 50 queries, now 35 of 50; the queries that did not fail came out as "
        "before.",
        "RR: +0.350 over all items, 0.000 on the 15 that are the same: it is over other queries, "
        "as some failed; neither system nor set is shown to have moved.",
    ]


def test_the_longer_trend_says_that_it_is_from_first_to_last():
    """It is not a slope through all of them."""
    made = [evaluation(0.5), evaluation(0.6), evaluation(0.7)]
    window = [trend_of_means(made[0], made[-1], "RR")]

    found = history_text(run_history(made, window=window, window_size=3))

    assert "first to last of 3" in found


def test_items_that_a_verdict_would_need_are_told():
    """STABLE by twenty queries says little; by how many it would say more is the next question."""
    same = BridgeMean(n=20, before=0.6, now=0.65, diff=0.05, low=-0.05, high=0.15, sd=0.1)
    before = evaluation(0.6)
    now = evaluation(
        0.65, bridge_to=before.evaluation_id, bridge={"RR": same}, digests={"rankings": "r2"}
    )

    found = history_text(run_history([before, now]), least=0.1)

    assert (
        "Items that would show a difference in 4 of 5 samples, were they spread as these:\n"
        "  RR, over 20: +0.050 as seen takes 34, one of 0.1 takes 10\n"
    ) in found


def test_a_number_of_items_that_nobody_has_is_not_told_exactly():
    """A difference of a millionth takes 10 to the 11."""
    same = BridgeMean(n=20, before=0.6, now=0.600001, diff=0.000001, low=-0.1, high=0.1, sd=0.1)
    before = evaluation(0.6)
    now = evaluation(
        0.600001, bridge_to=before.evaluation_id, bridge={"RR": same}, digests={"rankings": "r2"}
    )

    assert "takes more than 1,000,000, one of 0.05 takes 34" in text(before, now)
