from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge.measures import Summary, evaluate, parse_measure
from ragforge.measures.bounds import OpenChunk, OpenQuery, difference_bounds
from ragforge.measures.hit_table import JudgedRanking

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
    assert (list(scores.per_query), scores.failed) == (["1"], ("2",))


def test_a_failed_query_gets_no_value_from_a_partial_ranking():
    """What came before the failure is not the retriever's answer."""
    scores = evaluate({"1": {"a": 1}, "2": {"a": 1}}, {"1": ["a"], "2": ["a"]}, failed={"2"})

    assert scores.query_ids == ("1",)


def test_a_query_whose_judgments_all_failed_has_no_value():
    """Its value would rest on nothing."""
    scores = evaluate({"1": {"a": 1}, "2": {"a": None}}, {"1": ["a"], "2": ["a"]}, ["P@1"])

    assert scores.summary("P@1") == Summary(mean=1.0, n=1, n_failed=1, low=0.5, high=1.0)
    assert scores.judgments_failed == ("2",)


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


@pytest.mark.slow
@pytest.mark.parametrize("measure", EXACT)
@given(case=cases())
def test_bounds_are_the_extremes_over_every_joint_grade(measure, case):
    """Wider bounds would call a difference open that no judgment can turn, narrower ones lie."""
    found = difference_bounds(opened(*case), parse_measure(measure), REL, TOP)

    assert found == pytest.approx(reached(*case, measure), abs=1e-12)


@pytest.mark.slow
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
