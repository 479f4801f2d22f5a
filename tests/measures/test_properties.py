import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge.measures import evaluate

pytestmark = [pytest.mark.usefixtures("columns_as"), pytest.mark.slow]

CHUNKS = [f"c{n}" for n in range(9)]
NORMALISED = [
    "nDCG",
    "nDCG@3",
    "nDCG(gain='exp')@5",
    "P@3",
    "R@3",
    "R",
    "F1@3",
    "Success@2",
    "RR",
    "AP",
    "AP@3",
    "Rprec",
    "bpref",
    "RBP(p=0.8)",
    "ERR@5",
    "Judged@5",
    "SetP",
    "SetR",
    "SetF",
]
MEASURES = [*NORMALISED, "DCG@3", "NumRet", "NumRel", "NumRelRet"]

# A busy machine is no reason to fail.
relaxed = settings(deadline=None)

grades = st.integers(-1, 3)
scores = st.dictionaries(st.sampled_from(CHUNKS), st.integers(0, 4))
judgments = st.dictionaries(st.sampled_from(CHUNKS), grades, min_size=1)
query_ids = st.sampled_from(["q1", "q2", "q3", "q4"])
qrels = st.dictionaries(query_ids, judgments, min_size=1)
runs = st.dictionaries(query_ids, scores, min_size=1)
fillings = st.lists(st.integers(0, 3), min_size=len(CHUNKS), max_size=len(CHUNKS))
holed = st.dictionaries(st.sampled_from(CHUNKS), st.none() | st.integers(0, 3), min_size=1)


def completions(grades):
    """Yield the judgments with every grade that the failed ones could have given."""
    failed = [chunk for chunk, grade in grades.items() if grade is None]
    for given_grades in itertools.product(range(4), repeat=len(failed)):
        yield {**grades, **dict(zip(failed, given_grades, strict=True))}


@relaxed
@given(qrels, runs)
def test_values_lie_between_zero_and_one(qrels, run):
    """A recall above 1 is how a wrong tool is found out."""
    per_query = evaluate(qrels, run, NORMALISED).per_query

    assert all(0 <= value <= 1 for row in per_query.values() for value in row.values())


@relaxed
@given(qrels, runs, st.randoms(use_true_random=False))
def test_permuting_queries_and_chunks_changes_nothing(qrels, run, random):
    """Order in a mapping carries no meaning, so not even the last bit may move."""
    shuffled = [
        {q: dict(random.sample(list(row.items()), len(row))) for q, row in sorted(table.items())}
        for table in (qrels, run)
    ]

    expected = evaluate(qrels, run, MEASURES).to_dict(per_query=True)

    assert evaluate(*shuffled, MEASURES).to_dict(per_query=True) == expected


@relaxed
@given(judgments, st.lists(st.sampled_from(CHUNKS), unique=True))
def test_appending_a_nonrelevant_chunk_never_raises_ndcg(grades, ranking):
    """A retriever cannot win by returning more."""
    before = evaluate({"q": grades}, {"q": ranking}, ["nDCG", "nDCG@5"]).per_query["q"]

    after = evaluate({"q": {**grades, "z": 0}}, {"q": [*ranking, "z"]}, ["nDCG", "nDCG@5"])

    assert after.per_query["q"] == before


@relaxed
@given(judgments.filter(lambda grades: max(grades.values()) > 0))
def test_the_ideal_ranking_is_perfect(grades):
    """The best that can be done must read as 1, exactly."""
    ideal = sorted(grades, key=grades.get, reverse=True)

    scores = evaluate({"q": grades}, {"q": ideal}, ["nDCG", "AP", "RR", "Rprec"], rel_threshold=1)

    assert scores.per_query["q"] == {"nDCG": 1.0, "AP": 1.0, "RR": 1.0, "Rprec": 1.0}
    assert scores.perfect == ("q",)


@relaxed
@given(judgments, st.lists(st.sampled_from(CHUNKS), unique=True))
def test_a_list_equals_scores_of_the_same_order(grades, ranking):
    """The two forms of a run are one ranking."""
    by_score = {chunk: -float(rank) for rank, chunk in enumerate(ranking)}

    from_list = evaluate({"q": grades}, {"q": ranking}, MEASURES)

    assert from_list.per_query == evaluate({"q": grades}, {"q": by_score}, MEASURES).per_query


@relaxed
@given(holed, fillings, scores, st.integers(1, 3))
def test_bounds_hold_for_every_outcome_of_the_failed_judgments(grades, filling, ranking, rel):
    """A bound that one outcome breaks is worse than none."""
    outcome = {
        chunk: other if grade is None else grade
        for (chunk, grade), other in zip(grades.items(), filling, strict=False)
    }

    bounded = evaluate({"q": grades}, {"q": ranking}, MEASURES, rel_threshold=rel)
    full = evaluate({"q": outcome}, {"q": ranking}, MEASURES, rel_threshold=rel)

    assert all(
        bounded.summary(m).low - 1e-12 <= full.mean(m) <= bounded.summary(m).high + 1e-12
        for m in MEASURES
    )


@relaxed
@given(holed, scores)
def test_the_mean_lies_within_its_bounds(grades, ranking):
    """A mean outside of its own bounds cannot be explained to anybody."""
    summaries = evaluate({"q": grades, "r": {"c0": 2}}, {"q": ranking}, MEASURES).summaries

    assert all(s.low <= s.mean <= s.high for s in summaries.values())


@relaxed
@given(judgments, scores)
def test_bounds_of_failed_queries_hold_for_any_ranking(grades, ranking):
    """Whatever the retriever would have returned, the mean stays inside."""
    table = {"q": grades, "r": {"c0": 2}}
    rest = {"r": [f"c{n}" for n in range(9)]}

    bounded = evaluate(table, rest, MEASURES, failed=["q"])
    full = evaluate(table, {**rest, "q": ranking}, MEASURES)

    assert all(
        bounded.summary(m).low - 1e-12 <= full.mean(m) <= bounded.summary(m).high + 1e-12
        for m in MEASURES
    )


@pytest.mark.parametrize("n_failed", range(5))
def test_few_failures_are_bounded_exactly(n_failed):
    """Up to four of them every outcome is tried, so both ends are reached."""
    grades = {"c0": 2, "c5": 1, **{f"c{n}": None for n in range(1, n_failed + 1)}}
    ranking = {"q": ["c1", "c0", "c3", "x", "c2"]}
    options = {"measures": ["nDCG", "AP", "Rprec", "R@3", "F1@3"], "rel_threshold": 2}

    outcomes = [evaluate({"q": g}, ranking, **options) for g in completions(grades)]
    bounded = evaluate({"q": grades}, ranking, **options)

    assert {m: s.low for m, s in bounded.summaries.items()} == {
        m: min(outcome.mean(m) for outcome in outcomes) for m in bounded.measures
    }
    assert {m: s.high for m, s in bounded.summaries.items()} == {
        m: max(outcome.mean(m) for outcome in outcomes) for m in bounded.measures
    }
