import pytest

from ragforge.measures import Summary, evaluate

pytestmark = pytest.mark.usefixtures("columns_as")


def test_without_failures_the_bounds_are_the_mean():
    """Bounds that differ from the mean must mean that something failed."""
    summary = evaluate({"q": {"a": 1, "b": 0}}, {"q": ["b", "a"]}, ["RR"]).summary("RR")

    assert summary == Summary(mean=0.5, n=1, n_failed=0, low=0.5, high=0.5)


def test_a_failed_judgment_counts_as_unjudged_and_opens_the_bounds():
    """It is not grade 0, and the reader sees what it could have changed."""
    qrels = {"q": {"a": None, "b": 1}}

    summary = evaluate(qrels, {"q": ["a", "b"]}, ["RR"]).summary("RR")

    assert summary == Summary(mean=0.5, n=1, n_failed=1, low=0.5, high=1.0)


def test_a_failed_judgment_on_the_best_grade_can_lower_ndcg():
    """The ideal grows with it: all failures at the top are not the upper bound."""
    qrels = {"q": {"a": 3, "b": None}}

    summary = evaluate(qrels, {"q": ["a"]}, ["nDCG@10"]).summary("nDCG@10")

    assert (summary.mean, summary.high) == (1.0, 1.0)
    assert summary.low == pytest.approx(3 / (3 + 3 * 0.6309297535714575))


def test_ndcg_can_be_highest_at_a_grade_in_the_middle():
    """Grade 2 sorts this ranking, 0 and 3 do not, so every outcome has to be tried."""
    qrels = {"q": {"a": 2, "b": None, "c": 2}}

    summary = evaluate(qrels, {"q": ["a", "b", "c"]}, ["nDCG"]).summary("nDCG")

    assert summary.high == 1.0


def test_an_unretrieved_failure_can_only_lower_recall():
    """Another relevant chunk would have been missed."""
    qrels = {"q": {"a": 1, "b": None}}

    summary = evaluate(qrels, {"q": ["a"]}, ["R@5"]).summary("R@5")

    assert (summary.low, summary.high) == (0.5, 1.0)


def test_a_failure_beyond_the_cutoff_leaves_precision_alone():
    """P@1 does not look there."""
    qrels = {"q": {"a": 1, "b": None}}

    summary = evaluate(qrels, {"q": ["a", "b"]}, ["P@1"]).summary("P@1")

    assert (summary.low, summary.high) == (1.0, 1.0)


def test_many_failures_are_bounded_by_interval_arithmetic():
    """4 ** 12 outcomes cannot be tried; the bounds may be wide but must hold."""
    qrels = {"q": {"a": 3, **{f"c{n}": None for n in range(12)}}}
    ranking = [f"c{n}" for n in range(12)]

    summary = evaluate(qrels, {"q": [*ranking, "a"]}, ["nDCG", "AP", "bpref"]).summary("nDCG")

    assert summary.low < summary.mean < summary.high == 1.0


def test_a_failed_query_has_no_value_and_both_ends_as_bounds():
    """A timeout of the retriever is not a zero, and leaving it out is not harmless."""
    qrels = {"1": {"a": 1}, "2": {"a": 1}}

    scores = evaluate(qrels, {"1": ["a"]}, ["RR"], failed=["2"])

    assert scores.summary("RR") == Summary(mean=1.0, n=1, n_failed=1, low=0.5, high=1.0)
    assert (list(scores.per_query), scores.failed) == (["1"], ["2"])


def test_a_failed_query_gets_no_value_from_a_partial_ranking():
    """What came before the failure is not the retriever's answer."""
    scores = evaluate({"1": {"a": 1}, "2": {"a": 1}}, {"1": ["a"], "2": ["a"]}, failed={"2"})

    assert scores.query_ids == ["1"]


def test_a_query_whose_judgments_all_failed_has_no_value():
    """Its value would rest on nothing."""
    scores = evaluate({"1": {"a": 1}, "2": {"a": None}}, {"1": ["a"], "2": ["a"]}, ["P@1"])

    assert scores.summary("P@1") == Summary(mean=1.0, n=1, n_failed=1, low=0.5, high=1.0)
    assert scores.judgments_failed == ["2"]


def test_the_mean_stays_inside_the_bounds_when_queries_have_no_value():
    """Query 2 can reach 0.1 at most, which pulls the possible mean under the one reported."""
    ten = {f"c{n}": 1 for n in range(10)}

    scores = evaluate({"1": ten, "2": {"a": None}}, {"1": list(ten), "2": ["a"]}, ["P@10"])

    assert scores.summary("P@10") == Summary(mean=1.0, n=1, n_failed=1, low=0.5, high=1.0)


def test_all_queries_failed_gives_bounds_but_no_mean():
    """The whole range is what is known."""
    summary = evaluate({"1": {"a": 1}}, {}, ["RR"], failed=["1"]).summary("RR")

    assert summary == Summary(mean=None, n=0, n_failed=1, low=0.0, high=1.0)


def test_a_failed_query_that_is_not_judged_is_not_in_the_bounds():
    """It would not have counted either."""
    scores = evaluate({"1": {"a": 1}}, {"1": ["a"]}, ["RR"], failed=["9"])

    assert (scores.summary("RR").n_failed, scores.n_not_in_qrels) == (0, 1)


@pytest.mark.parametrize(
    ("measure", "low", "high"),
    [
        ("DCG", 0.0, (3 + 3 * 0.6309297535714575 + 2 * 0.5) / 2),
        ("DCG@1", 0.0, 3 / 2),
        ("NumRet", (0 + 4) / 2, (4 + 4) / 2),
        ("NumRel", (2 + 2) / 2, (3 + 2) / 2),
        ("NumRelRet", 0.0, 3 / 2),
    ],
)
def test_unbounded_measures_of_a_failed_query_reach_their_ideal(measure, low, high):
    """They have no range of their own: the judged chunks and the longest ranking limit them."""
    qrels = {"1": {"a": 3, "b": None, "c": 2}, "2": {"d": 2, "e": 2}}
    run = {"2": ["w", "x", "y", "z"]}

    summary = evaluate(qrels, run, [measure], failed=["1"]).summary(measure)

    assert (summary.low, summary.high) == pytest.approx((low, high))


def test_grades_above_the_scale_widen_what_a_failure_could_have_been():
    """Where the qrels hold 5, a failed judgment could have been 5."""
    qrels = {"q": {"a": 5, "b": None}}

    summary = evaluate(qrels, {"q": ["b"]}, ["DCG"]).summary("DCG")

    assert (summary.low, summary.high) == (0.0, 5.0)
