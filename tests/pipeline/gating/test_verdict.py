from dataclasses import replace

import pytest
from ranked_sets import FAILED, JUDGE, MOCK, NOWHERE, OFFLINE, ranked_set

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.gate import Rules, Threshold
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.pipeline.gating.refusals import shared_items
from ragforge.pipeline.gating.verdict import check_run, evaluate_for
from ragforge.records import Hit, Judgment, Query

HALF_SECOND = [1] * 15 + [2] * 15
"""Reciprocal ranks 1 and 0.5: a mean of 0.75."""
OTHER_HALF = [2] * 15 + [1] * 15
"""The same mean; differences of half a point either way."""


def least(value, **rules):
    return Rules(least=(Threshold("RR", value),), **rules)


def drop(value, **rules):
    return Rules(drops=(Threshold("RR", value),), **rules)


@pytest.fixture
def gate(tmp_path):
    """Hold the second of two lists of ranks against the first, or one list against thresholds."""

    def decide(rules, now, before=None, allowed=(), **made):
        dataset = ranked_set(tmp_path / "set", {"now": now, "before": before or now}, **made)
        baseline = evaluate_for(rules, dataset, "before", EvaluateSettings()).baseline
        run = evaluate_for(rules, dataset, "now", EvaluateSettings())
        return check_run(dataset, run, rules, baseline if before else None, allowed)

    return decide


def outcome(verdict):
    return verdict.outcome, [check.outcome for check in verdict.checks]


def test_a_mean_passes_by_the_low_end_of_its_interval(gate):
    """By hand: 10 of 30 first ranks is the 2.5 % quantile of Binomial(30, 1/2), a mean of 2/3."""
    assert gate(least(0.6666), HALF_SECOND).checks[0].decided == pytest.approx(2 / 3)


def test_a_threshold_at_the_low_end_is_held(gate):
    """The bound itself belongs to what is allowed."""
    assert outcome(gate(least(0.6666), HALF_SECOND)) == ("PASS", ["PASS"])


def test_a_mean_whose_interval_holds_the_threshold_in_part_is_not_shown(gate):
    """Another choice of such queries could have come out below."""
    assert outcome(gate(least(0.67), HALF_SECOND)) == ("NOT_SHOWN", ["NOT_SHOWN"])


def test_a_mean_whose_whole_interval_is_below_fails(gate):
    """By hand: 20 of 30 first ranks is the 97.5 % quantile of Binomial(30, 1/2), a mean of 5/6."""
    verdict = gate(least(0.8334), HALF_SECOND)

    assert outcome(verdict) == ("FAIL", ["FAIL"])
    assert verdict.checks[0].text == ("RR is 0.7500, and at best 0.8333, which is below 0.8334.")
    assert outcome(gate(least(0.8332), HALF_SECOND)) == ("NOT_SHOWN", ["NOT_SHOWN"])


def test_what_is_not_shown_passes_unless_it_is_to_stop_the_run(gate):
    """Small sets leave most questions open; whose build is red for that is the user's choice."""
    open_, strict = (
        gate(least(0.8, fail_on=fail_on), HALF_SECOND) for fail_on in ("regression", "not-shown")
    )

    assert (open_.outcome, open_.passed, open_.is_shown) == ("NOT_SHOWN", True, False)
    assert (strict.outcome, strict.passed) == ("NOT_SHOWN", False)
    assert open_.sentence == (
        "NOT SHOWN either way by these queries: min RR; the run passes; `--fail-on not-shown` "
        "would stop it."
    )


def test_many_failed_queries_show_a_mean_that_is_too_low(gate):
    """A retriever that fails on half of the queries is broken, and no open question."""
    assert outcome(gate(least(0.8), [1] * 30 + [FAILED] * 30)) == ("FAIL", ["FAIL"])


def test_a_drop_that_is_one_for_sure_fails_where_it_may_be_too_large(gate):
    """The interval leaves out no drop at all, and holds more than is allowed."""
    verdict = gate(drop(0.2), [1] * 20 + [2] * 10, [1] * 30)

    assert outcome(verdict) == ("FAIL", ["FAIL"])
    assert "a drop by its whole interval" in verdict.checks[0].text


def test_a_drop_that_is_surely_small_enough_passes(gate):
    """A drop that is shown, and shown to be allowed, is allowed."""
    assert outcome(gate(drop(0.45), [1] * 20 + [2] * 10, [1] * 30)) == ("PASS", ["PASS"])


def test_items_that_cannot_be_compared_show_no_drop(gate, monkeypatch):
    """They may have dropped, so that no drop is ruled out; that they did is not seen."""
    rules = drop(0.01)
    left_out = {"RR": {f"new{n}": (1.0, 0.0) for n in range(30)}}
    monkeypatch.setattr(
        "ragforge.pipeline.gating.verdict.shared_items",
        lambda *given, **how: replace(shared_items(*given, **how), left_out=left_out),
    )

    verdict = gate(
        rules, [1] * 20 + [2] * 5 + [1] * 5, [1] * 20 + [1] * 5 + [2] * 5, ["dataset-change"]
    )
    bounded = gate(rules, [1] * 20 + [2] * 5 + [1] * 5, [1] * 20 + [1] * 5 + [2] * 5)

    assert verdict.outcome == "NOT_SHOWN"
    assert bounded.outcome in ("NOT_SHOWN", "REFUSED")
    assert bounded.checks[0].decided < verdict.checks[0].decided


def test_by_point_the_mean_decides(gate):
    """Who owns all queries there are need not think of others."""
    assert outcome(gate(least(0.75, by_point=True), HALF_SECOND)) == ("PASS", ["PASS"])


def test_by_point_a_lower_mean_fails(gate):
    """The naive rule is a rule too."""
    assert outcome(gate(least(0.751, by_point=True), HALF_SECOND)) == ("FAIL", ["FAIL"])


def test_values_without_spread_do_not_hold_their_own_mean(gate):
    """By hand: 30 alike are seen 1 in 40 times where 0.025 ** (1 / 30) of all queries are so."""
    [check] = gate(least(1.0), [1] * 30).checks

    assert (check.outcome, check.decided) == ("NOT_SHOWN", pytest.approx(0.025 ** (1 / 30)))


def test_by_point_values_without_spread_hold_their_own_mean(gate):
    """A threshold that is met to the last digit is met."""
    assert outcome(gate(least(0.5, by_point=True), [2] * 30)) == ("PASS", ["PASS"])


def test_a_failed_query_counts_at_its_worst(gate):
    """By hand: the mean with one 0 more is 21.5 / 30; a failure must never help."""
    rules = least(0.72, by_point=True)

    check = gate(rules, [*OTHER_HALF[:29], FAILED]).checks[0]

    assert (check.value, check.decided) == (pytest.approx(21.5 / 29), pytest.approx(21.5 / 30))


def test_a_mean_that_only_failures_lower_is_not_shown(gate):
    """Every query that has a value is perfect, so that the interval alone would pass."""
    verdict = gate(least(0.99), [1] * 29 + [FAILED])

    assert verdict.checks[0].decided_on == "low end of the interval, failures at their worst"
    assert outcome(verdict) == ("NOT_SHOWN", ["NOT_SHOWN"])


def test_a_failed_judgment_counts_at_its_worst(tmp_path):
    """The chunk on rank 1 may have been irrelevant, or the one above the relevant one relevant."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    failed = Judgment(
        query_id="q000", chunk_id="right", grade=None, failure="refused", provenance=JUDGE
    )
    dataset.write_judgments(
        [
            failed,
            *(j for j in dataset.judgments() if (j.query_id, j.chunk_id) != ("q000", "right")),
        ]
    )
    rules = least(0.97, by_point=True)
    run = evaluate_for(rules, dataset, "now", EvaluateSettings())

    assert check_run(dataset, run, rules).checks[0].decided == pytest.approx(29 / 30)


def test_a_drop_is_ruled_out_by_the_low_end_of_the_paired_difference(gate):
    """By hand: t(0.975, 29) = 2.04523 times 0.5 / sqrt(29) is 0.18990."""
    check = gate(drop(0.19), OTHER_HALF, HALF_SECOND).checks[0]

    assert (check.value, check.decided) == (0.0, pytest.approx(-0.18990, abs=1e-5))


def test_a_drop_within_what_is_allowed_passes(gate):
    """Its interval ends before it."""
    assert outcome(gate(drop(0.19), OTHER_HALF, HALF_SECOND)) == ("PASS", ["PASS"])


def test_a_drop_that_is_not_ruled_out_is_not_shown(gate):
    """No drop was found, but one as large was not ruled out either."""
    assert outcome(gate(drop(0.1898), OTHER_HALF, HALF_SECOND)) == ("NOT_SHOWN", ["NOT_SHOWN"])


def test_by_point_the_mean_difference_decides(gate):
    """The naive rule sees no drop."""
    rules = drop(0.0, by_point=True)

    assert outcome(gate(rules, OTHER_HALF, HALF_SECOND)) == ("PASS", ["PASS"])


def test_by_point_a_larger_mean_drop_fails(gate):
    """One query of 30 from rank 1 to 2 is a drop of 1/60."""
    rules = drop(0.016, by_point=True)

    assert outcome(gate(rules, [1] * 29 + [2], [1] * 30)) == ("FAIL", ["FAIL"])


@pytest.mark.parametrize(("n_fallen", "expected"), [(4, "NOT_SHOWN"), (6, "FAIL")])
def test_a_drop_is_shown_where_a_comparison_shows_it(gate, n_fallen, expected):
    """By hand: four falls of 30 come by chance in 1 of 8 cases, six in 1 of 32.

    The interval of four leaves 0 out, so that the gate failed a run that `compare` calls a TIE.
    """
    verdict = gate(drop(0.02), [NOWHERE] * n_fallen + [1] * (30 - n_fallen), [1] * 30)

    [check] = verdict.checks
    assert check.high < 0
    assert outcome(verdict) == (expected, [expected])
    assert ("the test finds none (p 0.125)" in check.text) == (n_fallen == 4)


def test_the_same_run_passes_any_drop(gate):
    """No difference at all is certain."""
    assert outcome(gate(drop(0.0), HALF_SECOND, HALF_SECOND)) == ("PASS", ["PASS"])


def test_a_query_that_failed_now_counts_as_fallen_to_nothing(gate):
    """By hand: 29 ties and one fall from 1 to 0; without it the run would look the same."""
    check = gate(drop(0.02, by_point=True), [1] * 29 + [FAILED], [1] * 30).checks[0]

    assert (check.value, check.decided) == (0.0, pytest.approx(-1 / 30))


def test_a_query_that_failed_in_the_baseline_counts_as_perfect_there(gate):
    """By hand: 29 ties and one fall from 1 to 1/2; a broken baseline is no low bar."""
    check = gate(drop(0.01, by_point=True), [2] * 30, [2] * 29 + [FAILED]).checks[0]

    assert check.decided == pytest.approx(-1 / 60)


def test_a_query_that_failed_in_the_baseline_alone_may_have_fallen_to_its_value_now(gate):
    """By hand: where the baseline was down on what the run is bad at, nothing shows no drop."""
    check = gate(
        drop(0.3, by_point=True), [1] * 30 + [NOWHERE] * 20, [1] * 30 + [FAILED] * 20
    ).checks[0]

    assert (check.decided, check.outcome) == (pytest.approx(-0.4), "FAIL")


def test_queries_that_failed_in_both_runs_count_at_their_worst(gate):
    """By hand: 30 ties, and 20 that may have fallen from 1 to 0 as far as anybody knows."""
    check = gate(
        drop(0.12, by_point=True), [1] * 30 + [FAILED] * 20, [1] * 30 + [FAILED] * 20
    ).checks[0]

    assert (check.decided, check.outcome) == (pytest.approx(-0.4), "FAIL")


def test_queries_that_failed_in_both_runs_show_no_drop(gate):
    """Nothing is known of them: neither that the run is no worse, nor that it is."""
    ranks = [1] * 30 + [FAILED] * 20
    verdict = gate(drop(0.12), ranks, [2, *ranks[1:]])

    assert outcome(verdict) == ("NOT_SHOWN", ["NOT_SHOWN"])


def test_as_many_queries_count_at_their_worst_as_failed_in_the_baseline(tmp_path):
    """A query that is new since then, and fails, has fallen from nothing."""
    rules = drop(0.1, by_point=True)
    ranks = [1] * 30 + [FAILED]
    dataset = ranked_set(tmp_path / "set", {"now": ranks})
    before = evaluate_for(rules, dataset, "now", EvaluateSettings()).baseline
    dataset = ranked_set(tmp_path / "set", {"now": [*ranks, FAILED, FAILED]})
    run = evaluate_for(rules, dataset, "now", EvaluateSettings())
    verdict = check_run(dataset, run, rules, before, ("dataset-change",))

    assert verdict.checks[0].decided == pytest.approx(-1 / 31)


def test_failures_up_to_the_share_pass(gate):
    """One of 50 is 2 %."""
    rules = Rules(max_failures=0.02)

    assert outcome(gate(rules, [1] * 49 + [FAILED])) == ("PASS", ["PASS"])


def test_failures_beyond_the_share_fail(gate):
    """Two of 50 are 4 %."""
    rules = Rules(max_failures=0.03)

    assert outcome(gate(rules, [1] * 48 + [FAILED] * 2)) == ("FAIL", ["FAIL"])


def test_a_query_without_a_hit_is_no_failure(gate):
    """It is a value of 0, which the means hold."""
    rules = Rules(max_failures=0.0)

    assert outcome(gate(rules, [1] * 29 + [NOWHERE])) == ("PASS", ["PASS"])


def test_one_failing_check_fails_the_gate(gate):
    """All of them must hold."""
    rules = Rules(least=(Threshold("RR", 0.5), Threshold("nDCG@10", 0.99)))

    assert outcome(gate(rules, HALF_SECOND)) == ("FAIL", ["PASS", "FAIL"])


def test_a_failed_check_says_what_so_many_queries_can_show(gate):
    """Whoever reads FAIL must know whether the system or the set is too small."""
    power = gate(drop(0.1), OTHER_HALF, HALF_SECOND).checks[0].power

    assert (power.detectable, power.wanted) == (pytest.approx(0.264, abs=5e-3), 0.1)


def test_power_does_not_depend_on_the_difference_found(gate):
    """The power for what was found is only its p value in other words."""
    fallen = gate(drop(0.1), [rank + 1 for rank in OTHER_HALF], [1] * 15 + [2] * 15)
    higher = gate(drop(0.1), [1] * 30, [2] * 15 + [4] * 15)

    assert fallen.checks[0].power is not None
    assert higher.checks[0].power is None


def test_a_check_that_passed_clearly_says_nothing_of_power(gate):
    """There is nothing to be done."""
    assert gate(least(0.1), HALF_SECOND).checks[0].power is None


def test_a_check_that_nearly_failed_says_what_so_many_queries_can_show(gate):
    """The next run of the same system may fail it."""
    assert gate(least(0.66), HALF_SECOND).checks[0].power.n_more == 108


def test_no_mean_is_said_to_be_shown_that_the_interval_does_not_reach(gate):
    """By their spread 30 such queries would show 0.080; the interval reaches further down."""
    [check] = gate(least(0.84), [1] * 27 + [2] * 3).checks

    assert check.power.detectable > check.value - check.low > 0.12


def test_power_is_not_of_means_that_cannot_be(gate):
    """Thirty queries of 1 and 0.5 would show means 0.135 above 0.95, so 1.085."""
    [check] = gate(least(0.95), HALF_SECOND).checks

    assert (check.outcome, check.power) == ("FAIL", None)


def test_where_the_mean_decides_there_is_no_power(gate):
    """What other queries could have come to is not asked there."""
    assert gate(least(0.751, by_point=True), HALF_SECOND).checks[0].power is None
    assert gate(drop(0.0, by_point=True), OTHER_HALF, HALF_SECOND).checks[0].power is None


def test_few_queries_refuse_the_gate(gate):
    """A dozen queries order systems by chance."""
    verdict = gate(least(0.1), [1] * 24)

    assert outcome(verdict) == ("REFUSED", ["OPEN"])
    assert [item.flag for item in verdict.refusals] == ["--allow-few"]


def test_few_queries_may_be_allowed(gate):
    """A smoke test needs no statistics; the verdict says what was allowed."""
    verdict = gate(least(0.1), [1] * 24, allowed=["few"])

    assert outcome(verdict) == ("PASS", ["PASS"])
    assert verdict.notes[0].startswith("allowed by --allow-few: 24 queries have a value")


def test_as_many_queries_as_asked_for_are_enough(gate):
    """The least number is part of the rules."""
    assert gate(least(0.1, min_queries=24), [1] * 24).outcome == "PASS"


def test_one_query_decides_nothing(gate):
    """It has no interval, which is no interval without width."""
    verdict = gate(least(0.1), [1], allowed=["few"])

    assert outcome(verdict) == ("NOT_SHOWN", ["NOT_SHOWN"])
    assert verdict.checks[0].text == "RR is 1.0000, of 1 query: too few for an interval."


def test_one_item_in_common_decides_nothing(gate):
    """Likewise for differences."""
    verdict = gate(drop(0.5), [1], [1], allowed=["few"])

    assert outcome(verdict) == ("NOT_SHOWN", ["NOT_SHOWN"])


def test_all_failed_fails(gate):
    """No value is no 0, and no pass."""
    rules = Rules(least=(Threshold("RR", 0.0),), min_queries=1)
    verdict = gate(rules, [FAILED] * 30, allowed=["few"])

    assert outcome(verdict) == ("FAIL", ["FAIL"])
    assert verdict.checks[0].text == "No query has a value."


def test_holes_refuse_the_gate(gate):
    """A new retriever finds what nobody judged, and would be punished for it."""
    verdict = gate(least(0.1), [1] * 30, n_unjudged=2)

    assert verdict.outcome == "REFUSED"
    assert [item.flag for item in verdict.refusals] == ["--allow-holes"]


def test_holes_may_be_allowed(gate):
    """Their bounds are in the report."""
    assert gate(least(0.1), [1] * 30, n_unjudged=2, allowed=["holes"]).outcome == "PASS"


def test_holes_up_to_the_share_are_taken(gate):
    """One of four retrieved chunks has no grade."""
    assert gate(least(0.1, max_holes=0.25), [1] * 30, n_unjudged=2).outcome == "PASS"


def test_the_offline_judge_refuses_the_gate(gate):
    """It compares words; on human labels it is near chance."""
    verdict = gate(least(0.1), [1] * 30, judge=OFFLINE)

    assert [item.flag for item in verdict.refusals] == ["--allow-baseline-judge"]


@pytest.fixture
def partly_offline(tmp_path):
    """Gate on a run whose judgments are the offline judge's but for some of people's."""

    def decide(n_human):
        dataset = ranked_set(tmp_path / "set", {"now": [1] * 30}, judge=OFFLINE)
        judgments = dataset.judgments()
        dataset.write_judgments(
            judgment.model_copy(update={"source": "human", "provenance": None})
            if index < n_human
            else judgment
            for index, judgment in enumerate(judgments)
        )
        run = evaluate_for(least(0.1), dataset, "now", EvaluateSettings())
        return check_run(dataset, run, least(0.1))

    return decide


@pytest.mark.parametrize("n_human", [1, 74])
def test_mostly_offline_grades_refuse_the_gate(partly_offline, n_human):
    """One human grade among 149 must not lend them its weight."""
    verdict = partly_offline(n_human)

    assert [item.flag for item in verdict.refusals] == ["--allow-baseline-judge"]


def test_up_to_half_of_the_grades_may_be_offline_ones(partly_offline):
    """A hole filled by a rule is better than none; the note says how many there are."""
    verdict = partly_offline(75)

    assert verdict.passed
    assert "50.0 % of the grades (75 of 150) are of the offline baseline judge" in verdict.notes


def test_a_mock_refuses_the_gate(gate):
    """A rehearsal must not ship anything."""
    verdict = gate(least(0.1), [1] * 30, judge=MOCK)

    assert [item.flag for item in verdict.refusals] == ["--allow-baseline-judge"]
    assert "100.0 % of the grades (150 of 150) are made up by ragforge mock" in (
        verdict.refusals[0].reason
    )


@pytest.fixture
def partly_offline_drop(tmp_path):
    """Hold a run against the one before; the offline judge gave one grade of many."""

    def decide(now, before):
        dataset = ranked_set(tmp_path / "set", {"now": now, "before": before}, judge=JUDGE)
        first, *rest = dataset.judgments()
        dataset.write_judgments([first.model_copy(update={"provenance": OFFLINE}), *rest])
        rules = drop(0.5)
        baseline = evaluate_for(rules, dataset, "before", EvaluateSettings()).baseline
        run = evaluate_for(rules, dataset, "now", EvaluateSettings())
        return check_run(dataset, run, rules, baseline)

    return decide


def test_no_drop_is_told_on_grades_by_shared_words(partly_offline_drop):
    """Nobody knows how much of a difference one of them makes."""
    verdict = partly_offline_drop([1] * 30, [2] * 30)

    assert [item.reason for item in verdict.refusals] == [
        "the drop is told in part (1 of 150 grades) by shared words, which says nothing about "
        "quality"
    ]


def test_the_same_rankings_fell_by_nothing_whoever_graded(partly_offline_drop):
    """There is no difference to be told."""
    assert partly_offline_drop([1] * 30, [1] * 30).passed


def test_the_offline_judge_may_be_allowed(gate):
    """The first gate of a project is to run without a key."""
    assert gate(least(0.1), [1] * 30, judge=OFFLINE, allowed=["baseline-judge"]).passed


def test_grades_of_people_are_taken(gate):
    """They are the truth that judges are held against."""
    assert gate(least(0.1), [1] * 30, judge=None).passed


@pytest.fixture
def against(tmp_path):
    """Hold a run against a baseline made on another state of the dataset."""

    def decide(change, rules=None, allowed=(), n=30):
        rules = rules or drop(0.0)
        dataset = ranked_set(tmp_path / "set", {"now": [1] * n})
        baseline = evaluate_for(rules, dataset, "now", EvaluateSettings()).baseline
        change(dataset)
        run = evaluate_for(rules, dataset, "now", EvaluateSettings())
        return check_run(dataset, run, rules, baseline, allowed)

    return decide


def ask_otherwise(n):
    def change(dataset):
        queries = dataset.all_queries()
        dataset.write_queries(
            [
                *(Query(query_id=query.query_id, query="Why so?") for query in queries[:n]),
                *queries[n:],
            ]
        )

    return change


def rename(dataset):
    dataset.write_manifest(dataset.manifest.model_copy(update={"name": "another"}))


def judge_again(**provenance):
    def change(dataset):
        other = JUDGE.model_copy(update=provenance)
        dataset.write_judgments(
            judgment.model_copy(update={"provenance": other}) for judgment in dataset.judgments()
        )

    return change


def test_a_baseline_of_other_items_refuses_the_gate(against):
    """A new set may be easier; the difference would be called progress."""
    verdict = against(ask_otherwise(2))

    assert [item.flag for item in verdict.refusals] == ["--allow-dataset-change"]
    assert outcome(verdict) == ("REFUSED", ["OPEN"])


def test_it_is_said_how_many_items_differ(against):
    """Two versions, or two numbers of queries, tell nobody what is comparable."""

    def change(dataset):
        ask_otherwise(2)(dataset)
        new = Query(query_id="q999", query="What is new?")
        dataset.write_queries([*dataset.all_queries()[:-1], new])
        grade = Judgment(
            query_id="q999", chunk_id="right", grade=3, source="judge", provenance=JUDGE
        )
        dataset.write_judgments([*dataset.judgments(), grade])

    verdict = against(change)

    assert [item.reason for item in verdict.refusals] == [
        "the baseline is of other items: 27 items the same, 2 changed, 1 new, 1 gone or failed"
    ]
    assert [item.text for item in verdict.changes if item.what == "items"] == [
        "The items changed: 30 queries, now 30; 27 are the same, 3 gone or changed, "
        "3 new or changed."
    ]


def test_a_baseline_of_other_items_is_compared_on_equal_ones(against):
    """They alone separate a changed system from a changed set."""
    verdict = against(ask_otherwise(2), allowed=["dataset-change"])

    assert (verdict.outcome, verdict.checks[0].n) == ("PASS", 28)
    assert "2 items are not as in the baseline (or new), and left out of differences" in (
        verdict.notes
    )


def test_too_few_equal_items_refuse_the_gate(against):
    """What was allowed is another set, and not a handful of queries."""
    verdict = against(ask_otherwise(6), allowed=["dataset-change"])

    assert [item.reason for item in verdict.refusals] == [
        "24 items are the same as in the baseline; at least 25 are needed (--min-queries)"
    ]


def test_no_equal_item_refuses_the_gate_whatever_is_allowed(against):
    """There is nothing to compare."""
    verdict = against(ask_otherwise(30), allowed=["dataset-change", "few"])

    assert [(item.reason[:33], item.flag) for item in verdict.refusals] == [
        ("no item is the same as in the bas", "")
    ]


def test_a_baseline_of_another_dataset_refuses_the_gate(against):
    """Equal queries do not make equal corpora."""
    verdict = against(rename)

    assert [item.flag for item in verdict.refusals] == ["--allow-dataset-change"]


@pytest.mark.parametrize("other", [{"model": "judge-2"}, {"prompt_sha256": "cd" * 32}])
def test_a_baseline_of_another_judge_refuses_the_gate(against, other):
    """A milder judge looks like a better system."""
    verdict = against(judge_again(**other))

    assert [item.flag for item in verdict.refusals] == ["--allow-grading-change"]


def test_a_baseline_of_another_judge_may_be_allowed(against):
    """Somebody may know that the two agree."""
    assert against(judge_again(model="judge-2"), allowed=["grading-change"]).passed


def test_a_baseline_with_another_threshold_refuses_the_gate(tmp_path):
    """Relevant then meant something else."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    rules = drop(0.0)
    baseline = evaluate_for(rules, dataset, "now", EvaluateSettings()).baseline
    run = evaluate_for(rules, dataset, "now", EvaluateSettings(rel_threshold=3))

    verdict = check_run(dataset, run, rules, baseline)

    assert [item.reason for item in verdict.refusals] == [
        "relevant meant grade 2 or above in the baseline, and means 3 or above here"
    ]


def test_a_baseline_that_left_out_queries_refuses_the_gate(tmp_path):
    """Its mean is over other queries."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    rules = drop(0.0)
    [other] = evaluate_runs(dataset, ["now"], EvaluateSettings(), only_retrieved=True)

    verdict = check_run(
        dataset, evaluate_for(rules, dataset, "now", EvaluateSettings()), rules, other.baseline
    )

    assert [item.reason for item in verdict.refusals] == [
        "queries that the run lacks were left out on one side, and count 0 on the other"
    ]


def test_a_baseline_without_the_measure_is_an_error(tmp_path):
    """The message must say what it has, and how to make it anew."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    run = evaluate_for(drop(0.0), dataset, "now", EvaluateSettings())
    rules = Rules(drops=(Threshold("ERR(max=3)@10", 0.1),))

    more = evaluate_for(rules, dataset, "now", EvaluateSettings())

    with pytest.raises(DataError, match=r"has no ERR\(max=3\)@10; it has: nDCG@10.*anew"):
        check_run(dataset, more, rules, run.baseline)


def test_a_run_without_the_measure_is_an_error(tmp_path):
    """Who evaluates by hand may have forgotten it."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    run = evaluate_for(Rules(), dataset, "now", EvaluateSettings(measures=("RR",)))

    with pytest.raises(UsageError, match="measure 'AP' was not computed; there are: RR"):
        check_run(dataset, run, Rules(least=(Threshold("AP", 0.1),)))


def test_measures_of_rules_are_evaluated_with_those_asked_for(tmp_path):
    """Nobody should have to name a measure twice."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    rules = Rules(least=(Threshold("P@3", 0.1),), drops=(Threshold("AP@7", 0.1),))

    run = evaluate_for(rules, dataset, "now", EvaluateSettings(measures=("RR",)))

    assert list(run.evaluation.measures) == ["RR", "P@3", "AP@7"]


def test_the_queries_that_fell_most_come_first(gate):
    """They are where to look."""
    verdict = gate(drop(0.5), [1, 3, 2] + [1] * 27, [1, 1, 1] + [2] * 27)

    assert [(item.query_id, item.value_b) for item in verdict.fallen] == [
        ("q001", pytest.approx(1 / 3)),
        ("q002", 0.5),
    ]


def test_without_checks_only_refusals_are_looked_at(gate):
    """That is what writing a baseline asks for, and it is no pass of anything."""
    verdict = gate(Rules(), [1] * 30)

    assert (verdict.outcome, verdict.checks, verdict.passed) == ("UNCHECKED", (), True)


@pytest.mark.parametrize(
    ("rules", "measure"),
    [
        (
            Rules(
                least=(Threshold("R@10", 0.1),),
                drops=(Threshold("Success@5", 0.5), Threshold("RR", 0.1)),
            ),
            "RR",
        ),
        (Rules(least=(Threshold("R@10", 0.1),), drops=(Threshold("RR", 0.9),)), "R@10"),
    ],
)
def test_queries_that_fell_are_listed_by_what_failed(gate, rules, measure):
    """Of a failed drop one looks for the queries that caused it."""
    assert gate(rules, [2] * 30, [1] * 30).fallen_by == measure


def sized():
    return Rules(drops=(Threshold("RR", 0.0, is_sized=True),))


def test_a_sized_drop_is_the_least_that_the_items_can_rule_out(gate):
    """By its definition: 2.8 standard errors, where an interval reaches 1.96 of them."""
    verdict = gate(sized(), OTHER_HALF, HALF_SECOND)
    [check] = verdict.checks

    assert outcome(verdict) == ("PASS", ["PASS"])
    assert check.is_sized
    assert check.threshold == pytest.approx((check.value - check.low) * 2.8015 / 1.96, rel=1e-3)
    assert check.text.endswith("is ruled out, the least that so many can rule out.")


def test_a_sized_drop_does_not_let_a_drop_pass(gate):
    """What is shown to be worse fails, however wide its interval is."""
    assert outcome(gate(sized(), [2] * 20 + [1] * 10, [1] * 30)) == ("FAIL", ["FAIL"])
    assert outcome(gate(sized(), [2] * 3 + [1] * 27, [1] * 30))[0] == "NOT_SHOWN"


def test_nothing_may_be_lost_where_nothing_differs(gate):
    """The same rankings rule out any drop."""
    [check] = gate(sized(), HALF_SECOND, HALF_SECOND).checks

    assert (check.outcome, check.threshold) == ("PASS", 0.0)


def test_queries_that_the_run_lacks_are_told(tmp_path):
    """Each counts 0: whoever reads FAIL looks for a worse retriever."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30})
    dataset.write_run("half", list(dataset.run("now"))[:15])
    run = evaluate_for(least(0.9), dataset, "half", EvaluateSettings())

    verdict = check_run(dataset, run, least(0.9), None, ())

    assert verdict.outcome == "FAIL"
    assert "the run lacks 15 of 30 queries, which count 0" in verdict.notes


def test_a_drop_that_may_be_of_chunks_without_a_grade_says_so(tmp_path):
    """The run is as good, but for texts on top that nobody looked at."""
    dataset = ranked_set(tmp_path / "set", {"now": [1] * 30, "before": [1] * 30})
    rules = Rules(drops=(Threshold("P@1", 0.1),))
    before = evaluate_for(rules, dataset, "before", EvaluateSettings()).baseline

    def below(ranking):
        hits = (Hit(chunk_id="other", score=99.0), *ranking.ranking)
        return ranking.model_copy(update={"ranking": hits})

    rankings = [below(item) if n < 10 else item for n, item in enumerate(dataset.run("now"))]
    dataset.write_run("now", rankings)
    verdict = check_run(
        dataset, evaluate_for(rules, dataset, "now", EvaluateSettings()), rules, before
    )

    assert any("10 chunks in the top 10 without a grade count" in note for note in verdict.notes)
