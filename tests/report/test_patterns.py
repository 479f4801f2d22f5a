import pytest

from ragforge.evaluating.patterns import patterns
from ragforge.measures import evaluate


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
        (MANY, [*FILLER[:3], "r1", *FILLER[4:]], "Most queries find something relevant, and not"),
    ],
)
def test_a_pattern_is_said_in_a_sentence(grades, ranking, start):
    """Numbers alone do not tell where to look."""
    assert patterns(scores(grades, ranking))[0].startswith(start)


def test_precision_is_held_against_what_is_possible():
    """With one relevant chunk a query, P@5 of 0.2 is perfect."""
    assert patterns(scores({"a": 1}, ["a"])) == []


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
