"""What a report opens with."""

from dataclasses import replace

import pytest

from ragforge.config import EvaluateSettings
from ragforge.evaluating.comparison import Unjudged
from ragforge.evaluating.runs import Latency
from ragforge.measures.intervals import Ends
from ragforge.pipeline.reporting import ReportOptions, report_summary
from ragforge.report.decision import decision_json, decision_of, pair_asked_for
from ragforge.report.page.decision import difference_bar
from ragforge.report.set_report import render_markdown, render_text


def summary_of(dataset, measures=("nDCG@10", "RR"), **options):
    return report_summary(dataset, EvaluateSettings(measures=measures), ReportOptions(**options))


@pytest.fixture
def summary(many_queries):
    """Thirty queries; run `new` finds at rank 2 what run `base` finds at rank 1."""
    return whole(summary_of(many_queries(30)))


def whole(summary):
    """The summary as if every retrieved chunk had a grade."""
    return changed(summary, unjudged=None)


def changed(summary, **changes):
    """The summary with all its comparisons changed."""
    report = summary.comparison
    items = tuple(replace(item, **changes) for item in report.items)
    return replace(summary, comparison=replace(report, items=items))


def test_a_winner_is_named_with_its_interval(summary):
    """The question that a report is opened with."""
    found = decision_of(summary)

    assert (found.kind, found.headline) == ("winner", "base is better than new")
    assert found.found[0].startswith("base is better in nDCG@10 by 0.369 [")
    assert found.found[-1] == "RR says the same."
    assert found.difference.value == pytest.approx(-0.369, abs=1e-3)
    assert dict(found.rests_on)["Queries"] == "30 queries"


def test_a_run_ahead_by_more_text_leaves_it_open_and_names_what_decides(summary):
    """Graders cannot settle it: a prompt of one size can."""
    found = decision_of(
        changed(summary, withheld="base returns more", fair_measure="EvidenceR(tokens=500)")
    )

    assert found.kind == "unknown"
    assert "base returns more" in found.found[0]
    assert found.next_step == (
        '`ragforge compare base new -m "EvidenceR(tokens=500)"` gives both the same prompt.'
    )


def test_a_lead_that_missing_grades_could_take_away_is_not_for_sure(summary):
    """A winner over chunks that nobody graded is none yet."""
    holes = Unjudged(40, 40, Ends(-0.5, 0.5))

    found = decision_of(changed(summary, unjudged=holes))

    assert found.kind == "careful"
    assert found.headline == "base leads, not yet for sure, before new"
    assert found.next_step.startswith("do not decide yet.")


def test_a_withheld_winner_is_unknown_and_not_drawn(summary):
    """A picture of a difference says more than the words beside it."""
    found = decision_of(changed(summary, withheld="of two judges"))

    assert found.kind == "unknown"
    assert found.headline == "It is not known whether base or new is better"
    assert found.difference is None
    assert "--judge" in found.next_step


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"withheld": "by wordings", "not_by_question": "by wordings"},
            "compare on more questions",
        ),
        ({"withheld": "of who graded", "has_uneven_labels": True}, "`ragforge calibrate sample`"),
    ],
)
def test_what_no_grade_of_a_model_settles_asks_for_none(summary, changes, told):
    """It would be bought in vain."""
    found = decision_of(changed(summary, **changes))

    assert found.kind == "unknown"
    assert found.next_step.startswith(told)
    assert "--judge" not in found.next_step


def test_failures_that_could_turn_it_round_are_to_be_asked_again(summary):
    """More grades of what has one already would tell nothing."""
    bounds = {"withheld": "failed", "failure_bounds": Ends(-0.5, 0.5)}

    judging = decision_of(changed(summary, **bounds, n_open=9, n_left_out=2))
    retrieving = decision_of(changed(summary, **bounds, n_open=2, n_left_out=2))

    assert judging.next_step.startswith("`ragforge judge --retry-failed` asks again")
    assert retrieving.next_step.startswith("`ragforge retrieve`")


def test_a_tie_says_how_many_queries_would_show_more(many_queries):
    """`No difference` alone reads like `the same`."""
    summary = summary_of(many_queries(30))
    items = tuple(
        replace(item, comparison=replace(item.comparison, winner="TIE"))
        for item in summary.comparison.items
    )
    tied = replace(summary, comparison=replace(summary.comparison, items=items))

    found = decision_of(tied)

    assert found.kind == "tie"
    assert found.headline == "No difference is shown between base and new"
    assert found.next_step.startswith("keep the cheaper one, or compare on more queries")


@pytest.mark.parametrize(
    ("costs", "times", "told"),
    [
        ((0.0004, 0.0001), (1.0, 2.0), " (new: 0.10 USD for 1,000 queries, base: 0.40), or"),
        ((0.0004, None), (0.5, 2.0), " (base: 500 ms for a median query, new: 2.00 s), or"),
        ((0.0004, 0.0004), (0.5, 2.0), ", or"),
        ((None, None), (0.5, None), ", or"),
    ],
)
def test_a_tie_says_which_of_two_is_the_cheaper_one(many_queries, costs, times, told):
    """Whoever keeps the cheaper one has to know which that is."""
    summary = summary_of(many_queries(30))
    items = tuple(
        replace(item, comparison=replace(item.comparison, winner="TIE"))
        for item in summary.comparison.items
    )
    by_name = {
        name: {"usd_per_query": usd, "latency": s and Latency(s, s, s, 30, s)}
        for name, usd, s in zip(("base", "new"), costs, times, strict=True)
    }
    runs = tuple(replace(run, **by_name[run.name]) for run in summary.runs)
    tied = replace(summary, runs=runs, comparison=replace(summary.comparison, items=items))

    assert decision_of(tied).next_step.startswith(f"keep the cheaper one{told}")


def test_queries_that_a_run_lacks_stand_beside_the_decision(many_queries):
    """A run of half of the queries is no worse retriever."""
    dataset = many_queries(30)
    details = dataset.manifest.files["runs/new.jsonl"].run
    dataset.write_run("new", list(dataset.run("new"))[:15], details)

    found = decision_of(summary_of(dataset))

    assert dict(found.rests_on)["Not retrieved"] == "new lacks 15, which count 0"


def test_other_measures_that_disagree_are_told(summary):
    """A winner by one measure of two is half of the truth."""
    first, second = summary.comparison.items
    other = replace(second, comparison=replace(second.comparison, winner="TIE"))
    report = replace(summary.comparison, items=(first, other))

    found = decision_of(replace(summary, comparison=report))

    assert "RR says nothing: no difference is shown." in found.found


def test_of_several_runs_one_is_best_or_none_is(many_queries):
    """Ten pairs are no answer to `which one?`."""
    dataset = many_queries(30)
    details = dataset.manifest.files["runs/new.jsonl"].run
    dataset.write_run("third", dataset.run("new"), details)

    best = decision_of(whole(summary_of(dataset)))
    dataset.write_run("fourth", dataset.run("base"), details)
    no_best = decision_of(whole(summary_of(dataset)))

    assert best.headline == "base is better than each of the other 2"
    assert best.kind == "winner"
    assert (no_best.kind, no_best.headline) == ("mixed", "No single best among 4 runs")
    assert "base and fourth are not told apart from the best." in no_best.found


def test_the_pair_looked_at_first_is_of_the_base_and_the_best(many_queries):
    """With ten pairs the reader wants one."""
    dataset = many_queries(30)
    details = dataset.manifest.files["runs/new.jsonl"].run
    dataset.write_run("third", dataset.run("base"), details)

    report = summary_of(dataset).comparison

    assert pair_asked_for(report, "new") in {("base", "new"), ("new", "third")}
    assert pair_asked_for(report, "") == ("base", "third")


def test_runs_that_cannot_be_compared_are_not_known(summary):
    """Silence reads like a tie."""
    found = decision_of(replace(summary, comparison=None, not_compared="They share no query."))

    assert (found.kind, found.found) == ("unknown", ("They share no query.",))


def test_every_form_opens_with_the_decision(summary):
    """A pull request is read as far as its first lines."""
    text, markdown = render_text(summary), render_markdown(summary)

    assert text.index("base is better than new") < text.index("Retrieval")
    assert markdown.index("base is better than new") < markdown.index("|")
    assert decision_json(decision_of(summary))["kind"] == "winner"


def test_no_number_is_a_negative_zero(summary):
    """`-0.000` makes readers ask what is wrong."""
    item = summary.comparison.items[0]
    small = replace(item.comparison, diff=-0.0001, interval=Ends(-0.0004, 0.0002), winner="TIE")
    items = (replace(item, comparison=small),)
    report = replace(summary.comparison, items=items, measures=("nDCG@10",))

    shown = render_text(replace(summary, comparison=report))

    assert "-0.000 " not in shown
    assert "[0.000, 0.000]" in shown


def test_the_bar_of_a_difference_holds_its_interval(summary):
    """A dot on the wrong side of the line is a wrong winner."""
    drawn = difference_bar(decision_of(summary).difference).code

    assert "A better" in drawn
    assert "B better" in drawn
    dot = float(drawn.split('class="middle" cx="')[1].split('"')[0])
    zero = float(drawn.split('class="zero" x1="')[1].split('"')[0])
    assert dot < zero
