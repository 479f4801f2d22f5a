import re

from ragforge.config import EvaluateSettings
from ragforge.evaluating.summary import summarise
from ragforge.files.manifest import RunOrigin, digest_file
from ragforge.pipeline.reporting import ReportOptions, report_summary
from ragforge.records import Answer
from ragforge.report.answers import answers_json
from ragforge.report.decision import decision_of
from ragforge.report.page.quality_cost import (
    answers_cost_figure,
    answers_latency_figure,
    quality_cost_figure,
    quality_latency_figure,
)
from ragforge.report.page.runs import headline_block, spending_block
from ragforge.report.set_report import render_text, report_json


def timed(made, make_ranking, latencies):
    """Write a run for each latency, named by its place."""
    for place, latency_s in enumerate(latencies):
        made.write_run(
            f"run{place}",
            [make_ranking(f"q{n:04}", f"c{n:04}", latency_s=latency_s) for n in range(6)],
        )
    for name in ("base", "new"):
        made.remove_run(name)
    return quality_latency_figure(summarise(made))


def test_each_timed_run_is_a_point_by_its_latency(many_queries, make_ranking):
    """Ten times as long is one step across."""
    found = timed(many_queries(6), make_ranking, (0.001, 0.01, 0.1)).code
    xs = [float(x) for x in re.findall(r'<circle class="spot[^>]*cx="([0-9.]+)"', found)]

    assert len(xs) == 3
    assert abs((xs[1] - xs[0]) - (xs[2] - xs[1])) < 0.2
    assert "run1: 1.000 at 10 ms" in found


def test_runs_of_no_time_at_all_have_a_place(many_queries, make_ranking):
    """A clock may not have moved."""
    assert timed(many_queries(6), make_ranking, (0.0, 0.0)) is not None


def test_one_timed_run_is_no_picture(many_queries, make_ranking):
    """There is nothing to hold it against."""
    assert timed(many_queries(6), make_ranking, (0.01,)) is None
    assert timed(many_queries(6), make_ranking, (0.01, None)) is None


def priced(made, make_ranking, prices):
    """Write a run for each price of a query, named by its place."""
    for place, usd in enumerate(prices):
        made.write_run(
            f"run{place}",
            [make_ranking(f"q{n:04}", f"c{n:04}", latency_s=0.01) for n in range(6)],
            RunOrigin(chunks_sha256=digest_file(made.chunks_path), usd_per_query=usd),
        )
    for name in ("base", "new"):
        made.remove_run(name)
    return summarise(made)


def test_each_run_whose_cost_is_known_is_a_point_by_it(many_queries, make_ranking):
    """Ten times the price is one step across; what is not known has no place."""
    summary = priced(many_queries(6), make_ranking, (0.0001, 0.001, None, 0.01))
    found = quality_cost_figure(summary).code
    xs = [float(x) for x in re.findall(r'<circle class="spot[^>]*cx="([0-9.]+)"', found)]

    assert len(xs) == 3
    assert abs((xs[1] - xs[0]) - (xs[2] - xs[1])) < 0.2
    assert "run0: 1.000 at 0.10 USD; run1: 1.000 at 1.00 USD; run3: 1.000 at 10.00 USD" in found


def test_what_costs_nothing_is_named_and_not_drawn(many_queries, make_ranking):
    """A scale of powers of ten has no 0."""
    summary = priced(many_queries(6), make_ranking, (0.0001, 0.001, 0.0))
    found = quality_cost_figure(summary).code

    assert found.count('<circle class="spot') == 2
    assert "What costs nothing has no place here: run2." in found


def test_one_known_cost_is_no_picture(many_queries, make_ranking):
    """There is nothing to hold it against."""
    assert quality_cost_figure(priced(many_queries(6), make_ranking, (0.01, 0.0, None))) is None


def test_costs_stand_at_the_runs_in_every_form(many_queries, make_ranking):
    """A reader of the terminal decides by them too; what is unknown is said."""
    summary = priced(many_queries(6), make_ranking, (0.0004, None))
    unknown = "What a query costs is not known of run1."

    assert "1,000 queries: 0.40 USD" in headline_block(summary).code
    text, page = " ".join(render_text(summary).split()), spending_block(summary).code
    assert "USD/1,000 queries" in text
    assert "10 ms 0.40" in text
    assert unknown in text
    assert unknown in page
    assert [run["usd_per_query"] for run in report_json(summary, None)["runs"]] == [0.0004, None]


def test_where_no_cost_is_known_a_sentence_says_so(many_queries):
    """Nothing at all would read like nothing to pay."""
    assert "is not known of any run" in spending_block(summarise(many_queries(6))).code


def answered(made, make_grade, prices, n_right=(6, 6, 6)):
    """Write answers of a system for each price, named by its place; the last lacks a price."""
    for place, usd in enumerate(prices):
        ids = [f"q{n:04}" for n in range(6)]
        made.write_answers(
            f"sys{place}",
            [
                Answer(query_id=q, answer="So.", latency_s=10.0**place, cost_usd=usd)
                for q in ids[:-1]
            ]
            + [Answer(query_id=ids[-1], answer="So.", cost_usd=usd)],
        )
        verdicts = ["correct" if n < n_right[place] else "incorrect" for n in range(6)]
        made.write_answer_grades(f"sys{place}", map(make_grade, ids, verdicts))
    return summarise(made)


def test_each_system_is_a_point_by_its_latency_and_by_its_cost(many_queries, make_grade):
    """The dearer one is perhaps no better."""
    summary = answered(many_queries(6), make_grade, (0.0001, 0.001, None), (6, 3, 6))

    by_cost = answers_cost_figure(summary.answers).code
    by_latency = answers_latency_figure(summary.answers).code

    assert "sys0: 1.000 at 0.10 USD; sys1: 0.500 at 1.00 USD<" in by_cost
    assert "sys0: 1.000 at 1.00 s; sys1: 0.500 at 10.00 s; sys2: 1.000 at 100" in by_latency


def test_one_system_with_a_price_is_no_picture(many_queries, make_grade):
    """There is nothing to hold it against."""
    summary = answered(many_queries(6), make_grade, (0.0001, 0.0, None))

    assert answers_cost_figure(summary.answers) is None


def test_costs_of_answers_stand_in_every_form(many_queries, make_grade):
    """What is unknown is said, with how it would be known."""
    made = many_queries(6)
    answered(made, make_grade, (0.0004, None))
    first, *others = made.answers("sys0")
    made.write_answers(
        "sys1", [first, *(item.model_copy(update={"cost_usd": None}) for item in others)]
    )
    summary = summarise(made)

    text, page = " ".join(render_text(summary).split()), spending_block(summary).code

    assert "USD/1,000 answers" in page
    assert "sys0 5 1.00 s 1.00 s 1.00 s 1.00 s 6 0.40" in text
    assert "1 of 6 0.40" in text
    assert "`usd_per_query` in `[systems.NAME]`" in text
    assert [(of["n_priced"], of["usd_per_query"]) for of in map(answers_json, summary.answers)] == [
        (6, 0.0004),
        (1, 0.0004),
    ]


def test_a_tie_of_systems_says_which_is_the_cheaper_one(many_queries, make_grade):
    """Where runs are compared too, the decision is about those."""
    made = many_queries(6)
    for name in ("base", "new"):
        made.remove_run(name)
    answered(made, make_grade, (0.0004, 0.0001))
    summary = report_summary(made, EvaluateSettings(), ReportOptions())

    told = decision_of(summary).next_step

    assert told.startswith("keep the cheaper one (sys1: 0.10 USD for 1,000 queries, sys0: 0.40)")
