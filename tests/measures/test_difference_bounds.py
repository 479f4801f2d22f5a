"""How far the difference of two runs can go over the grades of chunks that have none."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.measures import evaluate, parse_measure
from ragforge.measures.difference_bounds import OpenChunk, OpenQuery, difference_bounds
from ragforge.measures.hit_table import JudgedRanking

EXACT = (
    "nDCG", "nDCG@2", "nDCG(gain='exp')@3", "DCG@3", "P@2", "P@3", "R@2", "R", "F1@3",
    "RBP(p=0.8)@3", "RR", "RR@2", "Success@1", "Success@3", "NumRelRet", "SetP", "SetR",
)  # fmt: skip
BOUNDED = ("AP", "AP@2", "Rprec", "bpref", "infAP", "ERR@3", "SetF")
TOP = 3
REL = 2


@st.composite
def cases(draw):
    """Draw two rankings of known and open chunks, and the grades of the known ones."""
    names = [f"k{n}" for n in range(4)] + [f"u{n}" for n in range(3)]
    rankings = [draw(st.permutations(names)) for _ in range(2)]
    lengths = [draw(st.integers(0, len(names))) for _ in range(2)]
    grades = {name: draw(st.integers(0, TOP)) for name in names[:4]}
    n_open = draw(st.integers(0, 3))
    kept = [
        [name for name in ranking[:length] if name in grades or name in names[4 : 4 + n_open]]
        for ranking, length in zip(rankings, lengths, strict=True)
    ]
    return grades, kept[0], kept[1], names[4 : 4 + n_open]


def opened(grades, a, b, chunks):
    """Return a case as the bounds take it."""

    def ranking(ids):
        hits = [(rank, grades[name]) for rank, name in enumerate(ids, 1) if name in grades]
        judged = tuple(sorted(grades.values(), reverse=True))
        return JudgedRanking("q", [r for r, _ in hits], [g for _, g in hits], judged, len(ids))

    def rank(ids, name):
        return ids.index(name) + 1 if name in ids else None

    return OpenQuery(
        ranking(a), ranking(b), [OpenChunk(rank(a, name), rank(b, name)) for name in chunks]
    )


def reached(grades, a, b, chunks, measure):
    """Return the least and the greatest difference over every outcome."""
    found = []
    for outcome in product(range(TOP + 1), repeat=len(chunks)):
        qrels = {"q": grades | dict(zip(chunks, outcome, strict=True))}
        values = [
            evaluate(qrels, {"q": ids}, [measure], rel_threshold=REL).mean(measure)
            for ids in (a, b)
        ]
        found.append(values[1] - values[0])
    return min(found), max(found)


@pytest.mark.parametrize("measure", EXACT)
@given(case=cases())
def test_bounds_are_the_extremes_over_every_joint_grade(measure, case):
    """Wider bounds would call a difference open that no judgment can turn, narrower ones lie."""
    found = difference_bounds(opened(*case), parse_measure(measure), REL, TOP)

    assert found == pytest.approx(reached(*case, measure), abs=1e-12)


@pytest.mark.parametrize("measure", BOUNDED)
@given(case=cases())
def test_other_measures_stay_within_their_bounds(measure, case):
    """Bounds that are not exact must still hold whatever the grades turn out to be."""
    found = difference_bounds(opened(*case), parse_measure(measure), REL, TOP)
    low, high = reached(*case, measure)

    assert found.low - 1e-12 <= low <= high <= found.high + 1e-12


def test_chunk_at_one_rank_in_both_runs_moves_nothing():
    """Both gain the same from it, so the difference is certain although nobody judged it."""
    query = opened({"k": 2}, ["u", "k"], ["u"], ["u"])

    assert difference_bounds(query, parse_measure("P@2"), REL, TOP) == (-0.5, -0.5)


def test_chunk_of_one_run_moves_the_difference_its_way_only():
    """What only b retrieved can but speak for b."""
    query = opened({"k": 2}, ["k"], ["k", "u"], ["u"])

    assert difference_bounds(query, parse_measure("P@2"), REL, TOP) == (0.0, 0.5)


def test_hand_computed_bounds_of_ndcg():
    """a holds the one relevant chunk, b an open one: at best b has grade 3 where a has 2."""
    query = opened({"k": 2}, ["k"], ["u"], ["u"])
    ideal = 3 + 2 * 0.6309297535714575

    low, high = difference_bounds(query, parse_measure("nDCG@10"), REL, TOP)

    assert (low, high) == pytest.approx((-1.0, 1 / ideal))
