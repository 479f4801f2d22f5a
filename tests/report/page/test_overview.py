"""The sections of the page that a decision rests on."""

import re
from dataclasses import replace

import pytest
from evaluations import evaluation
from ranked_sets import ranked_set

from ragforge.config import EvaluateSettings
from ragforge.evaluating.summary import MOST_CHUNKS, summarise
from ragforge.files.set.history import History
from ragforge.pipeline.reporting import ReportOptions, report_summary
from ragforge.records import BridgeMean, Chunk, Query
from ragforge.report.page.page import render_html
from ragforge.report.set_report import render_markdown, render_text, report_json

RENDERERS = (render_text, render_markdown, render_html)


@pytest.fixture
def two_runs(many_queries):
    """Thirty queries; run `new` finds at rank 2 what run `base` finds at rank 1."""
    return many_queries(30)


def summary_of(dataset, **options):
    return report_summary(dataset, EvaluateSettings(), ReportOptions(**options))


def section(page, key):
    """Return the markup of a section."""
    return re.search(rf'<section id="{key}".*?</section>', page, re.DOTALL).group()


def with_past(dataset, *evaluations):
    return replace(summarise(dataset), history=History(evaluations=evaluations))


def test_sections_come_in_the_order_in_which_a_decision_is_made(two_runs):
    """The decision opens the page; what moved and why comes before measures and single queries."""
    page = render_html(summary_of(two_runs))

    found = re.findall(r'<section id="(\w+)"', page)

    assert found[:5] == ["decision", "comparison", "slices", "causes", "retrieval"]
    assert found[5:10] == ["spread", "changes", "chunks", "spending", "queries"]


def test_winner_is_named_with_its_interval_in_every_form(two_runs):
    """A page, a pull request and a terminal have to say the same."""
    summary = summary_of(two_runs)

    shown = [" ".join(render(summary).split()) for render in RENDERERS]

    assert all("base is better in nDCG@10" in text for text in shown)


def test_who_graded_stands_on_top_in_every_form(two_runs):
    """It decides whether the rest is worth reading."""
    summary = summary_of(two_runs)

    assert render_text(summary).splitlines()[2] == "who graded is not recorded"
    assert render_markdown(summary).splitlines()[2] == "who graded is not recorded"
    assert '<p class="lede judges">Who graded is not recorded.</p>' in render_html(summary)
    assert [item["kind"] for item in report_json(summary, None)["graded_by"]] == [None]


def test_a_withheld_winner_is_unknown_in_every_form(two_runs):
    """Who reads the report and who reads the terminal must not be told different things."""
    summary = summary_of(two_runs)
    items = tuple(replace(item, withheld="nobody can tell") for item in summary.comparison.items)
    unknown = replace(summary, comparison=replace(summary.comparison, items=items))

    for render in RENDERERS:
        text = " ".join(render(unknown).split())
        assert "UNKNOWN which is better in nDCG@10" in text
        assert "is better in nDCG@10 by" not in text
    assert '<span class="tie" title="nobody can tell">UNKNOWN</span>' in render_html(unknown)


def test_what_the_measures_mean_together_stands_in_every_form(tmp_path):
    """The page is read by people who never saw the terminal of `evaluate`."""
    # Six queries, each with its one relevant chunk at rank 4, or at rank 1: RR 1/4, or 1.
    made = ranked_set(tmp_path / "set", {"low": [4] * 6, "top": [1] * 6})
    summary = summary_of(made)
    sentence = "What is relevant is found, and stands too far down (RR 0.25, R@10 1.00): rerank."

    page = section(render_html(summary), "retrieval")

    assert page.count("<li>") == 1
    assert f"<bdi>low</bdi>: {sentence}</li>" in page
    assert f"| low | {sentence} |" in render_markdown(summary)
    assert sentence in render_text(summary)
    assert [run["patterns"] for run in report_json(summary, None)["runs"]] == [[sentence], []]


def test_no_pattern_leaves_no_empty_list(two_runs):
    """A heading without anything below it looks like a fault."""
    # R@10 is 1 and RR 1 or 1/2; of one relevant chunk all possible precision is there.
    summary = summary_of(two_runs)

    assert "<ul" not in section(render_html(summary), "retrieval")
    assert "What the measures mean together" not in render_markdown(summary)


def test_names_and_sentences_of_patterns_are_text(two_runs):
    """A name in a page must not become markup."""
    summary = summary_of(two_runs)
    named = tuple(replace(run, patterns=("a <b> | c",)) for run in summary.runs)

    assert "a &lt;b&gt; | c" in render_html(replace(summary, runs=named))
    assert "a &lt;b&gt; \\| c" in render_markdown(replace(summary, runs=named))


def test_losses_lead_to_their_queries(two_runs):
    """Whoever sees a regression wants to see the query."""
    found = section(render_html(summary_of(two_runs)), "comparison")

    assert 'href="#q=q0000"' in found
    assert "new is worse in 30 queries, better in 0 and the same in 0." in found


def test_captions_say_of_how_many_queries_there_are_points_and_bars(many_queries):
    """450 queries have 400 points, and 176 bars."""
    found = section(render_html(summary_of(many_queries(450))), "comparison")

    assert found.count("<circle") == 400
    assert "400 of 450 queries, the largest differences among them: above" in found
    assert "176 of 450 queries, the largest differences among them, the great" in found
    assert "a point a query" not in found


def test_two_runs_are_needed_for_a_comparison(dataset):
    """One run is told as such, where readers look for a winner."""
    found = section(render_html(summary_of(dataset)), "decision")

    assert "One run says how it does" in found


def test_three_runs_get_letters(two_runs):
    """Pairs alone do not show who belongs together."""
    two_runs.write_run("third", two_runs.run("new"), two_runs.manifest.files["runs/new.jsonl"].run)
    found = section(render_html(summary_of(two_runs)), "comparison")

    assert "Runs that share a letter were not told apart" in found
    assert [
        bool(mark)
        for mark in re.findall(r'<details class="block pair" id="pair-\d"( open)?', found)
    ] == [True, False, False]


def test_means_have_as_many_digits_as_elsewhere_and_stand_on_the_right(two_runs):
    """Digits of one place stand below each other, with letters beside them or not."""
    two_runs.write_run("third", two_runs.run("new"), two_runs.manifest.files["runs/new.jsonl"].run)
    found = section(render_html(summary_of(two_runs)), "comparison")
    means = re.search(r"<h3>Means</h3>.*?</table>", found, re.DOTALL).group()
    cells = re.findall(r'<td( class="num")?>([^<]*)</td>', means)

    assert {bool(right) for right, _ in cells} == {True}
    assert [text for _, text in cells if not re.fullmatch(r"\d\.\d{3}( \w+)?", text)] == []


def test_percent_of_no_difference_has_no_sign(two_runs):
    """+0.0 reads as a little better."""
    assert '<td class="num">+0.0</td>' not in render_html(summary_of(two_runs))


def test_commands_in_sentences_are_set_as_code(dataset, new_dataset):
    """Backticks are for terminals and Markdown."""
    made = new_dataset("bare")
    made.write_chunks([Chunk(chunk_id="c", doc_id="d", text="So.")])
    made.write_queries([Query(query_id="q", query="How?")])

    for summary in (summarise(made), summary_of(dataset)):
        assert re.findall(r"`ragforge [^`]*`", render_html(summary)) == []


def test_base_is_what_others_are_held_against(two_runs):
    """Fewer comparisons show smaller differences."""
    summary = summary_of(two_runs, base="new")

    assert {item.comparison.a for item in summary.comparison.items} == {"new"}
    assert "better in nDCG@10" in render_text(summary)


def test_a_run_of_other_queries_does_not_spoil_the_report(two_runs, make_ranking):
    """One bad file is no reason to see nothing of the others."""
    two_runs.write_run(
        "other", [make_ranking("elsewhere", "c1")], two_runs.manifest.files["runs/new.jsonl"].run
    )

    summary = summary_of(two_runs)

    assert summary.comparison.names == ("base", "new")
    assert summary.comparison.warnings[0] == (
        "other: the run has none of the queries, and is left out"
    )


def test_only_the_named_runs_are_in_the_report(two_runs):
    """Old runs stay in a dataset."""
    assert [run.name for run in summary_of(two_runs, run_names=("new",)).runs] == ["new"]


def test_empty_history_says_how_to_get_one(dataset):
    """What is missing is a command away."""
    assert "The history is empty" in section(render_html(summarise(dataset)), "changes")


def test_changes_since_the_last_evaluation_are_named(dataset):
    """A number that moved for another reason is not the system's doing."""
    now = evaluation(0.7, digests={"rankings": "r2"}, at="2026-01-02T03:04:05+00:00")

    found = section(render_html(with_past(dataset, evaluation(), now)), "changes")

    assert "Since the evaluation of 2026-01-01 02:00, version 1:" in found
    assert "<strong>retriever</strong>" in found


def test_evaluating_again_without_a_change_says_so(dataset):
    """Nothing is a finding too."""
    again = evaluation(at="2026-01-02T02:00:00+00:00")

    found = section(render_html(with_past(dataset, evaluation(), again)), "changes")

    assert "Nothing changed: corpus, items" in found


def test_trend_draws_full_and_bridge_scores_and_marks_changes(dataset):
    """The full line alone blames the system for a changed set."""
    before = evaluation(0.6)
    bridge = BridgeMean(n=40, before=0.62, now=0.71, diff=0.09, low=0.01, high=0.17)
    now = evaluation(
        0.5, digests={"queries": "q2"}, bridge_to=before.evaluation_id, bridge={"RR": bridge}
    )

    found = section(render_html(with_past(dataset, before, now)), "trend")

    assert found.count('class="drawn tone-0 dash-0"') == 2
    assert found.count('class="drawn tone-0 dash-0 dotted"') == 1
    assert "2026-01-01: items" in found


def test_items_that_a_verdict_would_need_are_told(dataset):
    """Half a standard deviation takes 34 (G*Power, paired t, 80 %): the next question."""
    before = evaluation(0.6)
    same = BridgeMean(n=20, before=0.6, now=0.65, diff=0.05, low=-0.05, high=0.15, sd=0.1)
    now = evaluation(
        0.65, digests={"rankings": "r2"}, bridge_to=before.evaluation_id, bridge={"RR": same}
    )
    summary = with_past(dataset, before, now)

    told = (
        "bm25: items that would show a difference in 4 of 5 samples: RR, over 20: +0.050 as seen "
        "takes 34, one of 0.05 takes 34."
    )
    assert all(told in " ".join(render(summary).split()) for render in RENDERERS)


def test_one_evaluation_is_no_trend(dataset):
    """A line needs two points."""
    assert 'id="trend"' not in render_html(with_past(dataset, evaluation()))


def test_evaluations_by_another_measure_are_no_point_of_a_trend(dataset):
    """Each was a column with nothing in it, and a mark at which something changed."""
    other = {"measures": {"P@5": evaluation().measures["RR"]}, "digests": {"rankings": "r2"}}
    between = evaluation(at="2026-01-02T02:00:00+00:00", **other)
    now = evaluation(0.7, at="2026-01-03T02:00:00+00:00")

    found = section(render_html(with_past(dataset, evaluation(), between, now)), "trend")

    assert "RR over 2 evaluations" in found
    assert "2026-01-02" not in found
    assert 'id="trend"' not in render_html(with_past(dataset, between, now))


def test_notes_of_a_damaged_history_are_told(dataset):
    """A page that passes over lines in silence tells half of the past."""
    summary = replace(summarise(dataset), history=History(notes=("line 3: torn <b>",)))

    assert "line 3: torn &lt;b&gt;" in section(render_html(summary), "changes")


def test_diagnosis_counts_lead_to_lists_that_are_there(dataset):
    """A count that cannot be opened is no diagnosis."""
    found = section(render_html(summarise(dataset)), "diagnosis")

    [target] = re.findall(r'href="#(diagnosis-0-0-11)"', found)
    assert f'<ul id="{target}"><li><a href="#q=q1"' in found


def test_causes_are_counted_with_a_remedy(two_runs):
    """A worst query is one case; a cause is what to repair."""
    found = section(render_html(summary_of(two_runs)), "causes")

    assert ">30</a>" in found
    assert "unjudged on top" in found
    assert "Judge the top of this run" in found


def test_findings_about_chunks_are_shown(dataset):
    """Retrieval cannot mend what chunking broke."""
    found = section(render_html(summarise(dataset)), "chunks")

    assert "6 chunks of 6 with a finding" in found
    assert "too small" in found


def test_too_many_chunks_are_left_to_their_own_command(dataset):
    """A report is to take seconds."""
    summary = summarise(dataset)
    counts = replace(summary.counts, n_chunks=MOST_CHUNKS + 1)

    found = section(render_html(replace(summary, counts=counts, quality=None)), "chunks")

    assert "<code>ragforge chunk --report</code> looks at all of them" in found


def test_latencies_are_a_mean_and_percentiles(dataset):
    """A mean alone hides the slow ones."""
    found = section(render_html(summarise(dataset)), "spending")

    assert re.findall(r"<td[^>]*>([\d.]+ ms)", found) == ["20 ms", "20 ms", "30 ms", "30 ms"]


def test_answer_systems_are_compared_too(two_runs, make_grade):
    """The user reads answers, and no ranking."""
    ids = [query.query_id for query in two_runs.queries()]
    two_runs.write_answer_grades("good", [make_grade(query_id, "correct") for query_id in ids])
    two_runs.write_answer_grades("poor", [make_grade(query_id, "incorrect") for query_id in ids])

    found = section(render_html(summary_of(two_runs)), "answers")

    assert "good is better in score by 1.000" in found
    assert "Lost most in score" in found


def test_answers_alone_make_a_report(two_runs, make_grade):
    """A system may be graded that shows no ranking."""
    two_runs.write_answer_grades("good", [make_grade("q0000", "correct")])
    (two_runs.path / "runs" / "base.jsonl").unlink()
    (two_runs.path / "runs" / "new.jsonl").unlink()

    page = render_html(summary_of(two_runs))

    assert "There is no run yet" in section(page, "retrieval")
    assert 'id="diagnosis"' in page
    assert 'id="comparison"' not in page


def test_json_holds_what_the_overview_says(two_runs):
    """A dashboard is not to read a page."""
    found = report_json(summary_of(two_runs), None)

    [base, new] = found["runs"]
    assert (base["measures"]["RR"]["mean"], new["measures"]["RR"]["mean"]) == (1, 0.5)
    assert found["comparison"]["comparisons"][0]["winner"] == "A"
    assert new["causes"][0]["code"] == "unjudged_on_top"


def test_hostile_names_of_runs_are_data(hostile_dataset, make_ranking, hostile_texts):
    """Names stand in captions, legends, tables and descriptions of charts."""
    name = hostile_texts[0]
    summary = summarise(hostile_dataset)
    runs = tuple(replace(run, name=name) for run in summary.runs)
    past = History(evaluations=(evaluation(run=name), evaluation(run=name, version=2)))

    page = render_html(replace(summary, runs=runs, history=past))

    assert "<script>document" not in page
    assert page.count("&lt;script&gt;document.title=&#x27;owned&#x27;&lt;/script&gt;") > 5
