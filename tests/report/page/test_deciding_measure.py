"""What a report shows of single queries is by the measure that decides."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace

import pytest
from evidence_sets import random_set
from ranked_sets import ranked_set

from ragforge.config import EvaluateSettings
from ragforge.pipeline.reporting import report_summary
from ragforge.report.page.page import render_html
from ragforge.report.page.quality_cost import quality_cost_figure, quality_latency_figure
from ragforge.report.set_report import render_text, report_json

A = [1, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2]
B = [2, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1]
"""Ranks by query: B loses three in nDCG@10, and one in Success@1."""


def summary_of(dataset, *measures):
    return report_summary(dataset, EvaluateSettings(measures=measures))


def section(page, key):
    return re.search(rf'<section id="{key}".*?</section>', page, re.DOTALL).group()


def index_of(page):
    """Return what the script knows of the table."""
    packed = re.search(r'id="queries-index">([^<]*)<', page).group(1)
    return json.loads(zlib.decompress(b64decode(packed)))


@pytest.fixture
def pair(tmp_path):
    """Two runs of a query of each property, of which measures tell different queries."""
    made = ranked_set(tmp_path / "set", {"a": A, "b": B})
    queries = made.require_accepted_queries()
    made.write_queries(
        query.model_copy(update={"difficulty": "hard" if at % 2 else "easy"})
        for at, query in enumerate(queries)
    )
    return made


@pytest.fixture
def placed(tmp_path):
    """Queries with evidence, all but the last of them asked, and runs of two chunkings."""
    return random_set(tmp_path / "set", 5, n_queries=40)


def test_queries_that_lost_are_those_of_the_measure_that_decides(pair):
    """The one query that lost is the one to look at."""
    found = section(render_html(summary_of(pair, "Success@1")), "comparison")
    lost = found[found.index("Lost most in Success@1") : found.index("Gained most in Success@1")]

    assert re.findall(r'href="#q=([^"]*)"', lost) == ["q000"]
    assert "b is worse in 1 query, better in 9 and the same in 2." in found
    assert "Success@1, one bar a query" in found
    assert "Success@1, one point a query" in found


def test_no_other_measure_is_on_the_page(pair):
    """Two measures on a page tell of two winners."""
    summary = summary_of(pair, "Success@1")
    page = render_html(summary)

    assert "Success@1 by difficulty" in section(page, "slices")
    assert "Success@1 of <bdi>b</bdi> (B) less <bdi>a</bdi> (A), by slice" in page
    assert "where its Success@1 is below the best" in section(page, "causes")
    assert "The lowest Success@1 of each run" in section(page, "worst")
    assert "Queries by Success@1, in steps of 0.1" in section(page, "spread")
    assert "Success@1 below 0.5" in section(page, "queries")
    assert index_of(page)["measure"] == "Success@1"
    assert "nDCG" not in page.replace(section(page, "reading"), "")
    assert "nDCG@10" not in render_text(summary)


def test_the_first_measure_that_can_decide_is_shown(pair):
    """Nobody is better for what is judged."""
    assert summary_of(pair, "Judged@10", "RR", "nDCG@10").primary == "RR"
    assert summary_of(pair, "Judged@10").primary == "nDCG@10"
    assert summary_of(pair).primary == "nDCG@10"


def test_causes_and_slices_are_of_the_measure_that_decides(pair):
    """Rank 2 is as bad as rank 4 for Success@1."""
    [_, found] = report_json(summary_of(pair, "Success@1"), None)["runs"]

    assert [len(cause["queries"]) for cause in found["causes"]] == [3]
    assert [part["Success@1"]["mean"] for part in found["slices"][:2]] == [4 / 6, 5 / 6]


def test_queries_at_the_best_that_judgments_allow_are_not_the_worst(pair):
    """One relevant chunk gives a P@5 of 0.2 wherever it stands."""
    found = section(render_html(summary_of(pair, "P@5")), "worst")

    assert "<details" not in found
    assert found.count("none is below the best that its judgments allow in P@5.") == 2


def test_quality_beside_latency_and_cost_is_of_the_measure_that_decides(pair):
    """The cheaper run is taken for as good as the figure says."""
    for name in ("a", "b"):
        timed = [item.model_copy(update={"latency_s": 0.1}) for item in pair.run(name)]
        pair.write_run(name, timed)
    summary = summary_of(pair, "Success@1")
    priced = tuple(replace(run, usd_per_query=0.01) for run in summary.runs)
    summary = replace(summary, runs=priced)

    assert "Success@1 of each run beside its latency" in quality_latency_figure(summary).code
    assert "b: 0.750 at" in quality_cost_figure(summary).code


def test_values_above_one_have_no_bins_and_no_half(pair):
    """DCG is from 0 to whatever the grades give."""
    summary = summary_of(pair, "DCG@10")
    page = render_html(summary)

    assert 'value="low"' not in page
    assert "in steps of 0.1" not in page
    assert "Queries by DCG@10" not in render_text(summary)
    assert "DCG@10 by difficulty" in page


def test_evidence_is_shown_where_it_decides(placed):
    """Grades tell nothing of runs of different chunks."""
    page = render_html(summary_of(placed, "EvidenceR@10"))

    assert "nDCG@10" not in page
    assert "no evidence found" in section(page, "worst")
    assert "no relevant chunk found" not in section(page, "worst")
    assert '<option value="nohit">no evidence found</option>' in page
    assert index_of(page)["ofEvidence"] is True


def test_runs_of_different_chunks_are_shown_by_what_they_are_compared_by(placed):
    """Nobody has to know that nDCG counts chunks."""
    summary = summary_of(placed)

    assert summary.comparison.measures[0] == "EvidenceR@10"
    assert "Lost most in EvidenceR@10" in render_html(summary)


def test_evidence_without_a_place_is_called_that(placed):
    """A query that is judged and not measured looks like a gap."""
    queries = placed.require_accepted_queries()
    lost = [
        item.model_copy(update={"start": None, "end": None, "quote": "Nowhere to be found."})
        for item in queries[0].evidence
    ]
    placed.write_queries([queries[0].model_copy(update={"evidence": tuple(lost)}), *queries[1:]])

    summary = summary_of(placed, "EvidenceR@10")

    assert summary.table.rows[-1].query_id == queries[0].query_id
    assert {cell.state for cell in summary.table.rows[-1].cells} == {"unplaced"}
    assert "evidence without a place" in render_html(summary)
