import random
import subprocess
import sys

import pytest

from ragforge.errors import DataError, UsageError
from ragforge.measures import DEFAULT_MEASURES, arrays, evaluate

pytestmark = pytest.mark.usefixtures("columns_as")


def test_a_query_missing_from_the_run_counts_zero():
    """A retriever that returns nothing must not gain from it."""
    scores = evaluate({"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}, ["RR"])

    assert (scores.mean("RR"), scores.missing_from_run) == (0.5, ("2",))


def test_an_empty_ranking_counts_zero():
    """An empty result is a result."""
    scores = evaluate({"1": {"a": 1}, "2": {"b": 1}}, {"1": {}, "2": {"b": 1.0}}, ["RR"])

    assert (scores.mean("RR"), scores.missing_from_run) == (0.5, ())


def test_a_query_only_in_the_run_is_ignored_and_counted():
    """It has no truth to be measured against."""
    scores = evaluate({"1": {"a": 1}}, {"1": {"a": 1.0}, "9": {"a": 1.0}}, ["RR"])

    assert (scores.mean("RR"), scores.n_not_in_qrels) == (1.0, 1)


def test_a_query_with_empty_judgments_is_not_counted_but_reported():
    """Nothing is known about it, so 0 would be a guess."""
    scores = evaluate({"1": {}, "2": {"b": 1}}, {"1": {"a": 1.0}, "2": {"b": 1.0}}, ["RR"])

    assert (scores.mean("RR"), scores.summary("RR").n) == (1.0, 1)
    assert scores.without_judgments == ("1",)


def test_queries_match_by_id_not_by_position():
    """ranx pairs rows by position when given plain dicts."""
    qrels = {"1": {"a": 1}, "2": {"b": 1}}

    scores = evaluate(qrels, {"2": {"b": 1.0}, "1": {"x": 1.0}}, ["RR"])

    assert scores.per_query == {"1": {"RR": 0.0}, "2": {"RR": 1.0}}


def test_numbers_read_a_few_queries_at_a_time_are_those_of_their_queries(monkeypatch):
    """Where one reading ends and the next begins must not show."""
    rng = random.Random(5)
    ids = [str(number) for number in range(70)]
    qrels = {query: {chunk: rng.randrange(4) for chunk in rng.sample(ids, 5)} for query in ids}
    run = {query: {chunk: rng.random() for chunk in rng.sample(ids, 9)} for query in ids[3:]}
    whole = evaluate(qrels, run, DEFAULT_MEASURES)
    alone = {query: evaluate({query: qrels[query]}, run, DEFAULT_MEASURES) for query in ids}
    monkeypatch.setattr(arrays, "_DRAWN_CHUNKS", 30)

    scores = evaluate(qrels, run, DEFAULT_MEASURES, rel_threshold=2)

    assert scores.per_query == whole.per_query
    assert scores.by_query("nDCG@10") == {
        query: found.values("nDCG@10")[0] for query, found in alone.items()
    }


def test_query_ids_may_hold_a_dash():
    """gdeval cuts them at the dash and scores 0."""
    qrels = {"2024-1": {"a": 1}, "2024-2": {"a": 1}}
    run = {"2024-1": {"a": 1.0}, "2024-2": {"a": 1.0}}

    assert evaluate(qrels, run, ["nDCG(gain='exp')"]).mean("nDCG(gain='exp')") == 1.0


def test_one_tie_rule_holds_for_all_measures():
    """ir_measures reports RR 0.5 and RR@10 1.0 for this ranking."""
    measures = ["RR", "RR@10", "P@1", "RBP(p=0.8)"]

    scores = evaluate({"1": {"a": 1, "b": 0}}, {"1": {"a": 1.0, "b": 1.0}}, measures)

    assert scores.per_query["1"] == pytest.approx(
        {"RR": 0.5, "RR@10": 0.5, "P@1": 0.0, "RBP(p=0.8)": 0.16}
    )


@pytest.mark.parametrize(
    ("grades", "threshold"), [([0, 1], 1), ([0, 0], 1), ([1, 2], 2), ([3, 3], 2), ([-1, None], 1)]
)
def test_the_threshold_is_two_where_grades_go_above_one(grades, threshold):
    """Grade 1 on the scale 0-3 means same topic, which is not relevant."""
    scores = evaluate({"q": dict(zip("ab", grades, strict=True))}, {"q": ["a"]}, ["P@1"])

    assert scores.rel_threshold == threshold


def test_a_threshold_that_is_given_wins():
    """People who count grade 1 as relevant say so."""
    scores = evaluate({"q": {"a": 1, "b": 3}}, {"q": ["a"]}, ["P@1"], rel_threshold=1)

    assert (scores.mean("P@1"), scores.rel_threshold) == (1.0, 1)


@pytest.mark.parametrize("threshold", [0, -1, 1.5, True, "high"])
def test_a_threshold_that_is_no_grade_is_refused(threshold):
    """At 0 every judged chunk would be relevant."""
    with pytest.raises(UsageError, match="rel_threshold: expected 'auto' or a whole number"):
        evaluate({"q": {"a": 1}}, {"q": ["a"]}, rel_threshold=threshold)


def test_err_refuses_grades_above_its_scale():
    """Clipped in silence, two runs would be compared on a scale nobody chose."""
    with pytest.raises(UsageError, match="the qrels hold grade 4; expected max=4 or more"):
        evaluate({"q": {"a": 4}}, {"q": ["a"]}, ["ERR@10"])


def test_empty_qrels_are_refused():
    """A mean over nothing is no result."""
    with pytest.raises(DataError, match="qrels: expected at least one query, got none"):
        evaluate({}, {"1": {"a": 1.0}})


def test_an_empty_run_is_refused():
    """It is more likely a wrong path than a retriever that found nothing."""
    with pytest.raises(DataError, match="run: expected at least one query, got none"):
        evaluate({"1": {"a": 1}}, {})


def test_no_measure_is_refused():
    """An empty table would look like a run without results."""
    with pytest.raises(UsageError, match="measures: expected at least one, got none"):
        evaluate({"1": {"a": 1}}, {"1": ["a"]}, [])


def test_disjoint_query_ids_warn_with_examples_of_both_sides():
    """Zeros all over are mostly ids that are spelled differently."""
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}

    scores = evaluate(qrels, {"1": ["a"], "2": ["a"], "3": ["a"], "4": ["a"]}, ["RR"])

    assert scores.warnings == (
        "no query of the run is judged: the qrels hold 'q1', 'q2', "
        "the run holds '1', '2', '3', …; every value is 0",
    )


@pytest.mark.parametrize(
    ("grade", "options"), [(1, {"only_retrieved": True}), (None, {"only_retrieved": False})]
)
def test_disjoint_query_ids_that_leave_no_value_do_not_claim_zeros(grade, options):
    """Who reads of zeros looks for them in a table that has no row."""
    scores = evaluate({"q1": {"a": grade}}, {"1": ["a"]}, ["RR"], **options)

    assert scores.summary("RR").n == 0
    assert scores.warnings == (
        "no query of the run is judged: the qrels hold 'q1', the run holds '1'; "
        "no query has a value",
    )


def test_disjoint_chunk_ids_warn_with_examples_of_both_sides():
    """A re-chunked corpus has other ids than its old judgments."""
    scores = evaluate({"q": {"a#0": 1}}, {"q": ["a-0", "b-0"]}, ["RR"])

    assert scores.warnings == (
        "no retrieved chunk is judged: for query 'q' the qrels hold 'a#0', "
        "the run holds 'a-0', 'b-0'",
    )


def test_qrels_without_any_judgment_warn_and_give_no_mean():
    """NaN would poison whatever is computed from it."""
    scores = evaluate({"q": {}}, {"q": ["a"]}, ["RR"])

    assert (scores.mean("RR"), scores.summary("RR").n) == (None, 0)
    assert scores.warnings == ("no query of the qrels has a judgment",)


def test_disjoint_query_ids_warn_beside_a_failed_query():
    """One timeout must not hide that the other ids are spelled differently."""
    scores = evaluate({"q1": {"a": 1}, "q2": {"a": 1}}, {"1": ["a"]}, failed=["q2"])

    assert scores.warnings == (
        "no query of the run is judged: the qrels hold 'q1', the run holds '1'; every value is 0",
    )


def test_a_run_that_failed_throughout_gives_no_warning_about_ids():
    """Nothing was retrieved, so nothing is spelled differently."""
    assert evaluate({"q": {"a": 1}}, {}, failed=["q"]).warnings == ()


def test_matching_ids_give_no_warning():
    """A warning that is always there is not read."""
    assert evaluate({"q": {"a": 1}}, {"q": ["a"]}).warnings == ()


def test_measures_named_twice_are_computed_once():
    """An alias beside its canonical name is the same column."""
    assert evaluate({"q": {"a": 1}}, {"q": ["a"]}, ["MRR", "RR", "mrr"]).measures == ("RR",)


def test_the_default_measures_are_canonical():
    """They are the names that gates and baselines hold on to."""
    assert evaluate({"q": {"a": 1}}, {"q": ["a"]}).measures == DEFAULT_MEASURES


def test_import_does_not_load_numpy():
    """numpy costs 0.1 s, more than evaluating a thousand queries."""
    code = "import sys, ragforge.measures; print('numpy' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_the_threshold_does_not_depend_on_the_run():
    """Two runs would be compared on two definitions of relevant."""
    qrels, run = {"q1": {"d": 2}, "q2": {"d": 1}}, {"q2": {"d": 1.0}}

    scores = evaluate(qrels, run, ["P@1"], only_retrieved=True)

    assert (scores.rel_threshold, scores.mean("P@1")) == (2, 0.0)


def test_scores_beyond_what_a_float_holds_do_not_tie():
    """Ids and timestamps in nanoseconds serve as scores, too."""
    scores = {"b": 2**53, "a": 2**53 + 1}

    assert evaluate({"q": {"b": 1}}, {"q": scores}, ["P@1"]).mean("P@1") == 0.0


def test_values_are_floats_where_nothing_gained():
    """The same column must not be whole numbers in one frame and floats in another."""
    [value] = evaluate({"q": {"a": 1}}, {"q": {"b": 1.0}}, ["DCG@10"]).values("DCG@10")

    assert type(value) is float


@pytest.mark.parametrize("n_queries", [3, 3000])
def test_rankings_with_and_without_scores_measure_alike(n_queries):
    """A report knows the order alone; a failed judgment of one query is no matter of the others."""
    qrels = {f"q{n}": {"a": n % 4, "b": 2, "c": None if n == 1 else 0} for n in range(n_queries)}
    ranked = {f"q{n}": ("c", "x", "a", "b")[n % 3 :] for n in range(n_queries) if n != 2}
    scored = {key: dict(zip(of, (4, 3, 2, 1), strict=False)) for key, of in ranked.items()}

    listed, by_score = evaluate(qrels, ranked), evaluate(qrels, scored)

    assert listed.query_ids == by_score.query_ids
    assert listed.columns == by_score.columns
    assert listed.summary("nDCG@10") == by_score.summary("nDCG@10")
