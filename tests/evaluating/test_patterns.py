import pytest

from ragforge.evaluating.patterns import patterns
from ragforge.measures import evaluate
from ragforge.measures.evidence_coverage import Quote, RetrievedText, RunEvidence, Stretch
from ragforge.measures.strata import Design


def scores(grades, ranking, n=6):
    """Score the same ranking for each of n queries."""
    qrels = {f"q{number}": grades for number in range(n)}
    return evaluate(qrels, dict.fromkeys(qrels, ranking), ["nDCG@10"])


MANY = {f"r{number}": 1 for number in range(20)}
FILLER = [f"x{number}" for number in range(9)]


@pytest.mark.parametrize(
    ("grades", "ranking", "start"),
    [
        (MANY, list(MANY)[:5], "What stands at the top is right, and much is missing (R@10 0.25)"),
        ({"a": 1}, [*FILLER[:4], "a"], "What is relevant is found, and stands too far down (RR"),
        ({"a": 1}, FILLER, "Fewer than half of the queries find anything relevant"),
        (MANY, [*FILLER[:3], "r1", *FILLER[4:]], "Most queries find something relevant, and miss"),
        (
            {"a": 3, "b": 3, "c": 3, "d": 2},
            ["d", *FILLER[:8], "a"],
            "Most queries find something relevant, and not the best first",
        ),
    ],
)
def test_a_pattern_is_said_in_a_sentence(grades, ranking, start):
    """Numbers alone do not tell where to look."""
    assert patterns(scores(grades, ranking))[0].startswith(start)


def test_precision_is_held_against_what_is_possible():
    """With one relevant chunk a query, P@5 of 0.2 is perfect."""
    assert patterns(scores({"a": 1}, ["a"])) == []


def test_what_was_never_retrieved_cannot_be_ranked_better():
    """One of ten at rank 1 and no other: to rerank would gain nothing."""
    ten = {f"r{number}": 1 for number in range(10)}

    assert patterns(scores(ten, ["r0", *FILLER])) == [
        "Most queries find something relevant, and miss most of it (Success@10 1.00, R@10 0.10): "
        "retrieve more, or let the retriever look further."
    ]


def test_queries_of_which_nothing_relevant_is_known_say_nothing():
    """A hit rate over them would blame the index for labels that are missing."""
    qrels = {f"q{number}": {"a": 1 if number < 5 else 0} for number in range(12)}

    assert patterns(evaluate(qrels, {query_id: ["a"] for query_id in qrels}, ["RR"])) == []


def test_a_query_with_evidence_and_no_grade_says_nothing():
    """`evaluate -m EvidenceR@10` ended as a bug where a night dropped the only grade of a query."""
    quote = Quote((Stretch("d", 0, 10),))
    evidence = RunEvidence({"lone": [quote]}, {"lone": [RetrievedText(10, 2, quote.places)]})
    qrels = {**{f"q{number}": {"a": 1} for number in range(6)}, "lone": {}}
    graded = evaluate(qrels, {query_id: FILLER for query_id in qrels}, ["RR"])

    told = patterns(graded.with_evidence(evidence, ["EvidenceR@10"]))

    assert told[0].startswith("Fewer than half of the queries find anything relevant")


def test_means_over_fewer_queries_than_those_of_the_table_say_so():
    """The same name with another number beside the table reads like an error."""
    ten = {f"r{number}": 1 for number in range(10)}
    qrels = {f"q{number}": ten if number < 5 else {"a": 0} for number in range(12)}
    run = {query_id: ["r0", *FILLER] for query_id in qrels}

    [said] = patterns(evaluate(qrels, run, ["RR"]))

    assert "(Success@10 1.00, R@10 0.10, where anything relevant is known): retrieve" in said


def test_a_sample_speaks_by_the_weights_of_its_strata():
    """Four of six drawn do badly, and stand for a tenth of the set."""
    bad = {query_id: [*FILLER[:6], "a"] for query_id in ("q2", "q3", "q4", "q5")}
    run = {"q0": ["a"], "q1": ["a"], **bad}
    stratum_of = {query_id: "few" if query_id in bad else "many" for query_id in run}
    design = Design({**stratum_of, **{f"other{number}": "many" for number in range(34)}})
    plain = evaluate({query_id: {"a": 1} for query_id in run}, run, ["RR"])

    assert patterns(plain)[0].startswith("What is relevant is found, and stands too far down")
    assert patterns(plain.of_sample(design)) == []


def test_a_handful_of_queries_is_no_pattern():
    """One odd query would decide."""
    assert patterns(scores({"a": 1}, FILLER, n=4)) == []


def test_queries_that_a_run_lacks_are_named_before_any_pattern():
    """A log of one week has that week's questions; the others' zeros say nothing of its index."""
    qrels = {f"q{number}": {"a": 1} for number in range(10)}
    run = {f"q{number}": ["a"] for number in range(4)}

    assert patterns(evaluate(qrels, run, ["RR"])) == [
        "6 of 10 queries are not in the run and count 0, so that its measures say little else: "
        "retrieve for them, or measure the others alone (--only-retrieved)."
    ]
    assert patterns(evaluate(qrels, run, ["RR"], only_retrieved=True)) == []
