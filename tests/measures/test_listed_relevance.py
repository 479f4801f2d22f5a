from math import log2

import pytest

from ragforge.errors import UsageError
from ragforge.measures import evaluate
from ragforge.measures.listed_relevance import (
    LabelledQuery,
    explaining_threshold,
    grounds,
    labels_of,
    lists_in_force,
)

GRADES = {"q": {"1": 3, "2": 2, "3": 1}}
LISTED = {"q": ["1", "2", "3"]}
RUN = {"q": ["3", "z", "1"]}
CONTRARY = {"q": {"a": 1, "b": 3}}
"""Grades that no threshold brings together with a list of `a` alone."""


def means(qrels, run, measures, **options):
    scores = evaluate(qrels, run, measures, **options)
    return {name: round(scores.mean(name), 6) for name in measures}


def test_the_list_decides_binary_measures():
    """The author calls all three relevant; by grades from 2 on, P@3 would be one third."""
    found = means(GRADES, RUN, ["P@3", "RR", "R@3", "Success@1"], relevant=LISTED)

    assert found == {"P@3": 0.666667, "RR": 1.0, "R@3": 0.666667, "Success@1": 1.0}


def test_grades_decide_ndcg_beside_a_list():
    """A list says nothing of how good a chunk is."""
    with_list = means(GRADES, RUN, ["nDCG@3", "DCG@3", "ERR@3"], relevant=LISTED)

    assert with_list == means(GRADES, RUN, ["nDCG@3", "DCG@3", "ERR@3"])


def test_a_graded_chunk_that_is_not_listed_is_not_relevant():
    """The list is the author's word, whatever the grade."""
    found = means(CONTRARY, {"q": ["b", "a"]}, ["RR", "P@2"], relevant={"q": ["a"]})

    assert found == {"RR": 0.5, "P@2": 0.5}


def test_a_listed_chunk_without_a_grade_is_in_no_gain():
    """A grade that nobody gave must not move nDCG."""
    scores = evaluate({"q": {"a": 2}}, {"q": ["b", "a"]}, ["nDCG", "R@2"], relevant={"q": "ab"})

    assert scores.mean("R@2") == 1.0
    assert scores.mean("nDCG") == pytest.approx(1 / log2(3))


def test_ndcg_is_binary_where_no_chunk_of_a_query_has_a_grade():
    """Equal gains cancel out, so that nothing is made up."""
    scores = evaluate({}, {"q": ["z", "a"]}, ["nDCG@2"], relevant={"q": ["a"]})

    assert scores.mean("nDCG@2") == pytest.approx(1 / log2(3))


def test_a_measure_that_names_a_grade_goes_by_grades():
    """Whoever writes rel=3 asks for grade 3."""
    assert means(GRADES, RUN, ["P(rel=3)@3"], relevant=LISTED) == {"P(rel=3)@3": 0.333333}


def test_queries_without_a_list_go_by_their_grades():
    """A set may list for some queries alone."""
    qrels = {**GRADES, "r": {"a": 1, "b": 2}}
    run = {**RUN, "r": ["a", "b"]}

    scores = evaluate(qrels, run, ["RR"], relevant=LISTED)

    assert scores.per_query == {"q": {"RR": 1.0}, "r": {"RR": 0.5}}


def test_a_failed_judgment_is_a_failure_beside_a_list():
    """A failure is never a value; what is listed is relevant all the same."""
    scores = evaluate({"q": {"a": 3, "b": None}}, {"q": ["b", "a"]}, ["P@2"], relevant={"q": ["a"]})

    assert scores.summary("P@2")._asdict() == {
        "mean": 0.5,
        "n": 1,
        "n_failed": 1,
        "low": 0.5,
        "high": 1.0,
    }


def test_first_ranks_and_queries_without_hits_go_by_the_list():
    """What is drawn beside the measures must not contradict them."""
    scores = evaluate(CONTRARY, {"q": ["b"]}, ["RR"], relevant={"q": ["a"]})

    assert (scores.first_relevant_rank, scores.without_hit) == ({"q": None}, ("q",))


def test_scores_are_computed_again_with_the_lists():
    """Another measure of the same run rests on the same labels."""
    scores = evaluate(GRADES, RUN, ["nDCG@3"], relevant=LISTED)

    assert scores.rescore(["RR"]).mean("RR") == 1.0


def test_a_threshold_that_cannot_be_taken_is_refused_beside_lists():
    """It would be without effect."""
    with pytest.raises(UsageError, match="rel_threshold: expected 'auto'"):
        evaluate(GRADES, RUN, ["RR"], relevant=LISTED, rel_threshold=0)


@pytest.mark.parametrize(
    ("grades", "listed", "threshold"),
    [
        ({"a": 3, "b": 2, "c": 1}, "abc", 1),
        ({"a": 3, "b": 2, "c": 1}, "ab", 2),
        ({"a": 3, "b": 0}, "a", 2),
        ({"a": 3, "b": 2}, "a", 3),
        ({"a": 1, "b": 0}, "a", 1),
        ({"a": 1, "b": 3}, "a", None),
        ({"a": 0}, "a", None),
        ({"a": None}, "a", None),
        ({"a": 1, "b": 0}, "", 2),
        ({"a": 1, "b": 0}, "c", 2),
        ({"a": 3}, "c", None),
    ],
)
def test_the_threshold_that_explains_a_list_is_found(grades, listed, threshold):
    """Most authors have one in mind; of several the usual one, or the nearest to it, is taken."""
    assert explaining_threshold([LabelledQuery(grades, listed)], 3) == threshold


def test_one_threshold_has_to_explain_all_lists():
    """The scale of a set is one."""
    first = LabelledQuery({"a": 1, "b": 0}, "a")
    second = LabelledQuery({"a": 3, "b": 1}, "a")

    assert explaining_threshold([first, second], 3) is None


def test_both_sets_of_labels_have_the_same_queries():
    """A measure of a query must not be lost beside another."""
    labels = labels_of({"q": {"a": None}, "r": {"b": 2}}, {"q": ["c"], "s": ["d"]}, 2)

    assert labels.graded == {"q": {"c": 1, "a": None}, "r": {"b": 2}, "s": {"d": 1}}
    assert labels.binary == {"q": {"c": 1, "a": None}, "r": {"b": 1}, "s": {"d": 1}}


def test_later_grades_count_beside_a_list():
    """A judge graded what the author never saw: of it, the threshold says whether it is relevant.

    a is listed, b is graded and not listed, c and d were graded later.
    """
    grades = {"q": {"b": 3, "c": 2, "d": 1}, "other": {"e": 3}}

    found = lists_in_force(grades, {"q": {"a": True, "b": False}}, 2)

    assert found == {"q": {"a", "c"}}


def test_measures_are_computed_on_two_sets_of_labels_where_lists_decide():
    """On each of them the measures are what they are without lists."""
    graded, binary = grounds(CONTRARY, {"q": ["a"]}, ["nDCG@3", "RR", "P(rel=2)@3"], 2)

    assert (graded.qrels, graded.measures, graded.rel_threshold) == (
        CONTRARY,
        ("nDCG@3", "P(rel=2)@3"),
        2,
    )
    assert (binary.qrels, binary.measures, binary.rel_threshold) == (
        {"q": {"a": 1, "b": 0}},
        ("RR",),
        1,
    )


def test_without_lists_there_is_one_set_of_labels():
    """Nothing is copied, and nothing changes."""
    [ground] = grounds(CONTRARY, {}, ["RR", "nDCG@3"], 2)

    assert ground == (CONTRARY, ("RR", "nDCG@3"), 2)


def test_a_grade_of_0_takes_no_worth_from_a_list():
    """The author says that b is nothing, and of a only that it is relevant."""
    scores = evaluate({"q": {"b": 0}}, {"q": ["b", "a"]}, ["nDCG@2"], relevant={"q": ["a"]})

    assert scores.mean("nDCG@2") == pytest.approx(1 / log2(3))


def test_a_ranking_is_perfect_by_the_lists_too():
    """The one listed chunk is at rank 2, below one that is not relevant but has a grade of 3."""
    scores = evaluate(CONTRARY, {"q": ["b", "a"]}, ["RR"], relevant={"q": ["a"]})
    first = evaluate({"q": {"a": 3, "b": 1}}, {"q": ["a", "b"]}, ["RR"], relevant={"q": ["a"]})

    assert (scores.perfect, first.perfect) == ((), ("q",))
