from collections import Counter
from random import Random

from ragforge.stages.audit.sampling import Candidate, draw, others
from ragforge.stages.judge.pairs import PairId


def candidates(**grades):
    """Make candidates of each query from a text such as "0013-": a pair a character."""
    return [
        Candidate(PairId(query_id, f"{query_id}{n}"), None if grade == "-" else int(grade))
        for query_id, row in grades.items()
        for n, grade in enumerate(row)
    ]


MANY = candidates(**{f"q{n:02}": "000000123-" for n in range(30)})
GRADES = {each.pair: each.grade for each in MANY}


def test_every_grade_is_drawn_alike():
    """Most pairs are not relevant; an audit by chance would hardly see one that can be lowered."""
    drawn = draw(MANY, 50, seed=0)

    assert Counter(GRADES[pair] for pair in drawn) == {0: 10, 1: 10, 2: 10, 3: 10, None: 10}


def test_queries_are_drawn_alike():
    """Intervals rest on queries, so each should have as many pairs as the next."""
    drawn = draw(MANY, 60, seed=0)

    assert set(Counter(pair.query_id for pair in drawn).values()) == {2}


def test_the_order_of_what_is_there_makes_no_difference():
    """The same set must give the same audit, however its files are sorted."""
    shuffled = Random(1).sample(MANY, len(MANY))

    assert draw(shuffled, 50, seed=0) == draw(MANY, 50, seed=0)


def test_another_seed_draws_others():
    """A second sample shows what the first one owes to chance."""
    assert draw(MANY, 50, seed=0) != draw(MANY, 50, seed=1)


def test_fewer_pairs_than_wanted_are_all_drawn():
    """Small sets are audited too."""
    few = candidates(a="03", b="0")

    assert draw(few, 50, seed=0) == sorted(each.pair for each in few)
    assert draw([], 50, seed=0) == []


def test_another_passage_is_of_another_query_and_not_known_to_fit():
    """A passage that answers the query after all would make the judge look gullible."""
    drawn = [PairId("a", "1"), PairId("b", "2"), PairId("b", "3"), PairId("c", "4")]
    known = {"a": {"1", "2", "4"}, "b": {"2", "3"}, "c": {"4"}}

    found = others(drawn, known, seed=0)

    assert found[PairId("a", "1")] == PairId("b", "3")
    assert {pair.query_id for pair in found} == {"a", "b", "c"}
    assert all(other.query_id != pair.query_id for pair, other in found.items())


def test_one_query_alone_has_no_other_passage():
    """Then the attacks that need one are left out, not made up."""
    assert others([PairId("a", "1"), PairId("a", "2")], {"a": set()}, seed=0) == {}
