import json
import pickle
from copy import deepcopy

import pytest

from ragforge.errors import UsageError
from ragforge.measures import evaluate

pytestmark = pytest.mark.usefixtures("columns_as")

QRELS = {
    "hit": {"a": 3, "b": 2, "c": 0},
    "late": {"a": 3, "b": 0},
    "miss": {"a": 3},
    "none": {"a": 1},
}
RUN = {"hit": ["a", "b"], "late": ["b", "x", "a"], "miss": ["x", "y"], "none": ["a"]}


@pytest.fixture
def scores():
    return evaluate(QRELS, RUN, ["nDCG@10", "RR"])


def test_per_query_values_are_keyed_by_query_and_measure(scores):
    """Reports and comparisons look them up by name."""
    assert scores.per_query["late"] == {"nDCG@10": 0.5, "RR": pytest.approx(1 / 3)}


def test_measures_are_found_under_their_aliases(scores):
    """Who asked for MRR may ask again for MRR."""
    assert scores.mean("MRR") == scores.mean("RR") == pytest.approx((1 + 1 / 3) / 4)


def test_a_measure_that_was_not_computed_is_refused(scores):
    """The message names those that were."""
    with pytest.raises(UsageError, match="'AP' was not computed; there are: nDCG@10, RR"):
        scores.mean("AP")


def test_worst_queries_come_least_first_and_then_by_id(scores):
    """The list of queries to look at must not change from run to run."""
    assert scores.worst(3, "RR") == [("miss", 0.0), ("none", 0.0), ("late", pytest.approx(1 / 3))]


def test_first_relevant_rank_uses_the_threshold(scores):
    """Grade 1 is no answer on a scale to 3."""
    assert scores.first_relevant_rank == {"hit": 1, "late": 3, "miss": None, "none": None}


def test_queries_without_hit_have_something_to_find(scores):
    """A query without relevant chunks is a fault of the set, not of the retriever."""
    assert scores.without_hit == ("miss",)


def test_queries_without_relevant_chunk_are_reported(scores):
    """They count 0 for every retriever."""
    assert scores.without_relevant == ("none",)


def test_perfect_queries_have_the_best_ranking_not_just_a_first_hit(scores):
    """P@1 = 1 leaves the rest of the ranking unseen."""
    assert scores.perfect == ("hit", "none")


def test_unjudged_counts_holes_of_the_top_ten():
    """Many holes mean that the qrels do not cover this retriever."""
    run = {"q": ["a", "b", "n", *(f"x{i}" for i in range(20))], "r": ["a"]}

    scores = evaluate({"q": {"a": 1, "b": None, "n": -1}, "r": {"a": 0}}, run, ["P@1"])

    assert scores.unjudged == {"q": 9, "r": 0}


def test_to_dict_holds_means_and_what_was_left_out(scores):
    """This shape is what the command line prints with --json."""
    assert scores.to_dict() == {
        "measures": {
            "nDCG@10": {"mean": 0.625, "n": 4, "n_failed": 0, "low": 0.625, "high": 0.625},
            "RR": {
                "mean": pytest.approx(1 / 3),
                "n": 4,
                "n_failed": 0,
                "low": pytest.approx(1 / 3),
                "high": pytest.approx(1 / 3),
            },
        },
        "rel_threshold": 2,
        "n_queries": 4,
        "n_not_in_qrels": 0,
        "n_unjudged_in_top_10": 3,
        "failed": [],
        "judgments_failed": [],
        "without_judgments": [],
        "missing_from_run": [],
        "without_relevant": ["none"],
        "without_hit": ["miss"],
        "perfect": ["hit", "none"],
        "warnings": [],
    }


def test_to_dict_gives_values_per_query_only_when_asked(scores):
    """Seven thousand rows do not belong into a summary."""
    assert scores.to_dict(per_query=True)["per_query"] == scores.per_query


def test_to_dict_is_the_same_text_for_another_order_of_queries(scores):
    """Equal inputs give equal bytes."""
    backwards = evaluate(
        dict(reversed(QRELS.items())), dict(reversed(RUN.items())), ["NDCG@10", "MRR"]
    )

    assert json.dumps(backwards.to_dict(per_query=True)) == json.dumps(
        scores.to_dict(per_query=True)
    )


def test_possible_values_are_those_of_queries_with_failures():
    """A gate takes each at its worst; the others are certain."""
    qrels = QRELS | {"lost": {"a": 3}, "late": {"a": 3, "b": None}}
    scores = evaluate(qrels, RUN, ["RR"], failed=["lost"])

    assert scores.possible("MRR") == {"late": (pytest.approx(1 / 3), 1.0), "lost": (0.0, 1.0)}


def test_without_failures_every_value_is_certain(scores):
    """There is nothing to bound."""
    assert scores.possible("RR") == {}


def test_scores_cannot_be_changed_from_outside():
    """A sorted or zeroed list would silently corrupt frames, intervals and later tests."""
    scores = evaluate({"q": {"a": 1}}, {"q": ["b", "a"]}, ["RR"])

    with pytest.raises(AttributeError, match="frozen: 'foo'"):
        scores.foo = 1
    with pytest.raises(AttributeError, match="frozen: 'measures'"):
        scores.measures = ()
    with pytest.raises(TypeError, match="item assignment"):
        scores.summaries["RR"] = 1
    with pytest.raises(TypeError, match="item assignment"):
        scores.per_query["q"]["RR"] = 1.0
    scores.array("RR")[0] = 9.0
    scores.by_query("RR")["q"] = 9.0
    assert (scores.values("RR"), scores.columns["RR"]) == ((0.5,), (0.5,))


def test_scores_are_copied_and_pickled_after_they_were_looked_at():
    """What is read-only is of a kind that no process can hand to another."""
    scores = evaluate({"q": {"a": 1}}, {"q": ["b", "a"]}, ["RR"])
    seen = [scores.per_query, scores.columns, scores.first_relevant_rank, scores.unjudged]

    copies = [pickle.loads(pickle.dumps(scores)), deepcopy(scores)]

    assert [[of.per_query, of.columns, of.first_relevant_rank, of.unjudged] for of in copies] == [
        seen,
        seen,
    ]
