"""What changed is named once, and a trend is by the interval."""

import pytest
from evaluations import JUDGE, baseline, evaluation

from ragforge.evaluating.history.changes import changes
from ragforge.evaluating.history.run_history import moved, run_history, steps, trends
from ragforge.evaluating.history.trends import (
    QueriesNeeded,
    bridge,
    queries_needed_by,
    trend,
    trend_of_means,
)
from ragforge.files.set.history import History
from ragforge.records import BridgeMean, MeasuredMean
from ragforge.records.queries import Selection, Stratum

BEFORE = evaluation()


def bridged(diff, low, high, **fields):
    """Return an evaluation with a bridge to BEFORE."""
    mean = BridgeMean(n=40, before=0.6, now=0.6 + diff, diff=diff, low=low, high=high)
    return evaluation(bridge_to=BEFORE.evaluation_id, bridge={"RR": mean}, **fields)


def whats(now, before=BEFORE):
    return [item.what for item in changes(before, now)]


def test_equal_evaluations_show_no_change():
    """A night on which nothing happened is to say so."""
    assert changes(BEFORE, evaluation(at="later")) == []


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("scale", evaluation(rel_threshold=1)),
        ("scale", evaluation(only_retrieved=True)),
        ("judgments", evaluation(digests={"judgments": "j2"})),
        ("retriever", evaluation(digests={"rankings": "r2"})),
        ("failures", evaluation(n_failed=3)),
        ("tool", evaluation(tool_version="1.1")),
        (
            "judge",
            evaluation(
                digests={"judgments": "j2"},
                graders=(JUDGE.model_copy(update={"model": "judge-2"}),),
            ),
        ),
        (
            "prompts",
            evaluation(
                digests={"judgments": "j2", "prompts": "p2"},
                graders=(JUDGE.model_copy(update={"prompt_sha256": "cd"}),),
            ),
        ),
        (
            "corpus",
            evaluation(digests={"corpus": "c2", "rankings": "r2"}),
        ),
        (
            "items",
            evaluation(digests={"queries": "q2", "judgments": "j2", "rankings": "r2"}, n=51),
        ),
    ],
)
def test_what_changed_is_named_without_what_follows_from_it(what, now):
    """A list of everything that differs hides the one cause."""
    assert whats(now) == [what]


def test_the_weightiest_change_comes_first():
    """Whether two values can be compared at all is read first."""
    now = evaluation(
        digests={"corpus": "c2", "queries": "q2", "rankings": "r2"},
        rel_threshold=1,
        tool_version="1.1",
    )

    assert whats(now) == ["scale", "corpus", "items", "tool"]


def test_a_corpus_that_is_not_there_is_not_called_a_change():
    """Without chunks nobody knows whether they are others."""
    [change] = changes(BEFORE, evaluation(digests={"corpus": ""}))

    assert change.text == "The set now has no chunks: whether the corpus changed cannot be told."


def test_names_of_judges_cannot_steer_the_terminal():
    """The name of a model is data."""
    judge = JUDGE.model_copy(update={"model": "\x1b[31mred"})

    [change] = changes(BEFORE, evaluation(graders=(judge,)))

    assert change.text == "The judge changed: judge-1; now \\x1b[31mred."


def test_prompts_that_came_and_went_are_named():
    """A text that was judged alone by another prompt is no edit of a prompt."""
    batch, alone = (
        JUDGE.model_copy(update={"prompt": name, "prompt_sha256": name})
        for name in ("judge_relevance_batch", "judge_relevance")
    )
    ways = [(batch,), (batch, alone), (alone,)]
    first, second, third = (evaluation(graders=graders) for graders in ways)

    assert [
        changes(*pair)[0].text for pair in ((first, second), (second, first), (first, third))
    ] == [
        "The judge graded by judge_relevance, as it did not before.",
        "The judge graded by judge_relevance no more.",
        "The judge graded by judge_relevance, as it did not before, and by judge_relevance_batch "
        "no more.",
    ]


@pytest.mark.parametrize(
    ("diff", "low", "high", "verdict"),
    [
        (0.05, 0.01, 0.09, "IMPROVING"),
        (-0.05, -0.09, -0.01, "DEGRADING"),
        (0.01, -0.02, 0.04, "STABLE"),
        (0.2, None, None, "UNKNOWN"),
    ],
)
def test_a_trend_is_by_the_interval_of_the_same_items(diff, low, high, verdict):
    """A tiny rise is no improvement, and a rise of three items is nothing."""
    found = trend([BEFORE, bridged(diff, low, high)], "RR")

    assert (found.verdict, found.on, found.n, found.diff) == (verdict, "same items", 40, diff)


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.62, "STABLE"), (0.70, "IMPROVING"), (0.50, "DEGRADING"), (0.66, "STABLE")],
)
def test_where_all_items_are_the_same_the_intervals_of_both_means_decide(mean, verdict):
    """Values that are not kept any more cost the pairs, and not the verdict."""
    found = trend([BEFORE, evaluation(mean, digests={"rankings": "r2"})], "RR")

    assert (found.verdict, found.on) == (verdict, "all items")


@pytest.mark.parametrize(
    "fields",
    [
        {"digests": {"queries": "q2"}},
        {"digests": {"judgments": "j2"}},
        {"rel_threshold": 1},
        {"only_retrieved": True},
    ],
)
def test_a_changed_set_without_a_bridge_has_no_verdict(fields):
    """Easier questions or a milder judge must not pass for a better retriever."""
    found = trend([BEFORE, evaluation(0.9, **fields)], "RR")

    assert (found.verdict, found.low, found.high) == ("UNKNOWN", None, None)
    assert found.diff == pytest.approx(0.3)


def test_evaluations_by_other_measures_in_between_do_not_cost_the_trend():
    """Whoever looks at AP once must not lose what is said of RR."""
    between = evaluation(measures={"AP": {"mean": 0.9, "low": 0.8, "high": 1.0, "n": 50}}, at="1")
    now = evaluation(0.7, at="2", digests={"rankings": "r2"})

    found = trend([BEFORE, between, now], "RR")

    assert (found.verdict, found.since, found.until) == (
        "IMPROVING",
        BEFORE.evaluation_id,
        now.evaluation_id,
    )


def test_a_measure_that_the_newest_lacks_is_told_of_the_last_two_that_have_it():
    """Its history is asked for by name."""
    middle = evaluation(0.7, at="1", digests={"rankings": "r2"})
    last = evaluation(measures={"AP": {"mean": 0.9, "low": 0.8, "high": 1.0, "n": 50}}, at="2")

    found = trend([BEFORE, middle, last], "RR")

    assert (found.verdict, found.until) == ("IMPROVING", middle.evaluation_id)


def test_an_evaluation_by_other_measures_alone_is_a_repeat():
    """What changed is told of the evaluations between which something did."""
    new = {"digests": {"rankings": "r2"}}
    middle = evaluation(0.7, at="1", **new)
    by_other = {"AP": {"mean": 0.9, "low": 0.8, "high": 1.0, "n": 50}}

    found = run_history([BEFORE, middle, evaluation(measures=by_other, at="2", **new)], ["RR"])

    assert (found.before, found.now, found.n_repeats) == (BEFORE, middle, 1)
    assert found.trends[0].verdict == "IMPROVING"


def test_means_of_equal_values_are_not_certain():
    """Five of five says little about other queries, though its bootstrap has no spread."""
    perfect = evaluation(1.0, half=0.0, n=5)
    worse = evaluation(0.8, half=0.1, n=5, digests={"rankings": "r2"})

    assert trend([perfect, worse], "RR").verdict == "STABLE"


def test_failures_widen_the_interval():
    """What failed must not turn into a trend."""
    lost = MeasuredMean(mean=0.7, low=0.68, high=0.72, n=40, n_failed=10, least=0.56, most=0.76)

    found = trend([BEFORE, evaluation(measures={"RR": lost})], "RR")

    assert found.verdict == "STABLE"


def test_one_evaluation_has_no_trend():
    """There is nothing that it could have come from."""
    found = trend([BEFORE], "RR")

    assert (found.verdict, found.since, found.diff) == ("UNKNOWN", "", None)


@pytest.mark.parametrize(
    "now",
    [
        evaluation(0.9, rel_threshold=1),
        evaluation(0.9, measures={"AP": {"mean": 0.9, "low": 0.8, "high": 1.0, "n": 50}}),
    ],
)
def test_what_cannot_be_compared_has_no_trend(now):
    """Values of another scale or measure are no rise."""
    found = trend_of_means(BEFORE, now, "RR")

    assert (found.verdict, found.low) == ("UNKNOWN", None)


@pytest.mark.parametrize(
    ("now", "cause"),
    [
        (bridged(0.05, 0.01, 0.09, mean=0.65), "system"),
        (bridged(0.0, -0.02, 0.02, mean=0.65, digests={"queries": "q2"}), "set"),
        (bridged(0.0, -0.02, 0.02, mean=0.65, digests={"judgments": "j2"}), "judgments"),
        (bridged(0.05, 0.01, 0.09, mean=0.75, digests={"queries": "q2"}), "both"),
        (bridged(0.01, -0.02, 0.04, mean=0.61), "neither"),
        (bridged(0.01, None, None, mean=0.61), "unknown"),
        (evaluation(0.9), "unknown"),
    ],
)
def test_the_same_items_part_a_changed_system_from_a_changed_set(now, cause):
    """Easier queries must not pass for a better retriever."""
    assert moved(BEFORE, now, "RR").cause == cause


def losing(n_failed, mean, least, most):
    """Return an evaluation of BEFORE's set with failures, the rest as it was."""
    lost = MeasuredMean(
        mean=mean, low=mean, high=mean, n=50 - n_failed, n_failed=n_failed, least=least, most=most
    )
    same = BridgeMean(n=50 - n_failed, before=mean, now=mean, diff=0.0, low=-0.1, high=0.1)
    return evaluation(
        measures={"RR": lost},
        n_failed=n_failed,
        digests={"rankings": "r2"},
        bridge_to=BEFORE.evaluation_id,
        bridge={"RR": same},
    )


def test_failures_are_not_told_as_a_changed_set():
    """A retriever that fails on the hard queries leaves the mean of the easy ones."""
    now = losing(35, 0.95, 0.285, 0.985)

    assert moved(BEFORE, now, "RR").cause == "failures"


def test_failures_do_not_pass_for_a_changed_set_where_the_set_changed_too():
    """What failed could have come out so that the set made no difference."""
    now = losing(35, 0.95, 0.285, 0.985)
    now = now.model_copy(update={"digests": now.digests.model_copy(update={"queries": "q2"})})

    assert moved(BEFORE, now, "RR").cause == "failures"


def test_a_set_that_moved_further_than_failures_could_is_told():
    """One failure does not explain a fall by a third."""
    now = losing(1, 0.3, 0.294, 0.314)
    now = now.model_copy(update={"digests": now.digests.model_copy(update={"queries": "q2"})})

    assert moved(BEFORE, now, "RR").cause == "set"


def test_failures_alone_are_not_told_as_another_ranking():
    """The rankings that failed are not there; that says nothing of the others."""
    assert [item.what for item in changes(BEFORE, losing(35, 0.95, 0.285, 0.985))] == ["failures"]


@pytest.mark.parametrize(
    ("fields", "tail"),
    [
        ({}, "; the queries that did not fail came out as before."),
        (
            {"n_rescored": 40},
            "; by the grades of now the queries that did not fail are ranked as well as before.",
        ),
        ({"n_left_out": 4}, "; whether the other queries are ranked as before cannot be told."),
    ],
)
def test_what_did_not_fail_came_out_as_before_only_where_all_of_it_was_compared(fields, tail):
    """RR went from 0.467 to 0.867 by other grades, and 25 of 58 items were not compared."""
    now = losing(3, 0.6, 0.5, 0.7)
    same = now.bridge["RR"].model_copy(update=fields)
    [change] = changes(BEFORE, now.model_copy(update={"bridge": {"RR": same}}))

    assert change.text == f"Failures: 0 of 50 queries, now 3 of 50{tail}"


def test_a_run_that_a_refresh_brought_along_is_no_other_retriever():
    """Documents changed, and the rankings name the chunks of now: nobody ran a retriever."""
    digests = {"rankings": "r2", "mapped_to": "c2"}
    [change] = changes(BEFORE, evaluation(version=2, digests=digests))

    assert change.what == "corpus"
    assert "brought along to its chunks of now: no retriever was asked" in change.text


def test_other_rankings_of_another_version_are_not_laid_on_the_retriever_unproved():
    """Evaluations that were written before do not tell whether a run was brought along."""
    [change] = changes(BEFORE, evaluation(version=2, digests={"rankings": "r2"}))

    assert change.text == (
        "The rankings are others in version 2 of the set than in version 1: whether its chunks or "
        "the retriever changed cannot be told."
    )


def test_grades_of_another_source_are_told():
    """Sixty grades of a judge gave way to what quotes tell, and took the mean with them."""
    quotes = JUDGE.model_copy(update={"prompt": "generate_queries", "count": 60, "n_evidence": 60})
    fewer = JUDGE.model_copy(update={"count": 250})
    [change] = changes(BEFORE, evaluation(digests={"judgments": "j2"}, graders=(fewer, quotes)))

    assert change.text == (
        "The judgments changed: 300 before, 310 now; without a grade in the top 10 were 0 %, now "
        "0 %; by source: judge-1 300 and now 250, quotes in queries 0 and now 60; means may have "
        "moved by the grades alone."
    )


def test_same_items_with_other_grades_are_counted():
    """The mean of the same rankings moves with their grades."""
    now = bridged(0.0, -0.1, 0.1, digests={"judgments": "j2"})
    same = now.bridge["RR"].model_copy(update={"n_rescored": 33})
    [change] = changes(BEFORE, now.model_copy(update={"bridge": {"RR": same}}))

    assert "; the grades of 33 of 40 same items are others; means may have moved" in change.text


def test_failures_do_not_hide_that_the_rest_is_ranked_otherwise():
    """Two changes at once must not pass for one."""
    now = bridged(-0.2, -0.3, -0.1, n_failed=3, digests={"rankings": "r2"})

    assert [item.what for item in changes(BEFORE, now)] == ["retriever", "failures"]


def test_a_bridge_is_over_the_items_that_are_the_same():
    """An item whose relevant chunks changed is another item."""
    before = baseline([0.5] * 8 + [0.1], ["same"] * 8 + ["old"])
    now = baseline([0.6, 0.7] * 4 + [0.9], ["same"] * 8 + ["new"])

    found = bridge(before, now).means["RR"]

    assert (found.n, round(found.diff, 10)) == (8, 0.15)
    assert found.low is not None
    assert 0 < found.low < 0.15 < (found.high or 0)


def test_a_bridge_of_many_items_is_over_all_of_them():
    """They are read some at a time, and what is added up must not be that of the last ones."""
    n = 2500
    before, now = baseline([0.5] * n), baseline([0.5] * (n - 1) + [1.0])

    found = bridge(before, now).means["RR"]

    assert (found.n, found.diff, found.n_tied) == (n, 0.5 / n, n - 1)


def test_a_bridge_of_few_items_has_no_interval():
    """Two equal rises would otherwise look certain."""
    found = bridge(baseline([0.5, 0.5]), baseline([0.6, 0.6])).means["RR"]

    assert (found.low, found.high) == (None, None)


def test_a_bridge_on_which_nothing_moved_is_not_certain_either():
    """Six items that stayed as they were say little about others, where the rankings differ."""
    other = baseline([0.5] * 6, digests={"rankings": "other"})
    found = bridge(baseline([0.5] * 6), other).means["RR"]

    assert (found.diff, found.low) == (0.0, pytest.approx(-(1 - 0.025 ** (1 / 6))))


def test_a_bridge_of_the_same_rankings_is_an_identity():
    """An evaluation that is repeated did not move, however few its items are."""
    found = bridge(baseline([0.5, 0.7]), baseline([0.5, 0.7])).means["RR"]

    assert (found.diff, found.low, found.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("fields", [{"rel_threshold": 1}, {"only_retrieved": True}])
def test_there_is_no_bridge_between_other_scales(fields):
    """The same item has another value where other grades are relevant."""
    assert bridge(baseline([0.5] * 6), baseline([0.5] * 6, **fields)).means == {}


def test_there_is_no_bridge_without_common_items():
    """A mean of nothing is no 0."""
    assert bridge(baseline([0.5] * 6, ["old"] * 6), baseline([0.5] * 6)).means == {}


def test_repeats_are_one_step_with_what_it_cost_and_changed():
    """A month of nights without a change is one row."""
    spent = [
        {"calls": n, "prompt_tokens": 0, "completion_tokens": 0, "cost_usd": c}
        for n, c in ((10, 1.0), (10, 1.0), (14, 1.5))
    ]
    made = [
        evaluation(at="1", spent=spent[0]),
        evaluation(at="2", spent=spent[1]),
        evaluation(0.7, at="3", spent=spent[2], digests={"rankings": "r2"}),
    ]

    found = [
        (s.evaluation.at, s.count, s.calls, s.cost_usd, [c.what for c in s.changes])
        for s in steps(made)
    ]

    assert found == [("2", 2, None, None, []), ("3", 1, 4, 0.5, ["retriever"])]


def test_a_history_of_one_evaluation_says_so():
    """There is no change, no trend and nothing that moved."""
    found = run_history([BEFORE])

    assert (found.before, found.changes, found.moved) == (None, (), ())


def test_repeats_do_not_hide_what_changed_before_them():
    """Two quiet nights later the fall is still what is to be explained."""
    new = {"digests": {"rankings": "r2"}}
    fall = bridged(-0.2, -0.3, -0.1, mean=0.4, **new)

    found = run_history(
        [BEFORE, fall, evaluation(0.4, at="2", **new), evaluation(0.4, at="3", **new)]
    )

    assert ([item.what for item in found.changes], found.n_repeats) == (["retriever"], 2)
    assert found.trends[0].verdict == "DEGRADING"


def test_a_report_tells_the_trend_of_the_change_that_it_names():
    """Evaluated once more, a run that fell was STABLE on the page that said what had changed."""
    new = {"digests": {"rankings": "r2"}}
    fall = bridged(-0.2, -0.3, -0.1, mean=0.4, **new)
    history = History((BEFORE, fall, evaluation(0.4, at="2", **new)), ())

    [found] = trends(history, ["bm25"], "RR")

    assert (found.verdict, found.since, found.until) == (
        "DEGRADING",
        BEFORE.evaluation_id,
        fall.evaluation_id,
    )


OTHER_JUDGE = JUDGE.model_copy(update={"model": "judge-2"})


def test_a_bridge_past_another_judge_that_nobody_looked_at_is_unknown():
    """Versions before this one scored the earlier ranking on whatever grades there were."""
    now = bridged(0.2, 0.1, 0.3, graders=(OTHER_JUDGE,))

    found = trend([BEFORE, now], "RR")

    assert (found.verdict, found.diff, found.n) == ("UNKNOWN", None, 0)
    assert (moved(BEFORE, now, "RR").cause, moved(BEFORE, now, "RR").full) == ("unknown", None)


def test_a_bridge_on_grades_of_one_judge_stands_past_another_judge():
    """Both rankings were graded by the judge of now."""
    now = bridged(0.2, 0.1, 0.3, graders=(OTHER_JUDGE,), by_one_judge=True)

    assert trend([BEFORE, now], "RR").verdict == "IMPROVING"
    assert moved(BEFORE, now, "RR").cause == "system"


def test_equal_grades_of_several_judges_are_no_ground_for_a_trend():
    """The grades did not change, but those of the one ranking may be another judge's."""
    both = (JUDGE, OTHER_JUDGE)
    old, new = evaluation(0.4, graders=both), evaluation(0.6, graders=both)

    found = trend([old, new], "RR")

    assert (found.verdict, found.diff) == ("UNKNOWN", None)


def test_people_beside_a_judge_are_no_second_judge():
    """Their grades count beside those of any."""
    person = JUDGE.model_copy(update={"kind": "human", "model": "a person"})
    both = (JUDGE, person)
    old, new = evaluation(0.4, graders=both), evaluation(0.6, graders=both)

    assert trend([old, new], "RR").verdict == "IMPROVING"


def test_evidence_of_a_model_s_queries_is_no_second_judge():
    """Its grades follow from quotes, and are the same whoever judges."""
    writer = JUDGE.model_copy(update={"model": "writer", "count": 40, "n_evidence": 40})
    both = (JUDGE, writer)
    old, new = evaluation(0.4, graders=both), evaluation(0.6, graders=both)

    assert trend([old, new], "RR").verdict == "IMPROVING"


def spread(diff, sd, **fields):
    """Return the trend of a bridge over twenty items."""
    ends = {"low": diff - 0.1, "high": diff + 0.1, **fields}
    mean = BridgeMean(n=20, before=0.6, now=0.6 + diff, diff=diff, sd=sd, **ends)
    now = evaluation(bridge_to=BEFORE.evaluation_id, bridge={"RR": mean})
    return trend([BEFORE, now], "RR")


def test_a_verdict_that_is_open_says_how_many_items_it_needs():
    """Half a standard deviation takes 34 pairs, a whole one 10 (G*Power, paired t, 80 %)."""
    assert queries_needed_by(spread(0.05, 0.1), 0.1) == QueriesNeeded(34, 0.1, 10, False)


def test_a_difference_of_nothing_needs_no_number_of_items():
    """None would ever show it."""
    assert queries_needed_by(spread(0.0, 0.1), 0.05) == QueriesNeeded(None, 0.05, 34, False)


def test_failures_that_keep_a_verdict_open_are_not_mended_by_more_items():
    """A whole standard deviation takes 10, and there are 20: their number is not what lacks."""
    found = queries_needed_by(spread(0.1, 0.1, low=-0.3, high=0.5), 0.05)

    assert found == QueriesNeeded(None, 0.05, 34, False)


def test_items_that_mostly_tie_tell_little_of_the_spread():
    """Eleven of twenty did not move at all."""
    assert queries_needed_by(spread(0.05, 0.1, n_tied=11), 0.1).is_lower_end


@pytest.mark.parametrize(
    "found",
    [spread(0.05, 0.02, low=0.01, high=0.09), spread(0.05, None), spread(0.0, 0.0)],
    ids=["shown", "of before", "no spread"],
)
def test_nothing_is_said_where_nothing_lacks_or_nothing_is_known(found):
    """A number without a ground would be taken for one with."""
    assert queries_needed_by(found, 0.05) is None


def test_a_bridge_keeps_the_spread_of_its_differences():
    """Differences 0, 0, 0, .1 and -.1: the root of .02 over 4."""
    [mean] = bridge(
        baseline([0.5] * 5), baseline([0.5, 0.5, 0.5, 0.6, 0.4], digests={"rankings": "r2"})
    ).means.values()

    assert (mean.sd, mean.n_tied) == (pytest.approx(0.0707106781), 3)


def of_sample(sizes):
    """Return the selection of 12 queries from strata of some sizes."""
    strata = tuple(Stratum(stratum=name, n_queries=n, n_drawn=6) for name, n in sizes.items())
    return Selection(sample=12, seed=1, by="category", strata=strata)


def test_a_set_that_grew_is_a_change_of_what_a_sample_stands_for():
    """The queries drawn and their values are the same; A weighed 30 of 40, and weighs 35 of 60."""
    before = evaluation(n=12, selection=of_sample({"A": 30, "B": 10}))
    now = evaluation(n=12, selection=of_sample({"A": 35, "B": 25}))

    [change] = changes(before, now)

    assert change.what == "items"
    assert change.text == (
        "The items changed: those of the sample are the same 12 queries, but they stood for 40 and "
        "now for 60; weights: A 0.750, now 0.583; B 0.250, now 0.417."
    )


def test_the_mean_of_all_items_has_no_interval_over_other_weights():
    """It mixes a changed system and a changed set."""
    before = evaluation(n=12, selection=of_sample({"A": 30, "B": 10}))
    now = evaluation(0.7, n=12, selection=of_sample({"A": 35, "B": 25}))

    assert trend_of_means(before, now, "RR").verdict == "UNKNOWN"
