from math import log2

import pytest

from ragforge.measures import evaluate

pytestmark = pytest.mark.usefixtures("columns_as")

GRADES = {"a": 3, "b": 0, "c": 1, "d": 2, "e": 0, "f": 3, "n": -1}
RANKING = ["b", "a", "x", "c", "n", "d"]
"""Grades by rank: 0, 3, unjudged, 1, -1, 2; "e" and "f" are not retrieved."""
DCG = 3 / log2(3) + 1 / log2(5) + 2 / log2(7)
IDEAL = 3 + 3 / log2(3) + 2 / log2(4) + 1 / log2(5)
DCG_EXP = 7 / log2(3) + 1 / log2(5) + 3 / log2(7)
IDEAL_EXP = 7 + 7 / log2(3) + 3 / log2(4) + 1 / log2(5)


def value(measure, grades=GRADES, ranking=RANKING, rel_threshold="auto"):
    scores = evaluate({"q": grades}, {"q": ranking}, [measure], rel_threshold=rel_threshold)
    return scores.mean(measure)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("P@2", 1 / 2),
        ("P@5", 1 / 5),
        ("P(rel=1)@5", 2 / 5),
        ("P@10", 2 / 10),
        ("R@2", 1 / 3),
        ("R@10", 2 / 3),
        ("R", 2 / 3),
        ("R(rel=1)@10", 3 / 4),
        ("F1@5", 2 * (1 / 5) * (1 / 3) / (1 / 5 + 1 / 3)),
        ("Success@1", 0),
        ("Success@2", 1),
        ("RR", 1 / 2),
        ("RR@1", 0),
        ("AP", (1 / 2 + 2 / 6) / 3),
        ("AP@5", (1 / 2) / 3),
        ("AP(rel=1)", (1 / 2 + 2 / 4 + 3 / 6) / 4),
        ("Rprec", 1 / 3),
        ("bpref", ((1 - 1 / 3) + (1 - 2 / 3)) / 3),
        ("RBP(p=0.8)", 0.2 * (0.8 + 0.8**5)),
        ("RBP(p=0.8)@5", 0.2 * 0.8),
        ("DCG", DCG),
        ("DCG@2", 3 / log2(3)),
        ("nDCG", DCG / IDEAL),
        ("nDCG@2", (3 / log2(3)) / (3 + 3 / log2(3))),
        ("nDCG(gain='exp')", DCG_EXP / IDEAL_EXP),
        ("DCG(gain='exp')@4", 7 / log2(3) + 1 / log2(5)),
        ("ERR", 7 / 8 / 2 + 1 / 8 * 1 / 8 / 4 + 1 / 8 * 7 / 8 * 3 / 8 / 6),
        ("ERR@2", 7 / 8 / 2),
        ("ERR(max=4)@2", 7 / 16 / 2),
        ("Judged@5", 3 / 5),
        ("Judged@10", 4 / 6),
        ("NumRet", 6),
        ("NumRel", 3),
        ("NumRelRet", 2),
        ("SetP", 2 / 6),
        ("SetR", 2 / 3),
        ("SetF", 2 * (2 / 6) * (2 / 3) / (2 / 6 + 2 / 3)),
    ],
)
def test_values_are_those_computed_by_hand(measure, expected):
    """One ranking with every kind of chunk pins the definition of every measure."""
    assert value(measure) == pytest.approx(expected, rel=0, abs=1e-15)


def test_precision_divides_by_k_not_by_what_was_retrieved():
    """Dividing by the shorter would reward a retriever for returning less."""
    assert value("P@10", {"a": 1}, ["a"]) == 0.1


def test_the_ideal_is_over_all_judged_chunks():
    """An ideal of what was retrieved makes any sorted ranking perfect."""
    assert value("nDCG@5", {"a": 1, "b": 1, "c": 1}, ["a"]) == pytest.approx(0.469279, abs=1e-6)


def test_negative_grades_gain_nothing():
    """A penalty would push nDCG below 0."""
    assert value("nDCG", {"a": -1, "b": 2}, ["a", "b"]) == pytest.approx(1 / log2(3))


def test_the_threshold_does_not_reach_ndcg():
    """Zeroing the grades below it, as ranx does, gives 0.648 here."""
    grades = {"a": 1, "b": 2, "c": 3}

    assert value("nDCG", grades, ["a", "b", "c"], rel_threshold=2) == pytest.approx(
        0.789998, abs=1e-6
    )


def test_bpref_without_judged_nonrelevant_chunks_is_one():
    """0/0 would be NaN, and poison the mean."""
    assert value("bpref", {"a": 1, "b": 1}, ["a", "b"]) == 1.0


def test_bpref_counts_no_more_nonrelevant_chunks_than_relevant_ones():
    """trec_eval caps both, so that deep non-relevant chunks cannot make it negative."""
    assert value("bpref", {"a": 1, "x": 0, "y": 0, "z": 0}, ["x", "y", "z", "a"]) == 0.0


def test_rbp_takes_a_grade_as_relevant_or_not():
    """With the grade as gain ranx reports 2.25, above the measure's range."""
    assert value("RBP(p=0.5)", {"a": 3, "b": 3}, ["a", "b"]) == 0.75


@pytest.mark.parametrize("measure", ["nDCG@10", "P@5", "R@5", "RR", "AP", "bpref", "Judged@5"])
@pytest.mark.parametrize(
    ("grades", "ranking"), [({"a": 0}, ["x"]), ({"a": -1}, ["x"]), ({"a": 2}, [])]
)
def test_nothing_relevant_or_nothing_retrieved_is_zero(measure, grades, ranking):
    """trec_eval counts these queries as 0, and 0/0 must not become NaN."""
    assert value(measure, grades, ranking) == 0.0
