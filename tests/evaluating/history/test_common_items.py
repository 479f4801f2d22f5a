"""Earlier rankings are scored on the grades of today only as far as they tell of them."""

import pytest
from evaluations import evaluation

from ragforge.evaluating.history.common_items import RescoringBasis, common_items
from ragforge.evaluating.same_judge import Reading
from ragforge.records import Baseline, ItemValues, MeasuredMean

MEASURES = ("RR", "P@2", "AP", "Judged@2", "NumRet")
MEAN = MeasuredMean(mean=0.0, low=None, high=None, n=1)


def of_item(ranking, *, n_retrieved=None, grades="old", **digests):
    item = ItemValues(
        query_id="q",
        item="same",
        grades=grades,
        values=dict.fromkeys(MEASURES, 0.0),
        ranking=ranking,
        n_retrieved=len(ranking) if n_retrieved is None else n_retrieved,
    )
    made = evaluation(measures=dict.fromkeys(MEASURES, MEAN), digests=digests)
    return Baseline(evaluation=made, items=(item,))


@pytest.fixture
def read():
    """Score a ranking on grades of today: what came of it, by measure."""

    def score(ranking, qrels, *, known=("a", "b", "c"), of_now="new", **fields):
        corpus = "c1" if known is None else "c2"
        now = of_item((), grades=of_now, judgments="j2", corpus=corpus, rankings="r2")
        basis = RescoringBasis({"q": qrels}, 2, corpus, "j2", lambda: set(known or ()))
        return common_items(of_item(ranking, **fields), now, basis)["q"].before

    return score


def exactly(value):
    return Reading(value, value, value)


def test_a_ranking_is_scored_on_the_grades_of_today(read):
    """By hand: relevant at rank 2 of 3, one of two relevant ones."""
    found = read(("a", "b", "c"), {"b": 3, "x": 2})

    assert [found[name] for name in ("RR", "P@2", "AP")] == [
        exactly(0.5),
        exactly(0.5),
        exactly(0.25),
    ]


def test_stored_values_stand_where_the_relevant_grades_are_as_before(read):
    """Nothing is scored again for nothing; what is stored here is 0."""
    found = read(("b",), {"b": 3}, of_now="old")

    assert (found["RR"], found["AP"]) == (exactly(0.0), exactly(0.0))


def test_measures_of_all_grades_are_scored_again_where_any_grade_changed(read):
    """A chunk that was judged of no use is judged."""
    found = read(("a", "b"), {"a": 0}, of_now="old")

    assert found["Judged@2"] == exactly(0.5)


def test_a_chunk_that_is_gone_leaves_the_measures_open_that_look_so_deep(read):
    """What it would be worth today nobody can say."""
    found = read(("a", "gone", "b"), {"b": 3})

    assert (found["P@2"].value, found["AP"].value) == (None, None)


def test_a_chunk_that_is_gone_below_the_cutoff_changes_nothing(read):
    """The measure never sees it."""
    assert read(("a", "b", "gone"), {"b": 3})["P@2"] == exactly(0.5)


def test_reciprocal_rank_is_settled_above_a_chunk_that_is_gone(read):
    """It looks no further than the first relevant one."""
    assert read(("a", "b", "gone"), {"b": 3})["RR"] == exactly(0.5)


def test_reciprocal_rank_is_bounded_by_the_rank_of_a_chunk_that_is_gone(read):
    """By hand: relevant at rank 3 for sure, and perhaps at rank 2."""
    assert read(("a", "gone", "b"), {"b": 3})["RR"] == Reading(None, pytest.approx(1 / 3), 0.5)


def test_the_corpus_is_not_read_where_it_is_the_same(read):
    """It may be large."""
    assert read(("a", "any"), {"a": 3}, known=None)["AP"] == exactly(1.0)


def test_a_measure_that_looks_deeper_than_what_is_kept_is_open(read):
    """The rest of the ranking may hold all that is relevant, or nothing."""
    found = read(("a", "b"), {"b": 3, "x": 2}, n_retrieved=1000)

    assert (found["AP"], found["P@2"]) == (Reading(None, 0.0, 1.0), exactly(0.5))
    assert (found["RR"], found["NumRet"]) == (exactly(0.5), exactly(1000))


def test_reciprocal_rank_without_a_relevant_chunk_is_bounded_by_what_is_kept(read):
    """By hand: the first relevant one can be at rank 3 at best."""
    found = read(("a", "b"), {"x": 2}, n_retrieved=1000)

    assert found["RR"] == Reading(None, 0.0, pytest.approx(1 / 3))


def test_failed_judgments_of_today_are_bounds_of_the_earlier_ranking_too(read):
    """A failure must not help the run that it is held against."""
    assert read(("a", "b"), {"a": None, "b": 3})["RR"] == Reading(0.5, 0.5, 1.0)


def test_failed_judgments_move_one_and_the_same_ranking_equally():
    """They are no reason to doubt that nothing differs."""
    basis = RescoringBasis({"q": {"a": None, "b": 3}}, 2, "c1", "j2", set)
    now = of_item(("a", "b"), grades="new", judgments="j2", rankings="r2")

    found = common_items(of_item(("a", "b")), now, basis)["q"]

    assert (found.before["RR"], found.alike) == (exactly(0.5), frozenset(MEASURES))


def test_a_ranking_that_goes_on_below_what_is_kept_is_the_same_only_so_far():
    """What lies below may differ, and a measure without a cutoff looks at it."""
    old, now = (of_item(("a", "b"), n_retrieved=9, rankings=f"r{n}") for n in (1, 2))

    assert common_items(old, now)["q"].alike == {"P@2", "Judged@2"}


def test_without_the_grades_of_today_a_changed_item_has_no_value():
    """Two values on different grades are not to be compared."""
    found = common_items(of_item(("a",)), of_item(("a",), grades="new", judgments="j2"))

    assert found["q"].before["RR"].value is None
