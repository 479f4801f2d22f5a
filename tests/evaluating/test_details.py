import pytest

from ragforge.evaluating.runs import PRIMARY, BucketCount
from ragforge.evaluating.slices import MOST_VALUES, recall_curve
from ragforge.evaluating.summary import summarise
from ragforge.measures import evaluate
from ragforge.measures.intervals import Ends
from ragforge.measures.rates import interval_of
from ragforge.records import Judgment, Query


def test_curve_holds_what_the_measure_says_at_each_rank():
    """Two numbers for one thing in one page are one too many."""
    scores = evaluate(
        {"q": {"c1": 3, "c2": 3}}, {"q": ["x", "c1", "y", "c2"]}, ["R@2"], rel_threshold=2
    )

    found = recall_curve(scores, 4)

    assert [(point.k, point.mean) for point in found] == [(1, 0), (2, 0.5), (3, 0.5), (4, 1)]


def test_deep_curves_have_no_more_points_than_a_chart_can_show():
    """A run of a thousand chunks is not to take a thousand evaluations."""
    scores = evaluate({"q": {"c1": 3}}, {"q": ["x", "c1"]}, ["R@2"])

    found = recall_curve(scores, 1000)

    assert found[-1].k == 100
    assert len(found) == 36


def test_top_grades_count_holes_apart(dataset):
    """What nobody judged is no grade 0."""
    [run] = summarise(dataset).runs

    assert run.top_grades == (
        BucketCount("0", 1),
        BucketCount("1", 1),
        BucketCount("2", 0),
        BucketCount("3", 1),
        BucketCount("not judged", 1),
        BucketCount("failed", 1),
    )


def test_few_values_have_no_interval():
    """That of four values would claim too much."""
    assert interval_of([0.1, 0.2, 0.9, 0.4]) is None


def test_equal_values_have_an_interval_with_width():
    """By hand: forty of forty are seen 1 in 40 times of a share of 0.025 ** (1 / 40)."""
    assert interval_of([1.0] * 40) == Ends(pytest.approx(0.025 ** (1 / 40)), 1.0)


def test_slices_name_what_failures_could_change(dataset):
    """A slice is small, so that one failure moves it far."""
    [run] = summarise(dataset).runs
    hard = next(part for part in run.slices if part.value == "hard").estimates[PRIMARY]

    assert (hard.n, hard.n_failed) == (1, 2)
    assert hard.low is not None
    assert hard.high is not None
    assert hard.low < hard.high


def test_slices_of_many_values_show_those_with_the_most_queries(new_dataset, make_ranking):
    """A person's own categories may be as many as queries."""
    made = new_dataset()
    names = [f"kind {n:02}" for n in range(20)] + ["common"]
    queries = [(f"q{n}", name) for n, name in enumerate([*names, "common"])]
    made.write_queries(Query(query_id=key, query="?", category=name) for key, name in queries)
    made.write_judgments(Judgment(query_id=key, chunk_id="c", grade=3) for key, _ in queries)
    made.write_run("bm25", [make_ranking(key, "c") for key, _ in queries])

    [run] = summarise(made).runs
    shown = [part for part in run.slices if part.dimension == "category"]

    assert len(shown) == MOST_VALUES
    assert shown[0].value == "common"


def test_queries_are_parted_by_the_folders_of_their_documents(dataset):
    """Where one part of the corpus is bad the mean hides it."""
    queries = dataset.all_queries()
    evidence = queries[0].evidence[0].model_copy(update={"doc_id": "guides/a.md"})
    dataset.write_queries([queries[0].model_copy(update={"evidence": (evidence,)}), *queries[1:]])

    [run] = summarise(dataset).runs
    found = {
        part.value: part.n_queries for part in run.slices if part.dimension == "document group"
    }

    assert found == {"guides": 1, "not set": 2}
