"""Worked examples of four published tutorials, at their correct values.

Seven of the printed results are wrong; the test of such an example says what was printed.
"""

import pytest

from ragforge.errors import DataError
from ragforge.measures import evaluate

pytestmark = pytest.mark.usefixtures("columns_as")

BEST_FIRST = {"a": 3, "b": 2, "c": 1, "d": 0, "e": 2}
MIXED = {"a": 3, "b": 1, "c": 3, "d": 0, "e": 2}


def mean(measure, qrels, run, rel_threshold=1):
    return evaluate(qrels, run, [measure], rel_threshold=rel_threshold).mean(measure)


def at(*ranks, n_relevant=None):
    """Return qrels and run of one query whose relevant chunks stand at these ranks."""
    grades = {f"c{rank}": 1 for rank in ranks}
    grades |= {f"m{n}": 1 for n in range((n_relevant or len(ranks)) - len(ranks))}
    return grades, [f"c{rank}" for rank in range(1, 11)]


def queries(*cases):
    """Return qrels and run of several queries."""
    qrels = {f"q{n}": grades for n, (grades, _) in enumerate(cases)}
    return qrels, {f"q{n}": ranking for n, (_, ranking) in enumerate(cases)}


@pytest.mark.parametrize(
    ("measure", "case", "expected"),
    [
        ("P@3", at(1, 3), 0.666667),
        ("R@3", at(1, 3, n_relevant=5), 0.4),
        ("RR", at(3), 0.333333),
        ("P@5", at(1, 3, 5, n_relevant=4), 0.6),
        ("P@3", at(1, 3, 5, n_relevant=4), 0.666667),
        ("P@1", at(1, 3, 5, n_relevant=4), 1.0),
        ("R@5", at(1, 3, 5, n_relevant=4), 0.75),
        ("R@3", at(1, 3, 5, n_relevant=4), 0.5),
        ("R@1", at(1, 3, 5, n_relevant=4), 0.25),
        ("P@5", at(1, 3, n_relevant=4), 0.4),
        ("P@10", at(1, 3, 7, n_relevant=4), 0.3),
        ("R@10", at(1, 3, 7, n_relevant=4), 0.75),
        ("Success@3", at(2), 1.0),
        ("nDCG@4", at(1, 2), 1.0),
    ],
)
def test_binary_examples_hold(measure, case, expected):
    """Readers check a tool against the tutorial they know."""
    assert mean(measure, *queries(case)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("measure", "grades", "expected"),
    [
        pytest.param("DCG@5", BEST_FIRST, 5.535565, id="printed 5.04"),
        pytest.param("nDCG@5", BEST_FIRST, 0.972425, id="printed 0.82"),
        pytest.param("nDCG(gain='exp')@5", BEST_FIRST, 0.9750, id="exponential"),
        ("DCG@5", MIXED, 5.904635),
        ("nDCG@5", MIXED, 0.933766),
        ("nDCG@4", {"a": 2, "b": 0, "c": 1, "d": 0}, 0.950234),
    ],
)
def test_graded_examples_hold(measure, grades, expected):
    """Two of the printed values come from slips of the pen."""
    assert mean(measure, {"q": grades}, {"q": list(grades)}) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        pytest.param(BEST_FIRST, 5.692536, id="printed 6.15"),
        pytest.param(MIXED, 6.323466, id="printed 6.32"),
    ],
)
def test_ideal_examples_hold(grades, expected):
    """The ideal is the DCG of the sorted grades."""
    ideal = sorted(grades, key=grades.get, reverse=True)

    assert mean("DCG@5", {"q": grades}, {"q": ideal}) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("measure", "cases", "expected"),
    [
        pytest.param("RR", [at(1), at(3), at(2)], 0.611111, id="MRR of ranks 1, 3, 2"),
        pytest.param("P@5", [at(1, 2, n_relevant=3), at(2, 4)], 0.4, id="printed 0.50"),
        pytest.param("R@5", [at(1, 2, n_relevant=3), at(2, 4)], 0.833333, id="printed 0.58"),
        pytest.param("RR", [at(1, 2, n_relevant=3), at(2, 4)], 0.75, id="MRR of ranks 1, 2"),
        pytest.param("Success@1", [at(1)] * 4 + [at(2)], 0.8, id="Hit@1 of a golden set"),
        pytest.param("Success@3", [at(1)] * 4 + [at(2)], 1.0, id="Hit@3 of a golden set"),
        pytest.param("RR", [at(1)] * 4 + [at(2)], 0.9, id="MRR of a golden set"),
        pytest.param("RR", [at(1)] * 5, 1.0, id="MRR after reranking"),
        pytest.param("P@5", [at(1, 3), at(2, 4)], 0.4, id="lesson P@5"),
        pytest.param("R@5", [at(1, 3), at(2, 4)], 1.0, id="lesson R@5"),
        pytest.param("RR", [at(1, 3), at(2, 4)], 0.75, id="lesson MRR"),
        pytest.param("nDCG@5", [at(1, 3), at(2, 4)], 0.785321, id="lesson nDCG@5"),
        pytest.param("Success@5", [at(1, 3), at(2, 4)], 1.0, id="lesson hit rate"),
    ],
)
def test_means_over_queries_hold(measure, cases, expected):
    """Means are over queries, each with the same weight."""
    assert mean(measure, *queries(*cases)) == pytest.approx(expected, abs=1e-6)


def test_precision_of_a_short_ranking_divides_by_k():
    """A published unit test expects 1.0 here, against the page's own definition."""
    assert mean("P@5", {"q": {"a": 1, "b": 1}}, {"q": ["a", "b"]}) == 0.4


def test_the_ideal_knows_chunks_that_were_not_retrieved():
    """Published code takes the ideal from the retrieved list and gets 0.63093."""
    grades = {"a": 0, "b": 1, "c": 3}

    assert mean("nDCG@5", {"q": grades}, {"q": ["a", "b"]}) == pytest.approx(0.173765, abs=1e-6)


def test_a_repeated_chunk_is_refused():
    """Published code counts it twice and reports recall 1.0 with half of the chunks found."""
    with pytest.raises(DataError, match="query 'q': chunk 'a' is listed more than once"):
        mean("R@2", {"q": {"a": 1, "b": 1}}, {"q": ["a", "a"]})


def test_an_answer_that_is_not_retrieved_is_zero():
    """Published code raises from `list.index`."""
    assert mean("RR", {"q": {"a": 1}}, {"q": ["x"]}) == 0.0


def test_relevance_comes_from_the_grades_alone():
    """Published code keeps a second list of relevant ids, which disagrees with the grades."""
    grades = {"doc-1": 3, "doc-9": 1}

    assert mean("P@2", {"q": grades}, {"q": ["doc-9", "doc-1"]}, rel_threshold="auto") == 0.5
