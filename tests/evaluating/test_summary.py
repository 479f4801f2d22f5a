import pytest

from ragforge.config import EvaluateSettings
from ragforge.errors import DataError, UsageError
from ragforge.evaluating.judgments import FailureCount
from ragforge.evaluating.runs import Estimate, Holes, Latency
from ragforge.evaluating.summary import summarise
from ragforge.files.manifest import Spent
from ragforge.pipeline.evaluated import evaluate_runs
from ragforge.records import Failure, Judgment, Query


def test_counts_leave_retired_queries_out(dataset):
    """A retired query is not part of the set that is measured."""
    counts = summarise(dataset).counts

    assert (counts.n_documents, counts.n_chunks, counts.n_queries) == (2, 6, 4)
    assert (counts.n_pairs, counts.n_failed_pairs, counts.n_unanswerable) == (7, 1, 1)
    assert counts.queries_by["difficulty"] == {"easy": 1, "hard": 2, "not set": 1}


def test_retriever_failure_has_no_value_but_bounds(dataset):
    """A failed query as 0 would blame the ranking for the network."""
    [run] = summarise(dataset, measures=["Success@5"]).runs

    assert run.attention.failed == ("q3",)
    assert run.estimates["Success@5"] == Estimate(0.5, 2, 2, 1 / 3, 1.0)


def test_unanswerable_queries_are_in_no_measure_of_retrieval(dataset):
    """No chunk answers them by intent: a value for them would mean nothing."""
    [run] = summarise(dataset).runs

    assert run.primary.n == 2
    assert "q4" not in {*run.attention.without_hit, *run.attention.perfect}


def test_who_graded_is_told_of_what_measures_go_by(dataset):
    """Pages and pictures counted grades of unanswerable queries too, and `compare` did not."""
    summary = summarise(dataset)

    [measured] = evaluate_runs(dataset, [], EvaluateSettings())
    of_chunks = [judge for judge in summary.measured_judges if judge.task == "relevance"]
    assert of_chunks == [*measured.judges]
    assert summary.judges != summary.measured_judges


def test_holes_tell_never_judged_from_failed(dataset):
    """The two have different remedies: judge, or judge again."""
    [run] = summarise(dataset).runs

    assert run.holes == Holes(n_retrieved=5, n_unjudged=1, n_failed=1)
    assert run.holes.share == 0.4


def test_latency_is_given_where_the_run_has_it(dataset):
    """Quality is half of a choice between retrievers."""
    assert summarise(dataset).runs[0].latency == Latency(
        median_s=0.02, p95_s=0.03, p99_s=0.03, n=2, mean_s=0.02
    )


def test_distributions_count_the_queries_with_a_value(dataset):
    """A mean hides whether all queries are fair or half of them are lost."""
    [run] = summarise(dataset).runs

    assert sum(bar.count for bar in run.histogram) == 2
    assert {bar.label: bar.count for bar in run.first_relevant if bar.count} == {"1": 1, "none": 1}


def test_slices_cover_all_answerable_queries_once(dataset):
    """A query that is in no slice would be forgotten."""
    slices = [part for part in summarise(dataset).runs[0].slices if part.dimension == "difficulty"]

    assert {part.value: part.n_queries for part in slices} == {"easy": 1, "hard": 2}
    assert slices[1].estimates["nDCG@10"].n_failed == 2


def test_run_that_failed_on_every_query_is_still_reported(dataset):
    """A run without a file must not vanish from the table."""
    lost = [Failure(what="retrieve", key=f"http/q{n}", kind="error", message="") for n in (1, 2, 3)]
    dataset.replace_failures("retrieve", lost, lambda _: False)

    run = next(run for run in summarise(dataset).runs if run.name == "http")

    assert (run.primary.mean, run.primary.n, run.attention.failed) == (None, 0, ("q1", "q2", "q3"))


def test_empty_run_has_no_mean(dataset):
    """Nothing was measured, which is not 0."""
    dataset.write_run("empty", [])

    run = next(run for run in summarise(dataset).runs if run.name == "empty")

    assert run.primary == Estimate(None, 0, 0, None, None)
    assert run.warnings == (
        "the run is empty, or there is no answerable query: nothing was measured",
    )


def test_all_judgments_failed_has_no_mean(dataset):
    """A judge that is down says nothing about a retriever."""
    dataset.write_judgments(
        Judgment(query_id=q, chunk_id="c1", grade=None, failure="error") for q in ("q1", "q2", "q3")
    )

    [run] = summarise(dataset).runs

    assert (run.primary.mean, run.primary.n, run.primary.n_failed) == (None, 0, 3)


def test_dataset_without_chunks_runs_or_judgments_has_a_summary(new_dataset):
    """A report of an unfinished set shows what is there."""
    made = new_dataset()
    made.write_queries([Query(query_id="q", query="?")])

    found = summarise(made)

    assert (found.counts.n_chunks, found.runs, found.answers, found.rel_threshold) == (0, (), (), 1)


def test_dataset_without_queries_is_refused(new_dataset):
    """There is nothing to report on, and the message says how to get some."""
    with pytest.raises(DataError, match="has no queries"):
        summarise(new_dataset())


def test_threshold_and_aliases_of_measures_are_resolved(dataset):
    """A reader sees one spelling and the threshold that was used."""
    found = summarise(dataset, measures=["mrr", "hit_rate@5"], rel_threshold=3)

    assert (found.measures, found.rel_threshold) == (("RR", "Success@5"), 3)
    assert summarise(dataset).rel_threshold == 2


def test_unknown_measure_is_refused(dataset):
    """A typo must not give a report without its number."""
    with pytest.raises(UsageError, match="no measure 'nDGC'"):
        summarise(dataset, measures=["nDGC@10"])


def test_failures_are_counted_by_stage_and_kind(dataset):
    """What failed decides what to run again."""
    assert summarise(dataset).failures == (FailureCount("retrieve", "error", 1),)


def test_unknown_cost_stays_unknown(dataset):
    """A price nobody knows is not 0 dollars."""
    dataset.note(spent=Spent(calls=3))

    assert summarise(dataset).making.spent.cost_usd is None
