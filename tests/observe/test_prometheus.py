import pytest

from ragforge.errors import DataError
from ragforge.observe.prometheus import FAMILIES, exposed, write_prometheus
from ragforge.records import Digests, Evaluation, MeasuredMean, Spending, Timing

RR = MeasuredMean(mean=0.5, low=0.25, high=0.75, n=3, n_failed=1, least=0.375, most=0.625)
NDCG = MeasuredMean(mean=None, low=None, high=None, n=0)


def evaluation(dataset="help", run="bm25", **changed):
    """Return the record of a run."""
    fields = {
        "evaluation_id": "ab12",
        "at": "2026-05-01T02:03:04+00:00",
        "dataset": dataset,
        "version": 3,
        "run": run,
        "rel_threshold": 2,
        "n_queries": 4,
        "n_failed": 1,
        "n_retrieved": 30,
        "n_holes": 2,
        "measures": {"nDCG@10": NDCG, "RR": RR},
        "graders": (),
        "digests": Digests(corpus="", queries="", judgments="", rankings="", prompts=""),
        "spent": Spending(calls=0, prompt_tokens=0, completion_tokens=0, cost_usd=None),
        "timing": Timing(n=3, median_s=0.01, p95_s=0.02, p99_s=0.03),
        "tool_version": "0",
    }
    return Evaluation(**{**fields, **changed})


def lines(*evaluations):
    """Return the samples, without the lines about families."""
    text = "".join(exposed(evaluations))
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_an_evaluation_is_gauges():
    """Dashboards and alerts name these series."""
    assert lines(evaluation()) == [
        'ragforge_measure{dataset="help",run="bm25",measure="RR"} 0.5',
        'ragforge_measure_low{dataset="help",run="bm25",measure="RR"} 0.25',
        'ragforge_measure_high{dataset="help",run="bm25",measure="RR"} 0.75',
        'ragforge_measure_least{dataset="help",run="bm25",measure="RR"} 0.375',
        'ragforge_measure_most{dataset="help",run="bm25",measure="RR"} 0.625',
        'ragforge_queries{dataset="help",run="bm25"} 4',
        'ragforge_queries_failed{dataset="help",run="bm25"} 1',
        'ragforge_retrieved{dataset="help",run="bm25"} 30',
        'ragforge_holes{dataset="help",run="bm25"} 2',
        'ragforge_retrieval_seconds{dataset="help",run="bm25",quantile="0.5"} 0.01',
        'ragforge_retrieval_seconds{dataset="help",run="bm25",quantile="0.95"} 0.02',
        'ragforge_retrieval_seconds{dataset="help",run="bm25",quantile="0.99"} 0.03',
        'ragforge_dataset_version{dataset="help",run="bm25"} 3',
        'ragforge_evaluated_at_seconds{dataset="help",run="bm25"} 1777600984.0',
    ]


def test_each_family_is_explained_once_before_its_samples():
    """The collector refuses a file with a family in two places."""
    text = "".join(exposed([evaluation(run="b"), evaluation(run="a")]))

    heads = [line.split()[:3] for line in text.splitlines() if line.startswith("# TYPE")]
    assert [name for _, _, name in heads] == [family.name for family in FAMILIES]
    assert text.count("# HELP ") == len(FAMILIES)


def test_order_of_runs_changes_nothing():
    """Same inputs, same bytes: a file that is kept in git must not flicker."""
    a, b = evaluation(run="a"), evaluation(run="b")

    assert "".join(exposed([a, b])) == "".join(exposed([b, a]))


def test_a_measure_without_a_value_is_left_out():
    """NaN or 0 would set off alerts, or hide that there was nothing to measure."""
    assert [line for line in lines(evaluation()) if "nDCG" in line] == []


def test_a_baseline_without_a_time_has_no_time():
    """1970 would look as if the nightly run had stopped."""
    assert [line for line in lines(evaluation(at="")) if "evaluated_at" in line] == []


def test_the_latency_says_of_which_queries_it_is():
    """Those that timed out were the slowest, and are not among them."""
    found = "".join(exposed([evaluation()]))

    assert (
        "# HELP ragforge_retrieval_seconds Latency of the retriever, by quantile of the " in found
    )
    assert "queries that succeeded." in found


def test_labels_are_escaped():
    """One name with a quote in it would make the collector drop the whole file."""
    hostile = 'a"b\\c\nragforge_measure{} 1\ud800'

    found = lines(evaluation(dataset=hostile, measures={}))

    assert found[0] == (
        'ragforge_queries{dataset="a\\"b\\\\c\\nragforge_measure{} 1?",run="bm25"} 4'
    )


def test_the_file_is_replaced_as_a_whole(tmp_path):
    """The collector may read at any moment."""
    path = tmp_path / "ragforge.prom"
    path.write_text("old", encoding="utf-8")

    write_prometheus(path, [evaluation()])

    assert path.read_text(encoding="utf-8").startswith("# HELP ragforge_measure Mean of a measure")
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    """A nightly job that tells nobody is noticed weeks later."""
    (tmp_path / "file").write_text("", encoding="utf-8")

    with pytest.raises(DataError, match="cannot be written"):
        write_prometheus(tmp_path / "file" / "ragforge.prom", [evaluation()])


def test_means_without_the_queries_that_a_run_lacks_are_another_series():
    """One line over months must not jump because one night left out what was not found."""
    found = [line for line in lines(evaluation(only_retrieved=True)) if "measure{" in line]

    assert found == [
        'ragforge_measure{dataset="help",run="bm25",measure="RR",only_retrieved="true"} 0.5'
    ]
